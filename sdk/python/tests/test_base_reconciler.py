"""The loop of `BaseReconciler`."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from speaker import Speaker, resource

from no8s_operator.plugins.reconcilers.base import BaseReconciler, DetailedResult, ReconcilerContext, ReconcileResult
from no8s_operator.worker import Worker

Body = Callable[[dict[str, Any], ReconcilerContext], Awaitable[Any]]


class Plugin(BaseReconciler):
    def __init__(self, body: Body, concurrency: int = 1) -> None:
        self.body = body
        self.max_concurrent_reconciles = concurrency
        self.inside = 0
        self.most = 0

    @property
    def name(self) -> str:
        return "dns_record"

    @property
    def resource_types(self) -> list[str]:
        return ["DnsRecord"]

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            result: ReconcileResult = await self.body(resource, ctx)
            return result
        finally:
            self.inside -= 1


@asynccontextmanager
async def running(plugin: BaseReconciler, ctx: ReconcilerContext) -> AsyncIterator[None]:
    task = asyncio.create_task(plugin.start(ctx))
    yield
    ctx.shutdown_event.set()
    await asyncio.wait_for(task, 10)


async def fine(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    await ctx.update_status(resource["id"], "ready", observed_generation=resource["generation"])
    return ReconcileResult(True, "fine")


async def test_one_at_a_time_unless_asked(ctx: ReconcilerContext, speaker: Speaker, until: Any) -> None:
    plugin = Plugin(fine)
    speaker.offer(*(resource(it) for it in range(1, 21)))
    async with running(plugin, ctx):
        await until(lambda: len(speaker.results(20)) == 1)
    assert plugin.most == 1
    assert all(it["limit"] == 1 for it in speaker.claims)


async def test_many_at_once_when_asked(ctx: ReconcilerContext, speaker: Speaker, until: Any) -> None:
    gate = asyncio.Event()

    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        await gate.wait()
        return await fine(resource, ctx)

    plugin = Plugin(body, concurrency=5)
    speaker.offer(*(resource(it) for it in range(1, 13)))
    async with running(plugin, ctx):
        await until(lambda: plugin.inside == 5)
        gate.set()
        await until(lambda: len([it for it in speaker.writes if it["op"] == "result"]) == 12)
    assert plugin.most == 5
    assert len(speaker.batches) < 24, "writes of one turn are sent together"


async def raises(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    raise KeyError("domain")


async def exits(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    sys.exit(3)


async def lets_a_cancellation_out(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    raise asyncio.CancelledError


async def nothing(resource: dict[str, Any], ctx: ReconcilerContext) -> None:
    return None


@pytest.mark.parametrize(
    ("body", "success", "message"),
    [
        (raises, False, "'domain'"),
        (exits, False, "3"),
        (lets_a_cancellation_out, False, "CancelledError"),
        (nothing, None, ""),
    ],
)
async def test_every_ending_is_recorded(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, body: Body, success: bool | None, message: str
) -> None:
    speaker.offer(resource(1), resource(2))
    async with running(Plugin(body), ctx):
        await until(lambda: speaker.results(2))
    result = speaker.results(1)[0]
    assert (result["success"], result["message"], result["trigger_reason"]) == (success, message, "initial")


async def unsendable(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    return ReconcileResult(True, "fine", requeue_after=object())  # type: ignore[arg-type]


async def endless(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    return DetailedResult(True, "fine", details={"plan_output": float("nan")})


async def no_result(resource: dict[str, Any], ctx: ReconcilerContext) -> Any:
    return True


@pytest.mark.parametrize("body", [unsendable, endless, no_result])
async def test_a_result_that_cannot_be_sent_is_a_failure_and_gives_the_lease_back(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, worker: Worker, body: Body
) -> None:
    speaker.offer(resource(1), resource(2))
    async with running(Plugin(body), ctx):
        await until(lambda: speaker.results(2))
    result = speaker.results(1)[0]
    assert result["success"] is False
    assert result["message"].startswith("the result cannot be recorded: ")
    assert not worker.leases.held


async def test_a_reconcile_that_hangs_is_cancelled_when_its_lease_ends(
    ctx: ReconcilerContext, speaker: Speaker, until: Any
) -> None:
    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        if resource["id"] == 1:
            await asyncio.Event().wait()
        return await fine(resource, ctx)

    plugin = Plugin(body)
    speaker.offer(resource(1), resource(2))
    async with running(plugin, ctx):
        await until(lambda: plugin.inside == 1)
        speaker.take_away(1)
        await until(lambda: speaker.results(2))
    assert speaker.results(1) == []


async def test_a_lost_lease_leaves_the_loop_running(ctx: ReconcilerContext, speaker: Speaker, until: Any) -> None:
    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        if resource["id"] == 1:
            speaker.take_away(1)
        return await fine(resource, ctx)

    speaker.offer(resource(1), resource(2))
    async with running(Plugin(body), ctx):
        await until(lambda: speaker.results(2))
    assert speaker.results(1) == []


async def test_a_shutdown_lets_the_running_ones_end(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, worker: Worker
) -> None:
    gate = asyncio.Event()

    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        await gate.wait()
        return ReconcileResult(True)

    plugin = Plugin(body, concurrency=2)
    speaker.offer(resource(1))
    task = asyncio.create_task(plugin.start(ctx))
    await until(lambda: plugin.inside == 1)
    ctx.shutdown_event.set()
    gate.set()
    await asyncio.wait_for(task, 5)
    assert speaker.results(1)[0]["success"] is True
