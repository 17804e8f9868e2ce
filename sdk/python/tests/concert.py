"""The real server as a child process, and HTTP to it without further ado."""

import json
import os
import re
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

START_SECONDS = 60
ADMIN = "admin"
PASSWORD = "correct horse battery"
# In the words of the log, be it JSON or text.
SERVING = r"serving.*\bapi\b.*127\.0\.0\.1:(\d+)"


class Concert:
    """`concert serve --dev` on a port that the system chose, until the end of the `with`.

    Without `dev` it is as in production: https with an authority of its own, and requests are the
    administrator's.
    """

    def __init__(
        self,
        binary: str,
        data: Path,
        plugins: str | None = "off",
        *,
        dev: bool = True,
        **environment: str,
    ) -> None:
        self._arguments = [binary, "serve", "--data-dir", str(data)]
        self._arguments += ["--admin-listen", "0"]
        self._is_dev = dev
        self._authority = data / "tls" / "ca.crt"
        self._token: str | None = None
        if dev:
            self._arguments.append("--dev")
        else:
            environment = {"INITIAL_ADMIN_USERNAME": ADMIN, "INITIAL_ADMIN_PASSWORD": PASSWORD, **environment}
        if plugins is not None:
            self._arguments += ["--plugins", plugins]
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[str] | None = None
        self._changed = threading.Condition()
        self.lines: list[str] = []
        self.port = 0
        self._is_over = False

    def __enter__(self) -> "Concert":
        try:
            self.start()
        except BaseException:
            self.stop(signal.SIGKILL)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"{'http' if self._is_dev else 'https'}://127.0.0.1:{self.port}"

    @property
    def identity(self) -> dict[str, str | None]:
        """What a `Server` of the package needs beside the address: nothing of a server for development."""
        return {} if self._is_dev else {"token": self._token, "ca": str(self._authority)}

    def start(self) -> None:
        """Starts, or starts again on the same port."""
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        self._process = subprocess.Popen(
            self._arguments + listen, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, env=self._environment
        )
        threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        if not self.port:
            found = self.wait_for_line(SERVING, START_SECONDS)
            self.port = int(found[1])
        self._wait_until_healthy()
        if not self._is_dev:
            self._log_in()

    def _log_in(self) -> None:
        self._token = None
        status, answer = self.ask("POST", "/api/v1/auth/login", {"username": ADMIN, "password": PASSWORD})
        assert status == 200, answer
        self._token = answer["access_token"]

    def stop(self, number: int = signal.SIGTERM) -> None:
        assert self._process
        self._process.send_signal(number)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        for line in process.stdout:
            with self._changed:
                self.lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._is_over = process is self._process
            self._changed.notify_all()

    def wait_for_line(self, pattern: str, seconds: float = 30) -> "re.Match[str]":
        """The first line of the log that has `pattern` in it."""
        found: list[re.Match[str]] = []

        def look() -> bool:
            found.extend(it for it in (re.search(pattern, line) for line in self.lines) if it)
            return bool(found) or self._is_over

        with self._changed:
            if not self._changed.wait_for(look, seconds) or not found:
                raise AssertionError(f"no line with {pattern!r} within {seconds} s in:\n" + "\n".join(self.lines))
        return found[0]

    def _wait_until_healthy(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                if self.ask("GET", "/api/v1/cluster/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the server does not answer; its log:\n" + "\n".join(self.lines))

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of one request."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        verified = None if self._is_dev else ssl.create_default_context(cafile=self._authority)
        try:
            with urllib.request.urlopen(request, timeout=30, context=verified) as answer:
                raw, status = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            raw, status = error.read(), error.code
        return status, json.loads(raw) if raw else None

    def history(self, path: str, count: int) -> Any:
        """The runs of the resource at `path`, once there are `count`: a run is recorded after what it wrote."""
        return self.wait_for(path + "/history", lambda _, body: len(body) >= count)

    def wait_for(self, path: str, condition: Any, seconds: float = 30) -> Any:
        """The body at `path` as soon as `condition(status, body)` holds."""
        end = time.monotonic() + seconds
        while True:
            status, body = self.ask("GET", path)
            if condition(status, body):
                return body
            if time.monotonic() > end:
                log = "\n".join(self.lines[-40:])
                raise AssertionError(f"GET {path} still answers {status} {json.dumps(body, indent=1)}\nlog:\n{log}")
            time.sleep(0.02)
