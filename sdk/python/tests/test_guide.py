"""The guide `docs/guides/first-plugin.md`, performed literally against a fresh server."""

import asyncio
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from concert import Concert
from speakers_outside import GitHubSpeaker
from venvs import ROOT, Venv

EXAMPLE = ROOT / "examples" / "dns-plugin"
GUIDE = ROOT / "docs" / "guides" / "first-plugin.md"
# The plugin's own loop sleeps 30 s between looks, and the look itself may wait for 20 s.
PATIENCE = 75


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "no8s-dns-reconciler"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__"))
    return folder


def curls() -> list[str]:
    """The commands of the guide, in order."""
    blocks = re.findall(r"```bash\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    return [it for it in blocks if it.startswith("curl")]


def run_curl(server: Concert, command: str) -> str:
    """Runs a command of the guide as it stands there, but for the port."""
    here = command.replace("http://localhost:8000", server.url)
    done = subprocess.run(["bash", "-ec", here.replace("curl ", "curl -sS ", 1)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_phase(phase: str, generation: int = 1) -> Any:
    return lambda status, body: status == 200 and (body["status"], body["observed_generation"]) == (phase, generation)


def started(server: Concert) -> None:
    server.wait_for_line(r"Registered reconciler plugin: dns_record \(resource types: DnsRecord\)")
    server.wait_for_line("Started reconciler plugin: dns_record")


def conditions(resource: dict[str, Any]) -> list[tuple[str, str, str, str, int]]:
    keys = ("type", "status", "reason", "message", "observedGeneration")
    return [tuple(it[key] for key in keys) for it in resource["conditions"]]  # type: ignore[misc]


def ready_conditions(generation: int) -> list[tuple[str, str, str, str, int]]:
    return [
        ("Ready", "True", "ReconcileSuccess", "Resource reconciled successfully", generation),
        ("Reconciling", "False", "ReconcileComplete", "Reconciliation completed", generation),
        ("Degraded", "False", "NoErrors", "", generation),
        ("DnsRecordSynced", "True", "RecordUpserted", "A record for api.example.com synced", generation),
    ]


def test_the_project_has_the_structure_of_the_guide(project: Path) -> None:
    files = {str(it.relative_to(project)) for it in project.rglob("*") if it.is_file()}
    assert files == {"pyproject.toml", "src/no8s_dns/__init__.py", "src/no8s_dns/reconciler.py"}


def test_the_walk(venv: Venv, project: Path, tmp_path: Path, concert_binary: str) -> None:
    venv.pip("install", ".", cwd=project)
    create_type, create_resource, read, update, delete = curls()
    with venv.concert(concert_binary, tmp_path / "data") as server:
        started(server)
        assert '"name":"DnsRecord"' in run_curl(server, create_type).replace(" ", "")
        assert '"id":1' in run_curl(server, create_resource).replace(" ", "")
        path = "/api/v1/resources/1"
        resource = server.wait_for(path, is_phase("ready"), PATIENCE)
        assert resource["status_message"] == "DNS record api.example.com synced"
        assert conditions(resource) == ready_conditions(1)
        assert resource["finalizers"] == ["dns_record"]
        assert '"status":"ready"' in run_curl(server, read).replace(" ", "")

        assert '"generation":2' in run_curl(server, update).replace(" ", "")
        failing = without_a_value(server)
        resource = server.wait_for(path, is_phase("ready", 2), PATIENCE)
        assert (resource["spec"]["value"], resource["spec"]["ttl"]) == ("203.0.113.51", 300)
        assert conditions(resource) == ready_conditions(2)
        it_failed(server, failing)

        run_curl(server, delete)
        assert server.ask("GET", path)[1]["status"] == "deleting"
        server.wait_for(path, lambda status, _: status == 404, PATIENCE)
        history = server.history(path, 3)
        assert [(it["generation"], it["success"], it["phase"]) for it in history[1:]] == [
            (2, True, "completed"),
            (1, True, "completed"),
        ]
        assert history[0]["success"] is True


def without_a_value(server: Concert) -> int:
    """A resource that the plugin stumbles over: the schema lets it through, the code needs the key."""
    assert server.ask("PUT", "/api/v1/resource-types/1", {"schema": {"type": "object"}})[0] == 200
    body = {
        "name": "no-value",
        "resource_type_name": "DnsRecord",
        "resource_type_version": "v1",
        "spec": {"domain": "api.example.com", "type": "A"},
    }
    status, created = server.ask("POST", "/api/v1/resources", body)
    assert status == 201, created
    return int(created["id"])


def it_failed(server: Concert, number: int) -> None:
    resource = server.wait_for(f"/api/v1/resources/{number}", lambda _, body: body["status"] == "failed", PATIENCE)
    assert conditions(resource) == [
        ("Ready", "False", "ReconcileFailed", "'value'", 1),
        ("Reconciling", "False", "ReconcileFailed", "", 1),
        ("Degraded", "True", "ReconcileFailed", "'value'", 1),
        ("DnsRecordSynced", "False", "ProviderError", "'value'", 0),
    ]
    has_backed_off(resource)


def has_backed_off(resource: dict[str, Any]) -> None:
    assert resource["retry_count"] == 1
    now = datetime.now(UTC).replace(tzinfo=None)
    delay = (datetime.fromisoformat(resource["next_reconcile_time"]) - now).total_seconds()
    assert 0 < delay <= 66


def test_an_editable_install_works_too(venv: Venv, project: Path, tmp_path: Path, concert_binary: str) -> None:
    venv.pip("install", "-e", ".", cwd=project)
    create_type, create_resource, *_ = curls()
    with venv.concert(concert_binary, tmp_path / "data") as server:
        started(server)
        run_curl(server, create_type)
        run_curl(server, create_resource)
        resource = server.wait_for("/api/v1/resources/1", is_phase("ready"), PATIENCE)
        assert conditions(resource) == ready_conditions(1)


OTHER_PROJECT = """\
[project]
name = "other-plugins"
version = "0.1.0"
dependencies = ["no8s-operator"]

[project.entry-points.'no8s.reconcilers']
other_dns = "other_plugins:OtherDns"
workflow = "other_plugins:Workflow"

[tool.setuptools]
py-modules = ["other_plugins"]
"""

# `reconcile` of Workflow is the guide's example of action plugins, which returns nothing.
OTHER_PLUGINS = """\
from no8s_dns.reconciler import DnsRecordReconciler
from no8s_operator.plugins.reconcilers.base import BaseReconciler


class OtherDns(DnsRecordReconciler):
    @property
    def name(self):
        return "other_dns"


class Workflow(BaseReconciler):
    @property
    def name(self):
        return "workflow"

    @property
    def resource_types(self):
        return ["Workflow"]

    async def reconcile(self, resource, ctx):
        # Get the GitHub Actions action plugin
        github = await ctx.get_action_plugin("github_actions")

        # Create an ActionContext for the plugin
        from no8s_operator.plugins.base import ActionContext
        action_ctx = ActionContext(
            resource_id=resource["id"],
            resource_name=resource["name"],
            generation=resource["generation"],
            spec=resource["spec"],
            spec_hash=resource["spec_hash"],
        )

        # Delegate to the action plugin's prepare/plan/apply lifecycle
        workspace = await github.prepare(action_ctx)
        plan = await github.plan(action_ctx, workspace)

        if plan.has_changes:
            result = await github.apply(action_ctx, workspace)

        await github.cleanup(workspace)
"""


@pytest.fixture
def github() -> Iterator[GitHubSpeaker]:
    """GitHub in a thread of its own, since these tests wait in theirs."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def make() -> GitHubSpeaker:
        it = GitHubSpeaker()
        await it.server.start_server()
        return it

    speaker = asyncio.run_coroutine_threadsafe(make(), loop).result(10)
    yield speaker
    asyncio.run_coroutine_threadsafe(speaker.server.close(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def test_the_conflict_and_the_action_that_returns_nothing(
    venv: Venv, project: Path, tmp_path: Path, concert_binary: str, github: GitHubSpeaker
) -> None:
    venv.pip("install", ".", cwd=project)
    other = tmp_path / "other-plugins"
    other.mkdir()
    (other / "pyproject.toml").write_text(OTHER_PROJECT)
    (other / "other_plugins.py").write_text(OTHER_PLUGINS)
    venv.pip("install", ".", cwd=other)
    environment = {"GITHUB_API_URL": github.url, "GITHUB_TOKEN": "gh-token", "GITHUB_ACTIONS_POLL_INTERVAL": "0.05"}
    with venv.concert(concert_binary, tmp_path / "data", **environment) as server:
        started(server)
        server.wait_for_line(
            r"Could not load reconciler plugin other_dns: Resource type 'DnsRecord' is already claimed by "
            r"reconciler 'dns_record'\. Cannot register 'other_dns'\."
        )
        server.wait_for_line("Started reconciler plugin: workflow")
        kind = {"name": "Workflow", "version": "v1", "schema": {"type": "object"}}
        assert server.ask("POST", "/api/v1/resource-types", kind)[0] == 201
        body = {
            "name": "deploy",
            "resource_type_name": "Workflow",
            "resource_type_version": "v1",
            "spec": {"owner": "octo", "repo": "infra", "workflow": "deploy.yml", "inputs": {"region": "eu"}},
        }
        status, created = server.ask("POST", "/api/v1/resources", body)
        assert status == 201, created
        path = f"/api/v1/resources/{created['id']}"
        resource = server.wait_for(path, lambda _, body: body["status"] == "failed")
        assert resource["status_message"] == "reconcile returned None"
        has_backed_off(resource)
        assert len(github.dispatched) == 1
        history = server.history(path, 1)
        assert [(it["success"], it["error_message"]) for it in history] == [(False, "reconcile returned None")]
    venv.pip("uninstall", "-y", "other-plugins")
