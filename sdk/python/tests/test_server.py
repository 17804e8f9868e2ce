"""Context, loop and host against the real server."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from concert import Concert
from test_base_reconciler import Plugin

from no8s_operator.errors import StaleLeaseError
from no8s_operator.events import EventBus, EventType
from no8s_operator.http import Server
from no8s_operator.plugins.reconcilers.base import ReconcilerContext, ReconcileResult
from no8s_operator.plugins.registry import PluginRegistry
from no8s_operator.worker import Worker

SPEC = {"domain": "a.example.com"}


def make_type(concert: Concert, name: str = "DnsRecord") -> None:
    status, body = concert.ask("POST", "/api/v1/resource-types", {"name": name, "version": "v1", "schema": {}})
    assert status == 201, body


def create(concert: Concert, name: str = "a", **more: Any) -> int:
    body = {"name": name, "resource_type_name": "DnsRecord", "resource_type_version": "v1", "spec": SPEC, **more}
    status, created = concert.ask("POST", "/api/v1/resources", body)
    assert status == 201, created
    return int(created["id"])


@asynccontextmanager
async def connected(concert: Concert, name: str = "dns_record", **more: Any) -> AsyncIterator[ReconcilerContext]:
    shutdown = asyncio.Event()
    async with Server(concert.url, **concert.identity) as server:
        worker = Worker(server, name, [{"resource_type": "DnsRecord"}], f"host of {name}", shutdown, **more)
        await worker.open()
        bus = EventBus(server)
        yield ReconcilerContext(worker, PluginRegistry({}), shutdown, bus)
        await bus.close()
        await worker.close()


@asynccontextmanager
async def running(plugin: Plugin, ctx: ReconcilerContext) -> AsyncIterator[None]:
    task = asyncio.create_task(plugin.start(ctx))
    yield
    ctx.shutdown_event.set()
    await asyncio.wait_for(task, 30)


async def wait_for(concert: Concert, number: int, condition: Callable[[Any], bool], seconds: float = 30) -> Any:
    def look(status: int, body: Any) -> bool:
        return status == 200 and condition(body)

    return await asyncio.to_thread(concert.wait_for, f"/api/v1/resources/{number}", look, seconds)


async def explained(concert: Concert, name: str) -> str:
    path = f"/apis/no8s.concert.dev/v1/dnsrecords/{name}/explain"
    return str((await asyncio.to_thread(concert.ask, "GET", path))[1]["sentence"])


async def one(ctx: ReconcilerContext) -> dict[str, Any]:
    (resource,) = await ctx.get_resources_needing_reconciliation(["DnsRecord"], limit=1)
    return resource


async def test_a_record_has_naive_times_and_every_key(concert: Concert) -> None:
    make_type(concert)
    async with connected(concert) as ctx:
        number = create(concert, plugin_config={"a": 1}, metadata={"b": 2})
        resource = await one(ctx)
        assert (resource["id"], resource["status"], resource["spec"]) == (number, "pending", SPEC)
        assert (resource["plugin_config"], resource["metadata"]) == ({"a": 1}, {"b": 2})
        assert isinstance(resource["created_at"], datetime)
        assert resource["created_at"].tzinfo is None
        again = await ctx.db.get_resource(number)
        assert again["name"] == "a"
        assert (await ctx.db.get_resource_by_name("a", "DnsRecord", "v1"))["id"] == number
        assert await ctx.db.get_resource(999_999) is None
        await ctx.record_reconciliation(number, ReconcileResult(False, "no"))


async def test_the_context_from_create_to_purge(concert: Concert) -> None:
    make_type(concert)
    async with connected(concert) as ctx:
        number = create(concert)
        await one(ctx)
        await ctx.update_status(number, "reconciling", "working")
        await ctx.set_condition(number, "Synced", "True", "R", observed_generation=1)
        await ctx.update_outputs(number, {"ip": "203.0.113.1"})
        await ctx.add_finalizer(number, "extra")
        assert await ctx.get_finalizers(number) == ["dns_record", "extra"]
        await ctx.remove_finalizer(number, "extra")
        await ctx.update_status(number, "ready", "fine", observed_generation=1)
        await ctx.record_reconciliation(number, ReconcileResult(True, "fine"))
        _, body = concert.ask("GET", f"/api/v1/resources/{number}")
        assert (body["status"], body["outputs"]) == ("ready", {"ip": "203.0.113.1"})
        assert [it["type"] for it in body["conditions"]] == ["Ready", "Reconciling", "Degraded", "Synced"]
        assert await ctx.hard_delete_resource(number) is False
        concert.ask("DELETE", f"/api/v1/resources/{number}")
        assert (await one(ctx))["status"] == "deleting"
        await ctx.remove_finalizer(number, "dns_record")
        assert await ctx.get_finalizers(number) == []
        assert await ctx.hard_delete_resource(number) is True
        await ctx.record_reconciliation(number, ReconcileResult(True, "Deleted"))
        await ctx.record_reconciliation(number, ReconcileResult(True, "Deleted"))
        assert await ctx.get_finalizers(number) == []
        assert await ctx.hard_delete_resource(number) is True
        assert concert.ask("GET", f"/api/v1/resources/{number}")[0] == 404
        assert len(concert.ask("GET", f"/api/v1/resources/{number}/history")[1]) == 2


async def test_a_late_writer_is_refused(concert: Concert) -> None:
    make_type(concert)
    async with connected(concert, lease_seconds=1) as ctx:
        ctx.db.renew_seconds = 3600.0
        ctx.db._renewal.cancel()
        number = create(concert)
        await one(ctx)
        await wait_for(concert, number, lambda it: it["status"] == "failed")
        before = concert.ask("GET", f"/api/v1/resources/{number}")[1]
        with pytest.raises(StaleLeaseError):
            await ctx.update_status(number, "ready", "late", observed_generation=1)
        assert concert.ask("GET", f"/api/v1/resources/{number}")[1] == before
        assert before["status_message"] == "lease expired"
        # As after the crash of a host: who it was, why, and when the next try is.
        sentence = await explained(concert, "a")
        assert "lease expired" in sentence
        assert "plugins/dns_record" in sentence
        assert "next try in" in sentence


async def test_leases_are_renewed_while_a_plugin_works(concert: Concert) -> None:
    make_type(concert)
    async with connected(concert, lease_seconds=3) as ctx:
        number = create(concert)
        await one(ctx)
        end = asyncio.get_running_loop().time() + 7
        while asyncio.get_running_loop().time() < end:
            await ctx.update_outputs(number, {"at": asyncio.get_running_loop().time()})
            await asyncio.sleep(0.5)
        await ctx.update_status(number, "ready", observed_generation=1)
        await ctx.record_reconciliation(number, ReconcileResult(True))
        assert concert.ask("GET", f"/api/v1/resources/{number}")[1]["status"] == "ready"


async def test_a_second_owner_hears_the_words_of_the_guide(concert: Concert) -> None:
    async with connected(concert):
        with pytest.raises(ValueError) as raised:
            async with connected(concert, "other_dns"):
                pass
    assert str(raised.value) == (
        "Resource type 'DnsRecord' is already claimed by reconciler 'dns_record'. Cannot register 'other_dns'."
    )


Body = Callable[[dict[str, Any], ReconcilerContext], Awaitable[Any]]


async def make_ready(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
    if resource["status"] == "deleting":
        await ctx.remove_finalizer(resource["id"], "dns_record")
        return ReconcileResult(True)
    await ctx.update_status(resource["id"], "reconciling")
    await ctx.update_status(resource["id"], "ready", observed_generation=resource["generation"])
    return ReconcileResult(True)


def noting(seen: list[int]) -> Plugin:
    """A plugin that makes everything ready and notes the generations that it saw."""

    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        seen.append(resource["generation"])
        return await make_ready(resource, ctx)

    return Plugin(body)


async def test_a_base_reconciler_is_woken_at_once(concert: Concert, until: Any) -> None:
    make_type(concert)
    seen: list[int] = []
    async with connected(concert) as ctx, running(noting(seen), ctx):
        number = await asyncio.to_thread(create, concert)
        await until(lambda: seen == [1], 3)
        await wait_for(concert, number, lambda it: it["status"] == "ready", 3)
        await asyncio.to_thread(concert.ask, "PUT", f"/api/v1/resources/{number}", {"spec": {"domain": "b"}})
        await until(lambda: seen == [1, 2], 3)
        await wait_for(concert, number, lambda it: it["observed_generation"] == 2, 3)
        await ctx.db.mark_resource_for_reconciliation(number)
        await until(lambda: seen == [1, 2, 2], 3)


async def test_a_delayed_mark_is_kept_by_the_server(concert: Concert, until: Any) -> None:
    make_type(concert)
    seen: list[int] = []
    async with connected(concert) as ctx, running(noting(seen), ctx):
        number = await asyncio.to_thread(create, concert)
        await wait_for(concert, number, lambda it: it["status"] == "ready")
        await ctx.db.mark_resource_for_reconciliation(number, delay_seconds=2)
        due = await ctx.db.get_resource(number)
        assert due
        assert 0 < (due["next_reconcile_time"] - datetime.now(UTC).replace(tzinfo=None)).total_seconds() <= 2
    # Neither the host nor the server that was told is there any more when the time comes.
    await asyncio.to_thread(concert.stop)
    await asyncio.to_thread(concert.start)
    async with connected(concert) as ctx, running(noting(seen), ctx):
        await until(lambda: seen == [1, 1])


@pytest.mark.parametrize(("answer", "message"), [(RuntimeError("boom"), "boom"), (None, "reconcile returned None")])
async def test_what_a_plugin_does_wrong_is_visible(concert: Concert, answer: Any, message: str) -> None:
    make_type(concert)

    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> Any:
        if resource["name"] == "good":
            return await make_ready(resource, ctx)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with connected(concert) as ctx, running(Plugin(body), ctx):
        bad = await asyncio.to_thread(create, concert, "bad")
        good = await asyncio.to_thread(create, concert, "good")
        await wait_for(concert, good, lambda it: it["status"] == "ready")
        resource = await wait_for(concert, bad, lambda it: it["status"] == "failed")
        assert resource["status_message"] == message
        history = await asyncio.to_thread(concert.history, f"/api/v1/resources/{bad}", 1)
        assert [it["error_message"] for it in history] == [message]
        explained = concert.ask("GET", "/apis/no8s.concert.dev/v1/dnsrecords/bad/explain")[1]
        assert message in json.dumps(explained)


async def test_a_plugin_that_hangs_is_cut_off_and_the_others_go_on(concert: Concert) -> None:
    make_type(concert)

    async def body(resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        if resource["name"] == "bad":
            await asyncio.Event().wait()
        return await make_ready(resource, ctx)

    async with connected(concert, lease_seconds=3, deadline_seconds=4) as ctx, running(Plugin(body), ctx):
        bad = await asyncio.to_thread(create, concert, "bad")
        good = await asyncio.to_thread(create, concert, "good")
        await wait_for(concert, good, lambda it: it["status"] == "ready", 60)
        assert (await wait_for(concert, bad, lambda it: it["status"] == "failed"))["retry_count"] == 1
        explained = concert.ask("GET", "/apis/no8s.concert.dev/v1/dnsrecords/bad/explain")[1]
        assert "lease expired" in json.dumps(explained)


async def test_what_a_plugin_leaves_undone_is_explained(concert: Concert) -> None:
    make_type(concert)
    async with connected(concert) as ctx:
        forgets = create(concert, "forgets")
        await one(ctx)
        await ctx.update_status(forgets, "reconciling", "half way")
        await ctx.record_reconciliation(forgets, ReconcileResult(True, "fine"))
        sentence = await explained(concert, "forgets")
        assert sentence.startswith("DnsRecord forgets is not ready: ReconcileStarted")
        assert "next try in 1m" in sentence

        stale = create(concert, "stale")
        await one(ctx)
        concert.ask("PUT", f"/api/v1/resources/{stale}", {"spec": {"domain": "b"}})
        await ctx.update_status(stale, "ready", "said", observed_generation=1)
        await ctx.record_reconciliation(stale, ReconcileResult(True, "fine"))
        body = concert.ask("GET", f"/api/v1/resources/{stale}")[1]
        assert (body["status"], body["generation"], body["observed_generation"]) == ("pending", 2, 1)
        assert "its change to generation 2 has not been looked at yet, only that to 1" in await explained(
            concert, "stale"
        )
        for number in (forgets, stale):
            assert len(await asyncio.to_thread(concert.history, f"/api/v1/resources/{number}", 1)) == 1


async def test_a_server_that_restarts_is_found_again(concert: Concert, caplog: pytest.LogCaptureFixture) -> None:
    make_type(concert)
    async with connected(concert) as ctx, running(Plugin(make_ready, concurrency=5), ctx):
        first = await asyncio.to_thread(create, concert, "first")
        await wait_for(concert, first, lambda it: it["status"] == "ready")
        await asyncio.to_thread(concert.stop, signal.SIGKILL)
        await asyncio.to_thread(concert.start)
        second = await asyncio.to_thread(create, concert, "second")
        await wait_for(concert, second, lambda it: it["status"] == "ready")
    assert caplog.text.count("Cannot reach the server") <= 1


async def hear_of_one(concert: Concert) -> None:
    make_type(concert)
    async with (
        connected(concert) as ctx,
        ctx.event_bus.subscribe(lambda it: it.event_type == EventType.CREATED) as queue,
    ):
        # Until the stream stands nothing is promised, so resources are made until one is heard of.
        for attempt in range(50):
            number = await asyncio.to_thread(create, concert, f"a-{attempt}")
            try:
                event = await asyncio.wait_for(queue.get(), 0.2)
                break
            except TimeoutError:
                continue
        assert event.resource_id <= number
        assert event.resource_type_name == "DnsRecord"


async def test_events_reach_a_subscriber(concert: Concert) -> None:
    await hear_of_one(concert)


async def test_events_reach_a_subscriber_of_a_server_that_asks_who_it_is(concert_binary: str, tmp_path: Path) -> None:
    with Concert(concert_binary, tmp_path / "data", dev=False) as server:
        await hear_of_one(server)
