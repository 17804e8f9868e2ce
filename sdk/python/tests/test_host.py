"""The plugin host: discovery, aliases, restarts, stopping, and the command as a whole."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import installed_plugins
import pytest
from conftest import StartHost
from installed_plugins import Crashing, Dns, OtherDns
from speaker import Speaker, resource

from no8s_operator.host import discovery, supervisor
from no8s_operator.host.command import Host
from no8s_operator.host.supervisor import Supervisor, restart_delay
from no8s_operator.plugins.reconcilers.base import ReconcilerContext
from no8s_operator.plugins.registry import PluginRegistry
from no8s_operator.worker import Worker

# What a host says, for the test to read.
LOG = {"stderr": asyncio.subprocess.PIPE}


def point(name: str, what: str, group: str = "no8s.reconcilers") -> EntryPoint:
    return EntryPoint(name, f"installed_plugins:{what}", group)


def test_what_cannot_be_loaded_is_said_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    points = [
        point("dns_record", "Dns"),
        point("exits", "Exits"),
        point("gone", "Absent"),
        point("licensed", "CannotBeMade"),
    ]
    found = discovery.reconcilers(lambda _: points)
    assert [plugin.name for _, plugin in found] == ["dns_record"]
    assert "Could not load reconciler plugin gone: module 'installed_plugins' has no attribute 'Absent'" in caplog.text
    assert "Could not load reconciler plugin licensed: no licence" in caplog.text
    assert "Could not load reconciler plugin exits: it called sys.exit(2)" in caplog.text
    registered = discovery.actions(PluginRegistry({}), {}, lambda _: [point("exits", "Exits", "no8s.actions")])
    assert registered == ["github_actions", "http_api"]
    assert "Could not load action plugin exits: it called sys.exit(2)" in caplog.text


def test_a_key_that_differs_from_the_name_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    discovery.reconcilers(lambda _: [point("dns", "Dns")])
    assert "Entry point dns and plugin name dns_record differ" in caplog.text


def test_a_type_has_one_reconciler() -> None:
    registry = PluginRegistry({})
    first = Dns()
    registry.register_reconciler(first)
    with pytest.raises(ValueError) as raised:
        registry.register_reconciler(OtherDns())
    assert str(raised.value) == (
        "Resource type 'DnsRecord' is already claimed by reconciler 'dns_record'. Cannot register 'other_dns'."
    )
    assert registry.get_reconciler_for_resource_type("DnsRecord") is first
    assert registry.list_reconcilers() == [{"name": "dns_record", "resource_types": ["DnsRecord"]}]


def test_the_same_name_again_replaces_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    registry = PluginRegistry({})
    registry.register_reconciler(Dns())
    second = Dns()
    registry.register_reconciler(second)
    assert registry.get_reconciler("dns_record") is second
    assert "registered twice" in caplog.text


def test_of_two_installed_plugins_of_one_name_the_later_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    points = [point("dns", "Dns"), point("dns_record", "Dns"), point("other_dns", "OtherDns")]
    found = discovery.reconcilers(lambda _: points)
    assert [(it.name, plugin.name) for it, plugin in found] == [
        ("dns_record", "dns_record"),
        ("other_dns", "other_dns"),
    ]
    assert (
        "Reconciler plugin dns_record is installed twice; that of entry point dns_record is used "
        "(installed_plugins:Dns), not that of dns (installed_plugins:Dns)"
    ) in caplog.text


async def test_actions_are_configured_by_the_host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = installed_plugins.Recording
    monkeypatch.setattr(recording, "configs", [], raising=False)
    registry = PluginRegistry({"PLUGIN_CONFIGS": '{"recording": {"a": 1}}'})
    names = discovery.actions(registry, {}, lambda _: [point("recording", "Recording", "no8s.actions")])
    assert names == ["github_actions", "http_api", "recording"]
    both = await asyncio.gather(
        registry.get_action_plugin("recording", {"a": "of a resource"}), registry.get_action_plugin("recording")
    )
    assert both[0] is both[1]
    assert recording.configs == [{"a": 1}]
    with pytest.raises(
        ValueError, match=r"Unknown action plugin: x\. Available plugins: github_actions, http_api, rec"
    ):
        await registry.get_action_plugin("x")


async def test_an_action_that_exits_when_it_is_made_ready_fails_for_who_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def exits(self: Any, config: dict[str, Any]) -> None:
        sys.exit(2)

    monkeypatch.setattr(installed_plugins.Recording, "initialize", exits)
    registry = PluginRegistry({})
    registry.register_action(installed_plugins.Recording)
    with pytest.raises(RuntimeError, match=r"it called sys\.exit\(2\)"):
        await registry.get_action_plugin("recording")


def test_a_bad_plugin_configs_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    for text in ("{", "[]", '{"a": 1}'):
        assert PluginRegistry({"PLUGIN_CONFIGS": text}).plugin_config("a") == {}
    assert caplog.text.count("PLUGIN_CONFIGS is not used") == 3


def test_restarts_wait_longer_each_time_up_to_five_minutes() -> None:
    assert [restart_delay(it) for it in range(1, 9)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert restart_delay(10_000) == 300


class Plain(Dns):
    """A loop as the guide writes it: ten at a time, one after the other."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def start(self, ctx: ReconcilerContext) -> None:
        while not ctx.shutdown_event.is_set():
            resources = await ctx.get_resources_needing_reconciliation(self.resource_types, limit=10)
            self.batches.append(len(resources))
            for it in resources:
                await ctx.record_reconciliation(it["id"], await self.reconcile(it, ctx))


