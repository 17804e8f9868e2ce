"""What a plugin does wrong is contained, and visible in status, explanation and history."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from concert import Concert
from test_base_reconciler import Plugin
from test_server import connected, create, explained, make_ready, make_type, wait_for

from no8s_operator.host import guard, supervisor
from no8s_operator.host.supervisor import Supervisor
from no8s_operator.plugins.reconcilers.base import ReconcilerContext, ReconcileResult


class Plain(Plugin):
    """A loop as the guide writes it."""

    async def start(self, ctx: ReconcilerContext) -> None:
        while not ctx.shutdown_event.is_set():
            for it in await ctx.get_resources_needing_reconciliation(self.resource_types, limit=10):
                await ctx.record_reconciliation(it["id"], await self.reconcile(it, ctx))


async def hangs(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    await ctx.update_status(resource["id"], "reconciling", "waiting for nobody")
    await asyncio.Event().wait()
    return ReconcileResult(True)


async def raises(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    await ctx.update_status(resource["id"], "reconciling")
    raise RuntimeError("boom")


async def says_an_old_generation(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    await ctx.update_status(resource["id"], "ready", observed_generation=1)
    return ReconcileResult(True, "fine")


async def forgets(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    await ctx.update_status(resource["id"], "reconciling", "half way")
    return ReconcileResult(True, "fine")


@dataclass
class Fault:
    """A plugin, and what is to be seen of its fault: the phase, words of the explanation, each run."""

    kind: type[Plugin]
    body: Any
    status: str
    sentence: str
    history: list[tuple[bool, str | None]]


CRASHED = "reconciler plugin dns_record crashed: boom"
FAULTS = {
    "hangs": Fault(Plain, hangs, "failed", "lease expired", [(False, "lease expired")]),
    "crashes": Fault(Plain, raises, "failed", CRASHED, [(False, CRASHED)]),
    "leaks an exception": Fault(Plugin, raises, "failed", "boom", [(False, "boom")]),
    "says an old generation": Fault(
        Plugin,
        says_an_old_generation,
        "ready",
        "its change to generation 2 has not been looked at yet, only that to 1",
        [(True, None), (True, None)],
    ),
    "forgets to leave reconciling": Fault(
        Plugin, forgets, "reconciling", "is not ready: ReconcileStarted", [(True, None)]
    ),
}


@asynccontextmanager
async def supervised(concert: Concert, fault: Fault) -> AsyncIterator[None]:
    """A host with the plugin: it spoils `bad` and makes everything else ready."""

    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        result: ReconcileResult = await (fault.body if resource["name"] == "bad" else make_ready)(resource, ctx)
        return result

    async with connected(concert, lease_seconds=3, deadline_seconds=4) as ctx:
        host = Supervisor(ctx.shutdown_event)
        await host.start(fault.kind(body), ctx, ctx.db)
        yield
        ctx.shutdown_event.set()
        await host.stop()


async def is_explained_while_it_hangs(concert: Concert) -> None:
    def look(_: int, body: Any) -> bool:
        return "(waiting for nobody)" in body["sentence"]

    path = "/apis/no8s.concert.dev/v1/dnsrecords/bad/explain"
    sentence = (await asyncio.to_thread(concert.wait_for, path, look))["sentence"]
    assert "host host of dns_record of worker dns_record has been working on it for " in sentence


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_is_seen_and_the_neighbour_goes_on(
    concert: Concert, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(guard, "GRACE_SECONDS", 0.5)
    monkeypatch.setattr(supervisor, "restart_delay", lambda _: 0)
    make_type(concert)
    fault = FAULTS[name]
    async with supervised(concert, fault):
        bad = await asyncio.to_thread(create, concert, "bad")
        path = f"/api/v1/resources/{bad}"
        if name == "hangs":
            await is_explained_while_it_hangs(concert)
        good = await asyncio.to_thread(create, concert, "good")
        if len(fault.history) == 2:
            await asyncio.to_thread(concert.history, path, 1)
            await asyncio.to_thread(concert.ask, "PUT", path, {"spec": {"domain": "b"}})
        history = await asyncio.to_thread(concert.history, path, len(fault.history))
        assert [(it["success"], it["error_message"]) for it in history] == fault.history
        resource = await wait_for(concert, bad, lambda it: it["status"] == fault.status)
        assert resource["observed_generation"] == (1 if fault.status == "ready" else 0)
        assert fault.sentence in await explained(concert, "bad")
        await wait_for(concert, good, lambda it: it["status"] == "ready", 60)
        assert "DnsRecord good is ready" in await explained(concert, "good")
