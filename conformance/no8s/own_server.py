"""Starts a server with authentication in a temporary folder and runs the suite against it."""

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

START_SECONDS = 60
PACKAGE = Path(__file__).parents[2] / "sdk" / "python"


def main(binary: str, arguments: list[str]) -> int:
    key = secrets.token_hex(32)
    password = secrets.token_hex(12)
    environment = {
        **os.environ,
        "JWT_SECRET_KEY": key,
        "INITIAL_ADMIN_USERNAME": "admin",
        "INITIAL_ADMIN_PASSWORD": password,
    }
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        command = [binary, "serve", "--data-dir", str(data), "--plugins", "off"]
        command += ["--listen", "127.0.0.1:0", "--admin-listen", "0"]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            url = address(server)
            suite = {**environment, "BASE_URL": url, "ADMIN_USER": "admin", "ADMIN_PASSWORD": password}
            suite["CA_FILE"] = str(data / "tls" / "ca.crt")
            suite["PLUGIN_HOST"] = os.environ.get("PLUGIN_HOST") or str(plugin_host(Path(folder)))
            here = str(Path(__file__).parent)
            return subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=here, env=suite).returncode
        finally:
            server.terminate()
            try:
                server.wait(30)
            finally:
                server.kill()


def plugin_host(folder: Path) -> Path:
    """The program of the package in this repository, in an environment of its own."""
    # pip builds where the source is; a copy leaves the repository as it was.
    source = folder / "package"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__", "tests"))
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    subprocess.run([folder / "venv" / "bin" / "pip", "install", "-q", str(source)], check=True)
    return folder / "venv" / "bin" / "no8s-plugin-host"


def address(server: "subprocess.Popen[str]") -> str:
    """Where the server listens, as it says itself; what it says later is read and dropped."""
    found: list[str] = []

    def read() -> None:
        assert server.stdout
        for line in server.stdout:
            match = re.search(r"serving.*\bapi\b.*(127\.0\.0\.1:\d+)", line)
            if match:
                found.append(f"https://{match[1]}")
            if os.environ.get("SERVER_LOG"):
                sys.stderr.write(line)

    threading.Thread(target=read, daemon=True).start()
    end = time.monotonic() + START_SECONDS
    while not found:
        if server.poll() is not None or time.monotonic() > end:
            raise SystemExit("the server did not start; SERVER_LOG=1 shows what it says")
        time.sleep(0.02)
    return found[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
