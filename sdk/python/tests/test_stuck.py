"""A plugin that hangs: its own loop, and the event loop of the whole host."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from conftest import StartHost
from installed_plugins import Crashing
from speaker import Speaker, resource
from test_host import LOG, install, search_path

from no8s_operator.host import guard, supervisor
from no8s_operator.host.supervisor import Supervisor
from no8s_operator.host.watchdog import EXIT_STUCK, Watchdog
from no8s_operator.plugins.reconcilers.base import ReconcilerContext, ReconcileResult
from no8s_operator.worker import Worker


class Ended(Exception):
    """A plugin's own word for its end."""


class Plain(Crashing):
    """A loop as the guide writes it, which hangs in `record-1` until that is cancelled."""

    def __init__(self, takes_it_for_the_end: bool = False) -> None:
        super().__init__()
        self.takes_it_for_the_end = takes_it_for_the_end
        self.hangs = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def start(self, ctx: ReconcilerContext) -> None:
        self.starts += 1
        with contextlib.suppress(Ended):
            while not ctx.shutdown_event.is_set():
                for it in await ctx.get_resources_needing_reconciliation(self.resource_types, limit=1):
                    await ctx.record_reconciliation(it["id"], await self.reconcile(it, ctx))

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        if resource["name"] == "record-1":
            self.hangs.set()
            try:
                await self.may_go_on.wait()
            except asyncio.CancelledError:
                if not self.takes_it_for_the_end:
                    raise
                raise Ended from None
        return ReconcileResult(True)


@contextlib.asynccontextmanager
async def supervised(plugin: Plain, ctx: ReconcilerContext, worker: Worker) -> AsyncIterator[None]:
    """A supervisor whose plugin hangs, until it is stopped."""
    it = Supervisor(ctx.shutdown_event)
    await it.start(plugin, ctx, worker)
    try:
        await asyncio.wait_for(plugin.hangs.wait(), 10)
        yield
    finally:
        ctx.shutdown_event.set()
        await it.stop()


@pytest.fixture
def start_with(speaker: Speaker, tmp_path: Path, start_host: StartHost) -> StartHost:
    """Starts a host that has this plugin and leases of so many seconds."""

    async def start(plugin: str, lease_seconds: int) -> asyncio.subprocess.Process:
        install(tmp_path, dns_record=plugin)
        return await start_host(
            LOG,
            CONCERT_URL=speaker.url,
            PYTHONPATH=search_path(tmp_path),
            CONCERT_LEASE_SECONDS=str(lease_seconds),
            ENABLED_ACTION_PLUGINS="none",
        )

    return start


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "restart_delay", lambda _: 0)


@pytest.mark.parametrize("returns", [False, True])
async def test_a_loop_that_hangs_in_a_resource_it_lost_is_started_again(
    ctx: ReconcilerContext,
    worker: Worker,
    speaker: Speaker,
    until: Any,
    caplog: pytest.LogCaptureFixture,
    returns: bool,
) -> None:
    plugin = Plain(returns)
    speaker.offer(resource(1), resource(2))
    async with supervised(plugin, ctx, worker):
        speaker.take_away(1)
        await until(lambda: speaker.results(2))
        assert plugin.starts == 2
        assert "it hung in record-1 (1), whose lease had ended" in caplog.text
        assert speaker.results(1) == []


async def test_a_loop_that_asks_again_in_time_is_left_alone(
    ctx: ReconcilerContext, worker: Worker, speaker: Speaker, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.5)
    plugin = Plain()
    speaker.offer(resource(1))
    async with supervised(plugin, ctx, worker):
        speaker.take_away(1)
        await until(lambda: worker.leases.why_lost(1))
        plugin.may_go_on.set()
        # Its result is refused, and it crashes by that: a crash of its own, and not for hanging.
        await until(lambda: plugin.starts == 2)
        speaker.offer(resource(2))
        await until(lambda: speaker.results(2))


async def test_a_loop_whose_tasks_still_work_is_left_alone(
    ctx: ReconcilerContext, worker: Worker, speaker: Speaker, until: Any
) -> None:
    works = asyncio.Event()
    done = asyncio.Event()

    class Gathering(Plain):
        async def start(self, ctx: ReconcilerContext) -> None:
            self.starts += 1
            resources = await ctx.get_resources_needing_reconciliation(self.resource_types, limit=2)
            await asyncio.gather(*(self.one(it, ctx) for it in resources))
            await ctx.shutdown_event.wait()

        async def one(self, it: dict[str, Any], ctx: ReconcilerContext) -> None:
            if it["id"] == 1:
                self.hangs.set()
                return
            await ctx.update_status(it["id"], "reconciling")
            works.set()
            await done.wait()
            await ctx.record_reconciliation(it["id"], ReconcileResult(True))

    looks: list[bool] = []
    is_worked_on = worker.leases.are_worked_on_for

    def look(task: "asyncio.Task[Any]") -> bool:
        looks.append(is_worked_on(task))
        return looks[-1]

    worker.leases.are_worked_on_for = look  # type: ignore[method-assign]
    plugin = Gathering()
    speaker.offer(resource(1), resource(2))
    async with supervised(plugin, ctx, worker):
        await asyncio.wait_for(works.wait(), 10)
        speaker.take_away(1)
        await until(lambda: len(looks) >= 2)
        assert all(looks)
        done.set()
        await until(lambda: speaker.results(2))
        assert plugin.starts == 1


async def test_the_watchdog_ends_what_stands_still_and_nothing_else() -> None:
    ended = threading.Event()
    watchdog = Watchdog(1, lambda _: ended.set())
    watchdog.start()
    await asyncio.sleep(2)
    assert not ended.is_set()
    assert ended.wait(30), "waiting like this blocks the loop"
    watchdog.stop()


async def test_a_plugin_that_blocks_the_event_loop_ends_the_host(speaker: Speaker, start_with: StartHost) -> None:
    speaker.offer(resource(1))
    process = await start_with("Blocking", 1)
    _, raw = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == EXIT_STUCK
    log = raw.decode()
    assert "The plugin host has stood still for 1 s and ends: a plugin blocks the event loop" in log
    assert "installed_plugins.py" in log, "it says where"


async def test_a_host_that_was_frozen_is_not_blamed_for_it(speaker: Speaker, start_with: StartHost, until: Any) -> None:
    process = await start_with("Dns", 5)
    speaker.offer(resource(1))
    await until(lambda: speaker.results(1), 30)
    process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(8)
    process.send_signal(signal.SIGCONT)
    speaker.offer(resource(2))
    await until(lambda: speaker.results(2), 60)
    process.terminate()
    _, raw = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, raw.decode()


@pytest.mark.parametrize("name", ["MAX_CONCURRENT_RECONCILES", "CONCERT_LEASE_SECONDS"])
@pytest.mark.parametrize("text", ["x", "0", "-1", "1.5"])
async def test_a_number_that_is_none_is_refused_by_the_name_of_its_variable(
    start_host: StartHost, name: str, text: str
) -> None:
    process = await start_host(LOG, **{name: text})
    _, raw = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert f"{name} must be a whole number from 1 to " in raw.decode()
    assert "Traceback" not in raw.decode()
