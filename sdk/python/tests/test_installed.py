"""A plugin in upstream's words, installed by pip, in the host that the server starts."""

from pathlib import Path
from typing import Any

import pytest
from concert import Concert
from venvs import Venv

PROJECT = """\
[project]
name = "short-plugins"
version = "0.1.0"

[project.entry-points.'no8s.reconcilers']
zone = "short_plugins:Zone"

[tool.setuptools]
py-modules = ["short_plugins"]
"""

# Imports as upstream has them. It leaves `reconciling` when nothing has drifted, reports a failed destroy as
# `failed`, and removes a finalizer that is not the one the server added.
PLUGINS = """\
import os

from plugins.base import ActionContext
from plugins.reconcilers.base import ReconcilerContext, ReconcilerPlugin, ReconcileResult


class Zone(ReconcilerPlugin):
    @property
    def name(self):
        return "zone"

    @property
    def resource_types(self):
        return ["Zone"]

    async def start(self, ctx: ReconcilerContext):
        while not ctx.shutdown_event.is_set():
            for resource in await ctx.get_resources_needing_reconciliation(self.resource_types, limit=10):
                result = await self.reconcile(resource, ctx)
                await ctx.record_reconciliation(resource["id"], result, trigger_reason=self.why(resource))

    def why(self, resource):
        if resource["status"] == "deleting":
            return "deletion"
        is_steady = resource["generation"] == resource["observed_generation"]
        return "drift_check" if is_steady else "generation_changed"

    async def reconcile(self, resource, ctx):
        number = resource["id"]
        await ctx.update_status(number, "reconciling", "working")
        why = self.why(resource)
        if why == "deletion":
            return await self.destroy(number, ctx)
        if why == "generation_changed":
            await ctx.update_status(number, "ready", "made", observed_generation=resource["generation"])
            return ReconcileResult(success=True, message="made")
        return ReconcileResult(success=True, message="no drift")

    async def destroy(self, number, ctx):
        if os.path.exists(os.environ["ZONE_STAYS"]):
            await ctx.update_status(number, "failed", "it stays")
            return ReconcileResult(success=False, message="it stays")
        await ctx.remove_finalizer(number, "short-zone")
        if not await ctx.get_finalizers(number):
            await ctx.hard_delete_resource(number)
        return ReconcileResult(success=True, message="gone")

    async def stop(self):
        pass
"""


@pytest.fixture
def zones(venv: Venv, tmp_path: Path) -> Path:
    """Installs the plugin; as long as the file is there that this names, zones cannot be destroyed."""
    project = tmp_path / "short-plugins"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "short_plugins.py").write_text(PLUGINS)
    venv.pip("install", ".", cwd=project)
    return tmp_path / "stays"


def make_zone(server: Concert) -> str:
    """The path of a new zone."""
    server.wait_for_line(r"Registered reconciler plugin: zone \(resource types: Zone\)")
    kind = {"name": "Zone", "version": "v1", "schema": {"type": "object"}}
    assert server.ask("POST", "/api/v1/resource-types", kind)[0] == 201
    body = {"name": "a", "resource_type_name": "Zone", "resource_type_version": "v1", "spec": {"size": 1}}
    status, created = server.ask("POST", "/api/v1/resources", body)
    assert status == 201, created
    return f"/api/v1/resources/{created['id']}"


def is_ready(generation: int) -> Any:
    def look(status: int, body: Any) -> bool:
        return status == 200 and (body["status"], body["observed_generation"]) == ("ready", generation)

    return look


def is_gone(status: int, _: Any) -> bool:
    return status == 404


def test_a_plugin_in_upstreams_words_from_create_over_a_steady_look_to_a_destroy_that_fails_first(
    venv: Venv, zones: Path, tmp_path: Path, concert_binary: str
) -> None:
    zones.touch()
    with venv.concert(concert_binary, tmp_path / "data", BACKOFF_BASE_DELAY="1", ZONE_STAYS=str(zones)) as server:
        path = make_zone(server)
        assert server.wait_for(path, is_ready(1))["finalizers"] == ["zone"]
        assert server.ask("POST", f"{path}/reconcile")[0] == 202
        looked = server.history(path, 2)
        assert [(it["success"], it["trigger_reason"]) for it in looked] == [
            (True, "drift_check"),
            (True, "generation_changed"),
        ]
        steady = server.wait_for(path, is_ready(1))
        assert (steady["status_message"], steady["next_reconcile_time"] is None) == ("no drift", False)

        assert server.ask("DELETE", path)[0] == 202
        failed = server.wait_for(path, lambda _, body: body["retry_count"] > 0)
        assert (failed["status"], failed["status_message"]) == ("deleting", "it stays")
        zones.unlink()
        server.wait_for(path, is_gone)
        last, before, *_ = server.history(path, 4)
        assert (last["success"], last["trigger_reason"]) == (True, "deletion")
        assert (before["success"], before["error_message"]) == (False, "it stays")


def test_the_host_gets_a_token_and_the_authority_of_a_server_that_asks_for_both(
    venv: Venv, zones: Path, tmp_path: Path, concert_binary: str
) -> None:
    # A token that is not the host's own is of no use to it, and no authority of this machine signed the certificate.
    variables = {"CONCERT_TOKEN": "of-somebody-else", "ZONE_STAYS": str(zones)}
    with venv.concert(concert_binary, tmp_path / "data", dev=False, **variables) as server:
        assert server.url.startswith("https://")
        path = make_zone(server)
        server.wait_for(path, is_ready(1))
        assert server.ask("PUT", path, {"spec": {"size": 2}})[0] == 200
        server.wait_for(path, is_ready(2))
        assert server.ask("DELETE", path)[0] == 202
        server.wait_for(path, is_gone)
        assert [it["success"] for it in server.history(path, 3)] == [True, True, True]
        assert not [it for it in server.lines if "Traceback" in it]