async def test_a_plain_loop_gets_as_many_as_it_asks_for(speaker: Speaker, until: Any) -> None:
    host = Host({"CONCERT_URL": speaker.url}, PluginRegistry({}))
    plugin = Plain()
    speaker.offer(*(resource(number) for number in range(1, 11)))
    await host._start_reconciler(point("dns_record", "Dns"), plugin)
    await until(lambda: len([it for it in speaker.writes if it["op"] == "result"]) == 10)
    # A bound would be one for all hosts of this name together; each host's claims say how much it can take.
    assert "concurrency" not in speaker.registered[0]
    assert plugin.batches[0] == 10
    host._shutdown.set()
    await host._supervisor.stop()
    await host._server.close()


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The delays that were asked for; none is waited out."""
    asked: list[int] = []

    def note(crashes: int) -> int:
        asked.append(restart_delay(crashes))
        return 0

    monkeypatch.setattr(supervisor, "restart_delay", note)
    return asked


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), asyncio.CancelledError()])
async def test_a_crash_is_started_again_and_stop_is_called_once(
    ctx: ReconcilerContext, worker: Worker, delays: list[int], error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    it = Supervisor(ctx.shutdown_event)
    plugin = Crashing(3, error)
    await it.start(plugin, ctx, worker)
    await asyncio.wait_for(plugin.is_waiting.wait(), 10)
    ctx.shutdown_event.set()
    await it.stop()
    assert (delays, plugin.starts, plugin.stops) == ([5, 10, 20], 4, 1)
    assert "Started reconciler plugin: crashing" in caplog.text


async def test_a_plugin_that_ran_well_starts_over_with_the_shortest_delay(
    ctx: ReconcilerContext, worker: Worker, delays: list[int]
) -> None:
    times = iter([0.0, 1.0, 2.0, 3.0, 4.0, 4.0 + supervisor.RAN_WELL_SECONDS, 700.0])
    it = Supervisor(ctx.shutdown_event, clock=lambda: next(times))
    plugin = Crashing(3)
    await it.start(plugin, ctx, worker)
    await asyncio.wait_for(plugin.is_waiting.wait(), 10)
    ctx.shutdown_event.set()
    await it.stop()
    assert delays == [5, 10, 5]


async def test_a_crash_in_the_middle_of_a_batch_fails_only_what_was_begun(
    ctx: ReconcilerContext, worker: Worker, speaker: Speaker, delays: list[int]
) -> None:
    class Plain(Crashing):
        async def start(self, ctx: ReconcilerContext) -> None:
            self.starts += 1
            if self.starts > 1:
                await super().start(ctx)
            first, _second = await ctx.get_resources_needing_reconciliation(["DnsRecord"], limit=2)
            await ctx.update_status(first["id"], "reconciling")
            raise RuntimeError("boom")

    speaker.offer(resource(1), resource(2))
    it = Supervisor(ctx.shutdown_event)
    plugin = Plain()
    await it.start(plugin, ctx, worker)
    await asyncio.wait_for(plugin.is_waiting.wait(), 10)
    assert speaker.results(1)[0]["message"] == "reconciler plugin crashing crashed: boom"
    assert speaker.released == ["2"]
    ctx.shutdown_event.set()
    await it.stop()


async def test_a_start_that_returns_is_not_started_again(ctx: ReconcilerContext, worker: Worker) -> None:
    class Returns(Crashing):
        async def start(self, ctx: ReconcilerContext) -> None:
            self.starts += 1

    it = Supervisor(ctx.shutdown_event)
    plugin = Returns()
    await it.start(plugin, ctx, worker)
    await asyncio.wait({it._running[0].task}, timeout=5)
    assert (plugin.starts, it._running[0].task.done()) == (1, True)
    await it.stop()
    assert plugin.stops == 1


async def test_what_does_not_end_is_cancelled(
    ctx: ReconcilerContext, worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.05)

    class Stubborn(Crashing):
        async def start(self, ctx: ReconcilerContext) -> None:
            self.is_waiting.set()
            await asyncio.Event().wait()

        async def stop(self) -> None:
            await asyncio.Event().wait()

    it = Supervisor(ctx.shutdown_event)
    plugin = Stubborn()
    await it.start(plugin, ctx, worker)
    await plugin.is_waiting.wait()
    ctx.shutdown_event.set()
    await asyncio.wait_for(it.stop(), 5)
    assert "did not stop within 0.05 s" in caplog.text
    assert "still runs and is cancelled" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), asyncio.CancelledError()])
async def test_a_stop_that_fails_ends_nothing_else(
    ctx: ReconcilerContext, worker: Worker, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    class Unstoppable(Crashing):
        async def stop(self) -> None:
            raise error

    caplog.set_level(logging.INFO)
    it = Supervisor(ctx.shutdown_event)
    plugin = Unstoppable()
    await it.start(plugin, ctx, worker)
    await asyncio.wait_for(plugin.is_waiting.wait(), 10)
    ctx.shutdown_event.set()
    await it.stop()
    assert "Reconciler plugin crashing failed to stop" in caplog.text
    assert "Stopped reconciler plugin: crashing" in caplog.text


ALIASES = """
import sys
import no8s_operator.plugins.reconcilers.base as real
try:
    import plugins
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("the short path exists outside the host")
from no8s_operator.host import aliases
aliases.install()
import plugins.reconcilers.base
from plugins.base import ActionContext
from plugins.registry import get_secret_store
import plugins.actions.github_actions
import no8s_operator.plugins.base, no8s_operator.plugins
assert plugins is no8s_operator.plugins
assert plugins.reconcilers.base is real
assert ActionContext is no8s_operator.plugins.base.ActionContext
assert real.__spec__.name == real.__name__ == "no8s_operator.plugins.reconcilers.base"
try:
    import plugins.absent
