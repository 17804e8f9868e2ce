"""A12-9, 18 and 20: the plugin host as a program, if `PLUGIN_HOST` names one."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from api import Api
from conftest import Kind

pytestmark = pytest.mark.differs("has the fault that the case is named after")

ACTIONS = "actions"
WORKFLOW = {"owner": "octo", "repo": "infra", "workflow": "deploy.yml"}


@pytest.fixture
def program() -> str:
    found = os.environ.get("PLUGIN_HOST")
    if not found:
        pytest.skip("PLUGIN_HOST names no program")
    return found


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(program: str, admin: Api, tmp_path: Path) -> Iterator[Start]:
    """Starts hosts in a folder that has nothing to do with their package."""
    started: list[subprocess.Popen[str]] = []
    was_there = admin.ask("GET", f"/workers/{ACTIONS}").status_code == 200

    def begin(*arguments: str, **more: str) -> "subprocess.Popen[str]":
        environment = {key: it for key, it in os.environ.items() if key not in ("PYTHONPATH", "JWT_SECRET_KEY")}
        environment |= {"CONCERT_URL": os.environ["BASE_URL"], "CONCERT_TOKEN": str(admin.bearer), **more}
        if os.environ.get("CA_FILE"):
            environment["CONCERT_CA"] = os.environ["CA_FILE"]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        started.append(subprocess.Popen([program, *arguments], cwd=tmp_path, env=environment, **pipes))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()
    if not was_there:
        admin.ask("DELETE", f"/workers/{ACTIONS}")


class GitHub:
    """Refuses everything and remembers with which token it was asked."""

    def __init__(self) -> None:
        self.tokens: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.tokens.append(self.headers.get("Authorization"))
                self.send_response(404)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def github() -> Iterator[GitHub]:
    it = GitHub()
    threading.Thread(target=it.server.serve_forever, daemon=True).start()
    yield it
    it.server.shutdown()
    it.server.server_close()


def test_09_an_action_has_the_configuration_of_the_environment_and_of_no_resource(
    admin: Api, make_kind: Callable[..., Kind], start: Start, github: GitHub
) -> None:
    start(GITHUB_TOKEN="of-the-host", GITHUB_API_URL=github.url)
    admin.wait("/plugins/actions", lambda it: "github_actions" in {each["name"] for each in it})
    kind = make_kind(schema={})
    for config in ({"token": "of-a-resource"}, {}):
        asked = len(github.tokens)
        created = kind.create(action_plugin="github_actions", spec=WORKFLOW, plugin_config=config)
        failed = admin.wait(f"/resources/{created['id']}", lambda it: it["status"] == "failed")
        assert "deploy.yml" in failed["status_message"]
        assert len(github.tokens) > asked
    assert set(github.tokens) == {"Bearer of-the-host"}


def test_18_what_is_installed_runs_by_itself(start: Start) -> None:
    process = start("--version")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert said.startswith("no8s-plugin-host ")


def test_20_a_signal_ends_the_host_once_and_without_complaint(start: Start) -> None:
    process = start()
    assert process.stdout
    log = []
    for line in process.stdout:
        log.append(line)
        if f"Started reconciler plugin: {ACTIONS}" in line:
            break
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=60)
    said = "".join(log) + rest
    assert process.returncode == 0, said
    assert said.count(f"Stopped reconciler plugin: {ACTIONS}") == 1, said
    assert "Traceback" not in said
    assert "ERROR" not in said