except ModuleNotFoundError as error:
    assert error.name == "plugins.absent", error.name
else:
    raise SystemExit("what does not exist was imported")
"""


def test_the_short_path_names_the_same_modules_inside_the_host_only() -> None:
    done = subprocess.run([sys.executable, "-c", ALIASES], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr + done.stdout


def install(folder: Path, **points: str) -> None:
    """As pip would: a package's metadata with its entry points."""
    info = folder / "some_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-plugins\nVersion: 1.0\n")
    lines = [f"{name} = installed_plugins:{what}" for name, what in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[no8s.reconcilers]", *lines]) + "\n")


def search_path(folder: Path) -> str:
    """Where a host finds what `install` put into the folder, beside what this process finds."""
    return os.pathsep.join([str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])


async def test_the_command_from_start_to_sigterm(
    speaker: Speaker, tmp_path: Path, start_host: StartHost, until: Any
) -> None:
    install(tmp_path, dns_record="Dns", licensed="CannotBeMade", zz_other="OtherDns")
    process = await start_host(LOG, CONCERT_URL=speaker.url, PYTHONPATH=search_path(tmp_path))
    speaker.serves = "dns_record"
    speaker.offer(resource(1))
    await until(lambda: speaker.results(1), 30)
    process.send_signal(signal.SIGTERM)
    _, raw = await asyncio.wait_for(process.communicate(), 30)
    log = raw.decode()
    assert process.returncode == 0, log
    assert "Registered reconciler plugin: dns_record (resource types: DnsRecord)\n" in log
    assert "Started reconciler plugin: dns_record\n" in log
    assert "Could not load reconciler plugin licensed: no licence\n" in log
    assert (
        "Could not load reconciler plugin zz_other: Resource type 'DnsRecord' is already claimed by "
        "reconciler 'dns_record'. Cannot register 'other_dns'.\n"
    ) in log
    assert "Traceback" not in log
    names = {it["name"]: it["handles"] for it in speaker.registered}
    assert names == {
        "dns_record": [{"resource_type": "DnsRecord"}],
        "actions": [
            {"action": "github_actions", "version": "1.0.0"},
            {"action": "http_api", "version": "1.0.0"},
        ],
    }


async def test_a_supervised_host_ends_with_its_server(speaker: Speaker, start_host: StartHost, until: Any) -> None:
    stdin = {"stdin": asyncio.subprocess.PIPE}
    process = await start_host(stdin, CONCERT_URL=speaker.url, CONCERT_SUPERVISED="1")
    await until(lambda: speaker.registered, 30)
    assert process.stdin
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_a_refusal_of_the_server_at_registration_is_like_one_of_the_host(
    speaker: Speaker, tmp_path: Path, start_host: StartHost
) -> None:
    install(tmp_path, dns_record="Dns")
    speaker.conflict = "Resource type 'DnsRecord' is already claimed by reconciler 'x'. Cannot register 'dns_record'."
    process = await start_host(
        LOG, CONCERT_URL=speaker.url, PYTHONPATH=search_path(tmp_path), ENABLED_ACTION_PLUGINS="none"
    )
    assert process.stderr
    line = await asyncio.wait_for(process.stderr.readline(), 30)
    assert f"Could not load reconciler plugin dns_record: {speaker.conflict}" in line.decode()
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 30) == 0


@pytest.mark.parametrize("status", [403, 409, 422, 500])
async def test_what_the_server_refuses_is_left_out_and_the_rest_works(
    status: int, speaker: Speaker, tmp_path: Path, start_host: StartHost, until: Any
) -> None:
    install(tmp_path, dns_record="Dns", nameless="Nameless", zz_counting="Counting")
    speaker.refusals = {"dns_record": status, "actions": status}
    process = await start_host(LOG, CONCERT_URL=speaker.url, PYTHONPATH=search_path(tmp_path))
    await until(lambda: {it["name"] for it in speaker.registered} == {"counting"}, 30)
    assert process.stderr
    log = ""
    while "Could not start the action plugins github_actions, http_api: not actions" not in log:
        log += (await asyncio.wait_for(process.stderr.readline(), 30)).decode()
    assert "Could not load reconciler plugin dns_record: not dns_record" in log
    assert "Could not load reconciler plugin nameless: " in log
    assert "Started reconciler plugin: counting" in log
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_a_host_that_the_server_does_not_know_ends(
    speaker: Speaker, tmp_path: Path, start_host: StartHost
) -> None:
    install(tmp_path, dns_record="Dns")
    speaker.refusals = {"dns_record": 401}
    process = await start_host(LOG, CONCERT_URL=speaker.url, PYTHONPATH=search_path(tmp_path))
    _, raw = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert "The plugin host cannot work: not dns_record (HTTP 401)" in raw.decode()


async def test_a_secret_store_that_does_not_work_ends_the_host(start_host: StartHost) -> None:
    process = await start_host(LOG, SECRET_STORE_PLUGIN="vault", VAULT_TOKEN="")
    _, raw = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert "VAULT_TOKEN is required" in raw.decode()
