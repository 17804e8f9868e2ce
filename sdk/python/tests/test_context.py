"""The context against a server that misbehaves: batches, leases, fences, outages."""

import asyncio
import logging
from typing import Any

import pytest
from speaker import Speaker, resource

from no8s_operator.errors import ServerUnreachableError, StaleLeaseError
from no8s_operator.http import Server
from no8s_operator.plugins.reconcilers.base import ReconcilerContext, ReconcileResult
from no8s_operator.worker import Worker

TYPES = ["DnsRecord"]


async def claimed(ctx: ReconcilerContext, speaker: Speaker, *numbers: int) -> list[dict[str, Any]]:
    speaker.offer(*(resource(it) for it in numbers))
    return await ctx.get_resources_needing_reconciliation(TYPES, limit=len(numbers))


async def test_writes_of_one_turn_go_out_in_one_request(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1, 2, 3)
    await asyncio.gather(*(ctx.update_status(it, "reconciling", "m") for it in (1, 2, 3)))
    assert [len(it) for it in speaker.batches] == [3]
    assert speaker.writes[0] == {"item": "1", "fence": 1, "op": "status", "status": "reconciling", "message": "m"}


async def test_while_requests_are_under_way_writes_gather(ctx: ReconcilerContext, speaker: Speaker, until: Any) -> None:
    await claimed(ctx, speaker, *range(1, 10))
    speaker.writes_may_end.clear()
    tasks = []
    for number in range(1, 10):
        tasks.append(asyncio.create_task(ctx.update_status(number, "reconciling")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await until(lambda: len(speaker.batches) == 4)
    speaker.writes_may_end.set()
    await asyncio.gather(*tasks)
    assert [len(it) for it in speaker.batches] == [1, 1, 1, 1, 5]


async def test_what_is_no_json_fails_alone(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1, 2)
    bad, good = await asyncio.gather(
        ctx.update_outputs(1, {"a": object()}), ctx.update_outputs(2, {"a": 1}), return_exceptions=True
    )
    assert isinstance(bad, TypeError)
    assert good is None


async def test_a_stale_write_raises_and_every_later_one_too(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1, 2)
    speaker.take_away(1)
    with pytest.raises(StaleLeaseError, match="resource 1: stale fence"):
        await ctx.update_status(1, "ready")
    sent = len(speaker.writes)
    with pytest.raises(StaleLeaseError):
        await ctx.record_reconciliation(1, ReconcileResult(success=True))
    assert len(speaker.writes) == sent
    await ctx.update_status(2, "ready")


async def test_a_claim_after_a_loss_makes_the_resource_writable_again(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, worker: Worker
) -> None:
    await claimed(ctx, speaker, 1)
    speaker.take_away(1)
    await until(lambda: worker.leases.why_lost(1))
    await claimed(ctx, speaker, 1)
    await ctx.update_status(1, "reconciling")
    assert speaker.writes[-1]["fence"] == 2


async def test_statuses_that_do_not_exist_are_refused_here(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1)
    with pytest.raises(ValueError, match="'done' is not a status"):
        await ctx.update_status(1, "done")
    with pytest.raises(ValueError, match="'yes' is not a condition status"):
        await ctx.set_condition(1, "Synced", "yes", "R")
    assert speaker.writes == []


async def test_the_type_of_a_condition_may_be_qualified(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await ctx.set_condition(7, "example.com/Synced", "True", "R")
    assert speaker.without_lease == ["/api/v1/resources/7/conditions/example.com%2FSynced"]


async def test_a_result_ends_the_lease_and_says_everything(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker
) -> None:
    await claimed(ctx, speaker, 1)
    await ctx.record_reconciliation(
        resource_id=1, result=ReconcileResult(True, "Synced", 0), duration_seconds=1.5, trigger_reason="spec_change"
    )
    assert speaker.results(1) == [
        {
            "item": "1",
            "fence": 1,
            "op": "result",
            "success": True,
            "message": "Synced",
            "requeue_after": 0,
            "duration_seconds": 1.5,
            "trigger_reason": "spec_change",
            "drift_detected": False,
        }
    ]
    assert worker.leases.held == {}
    await ctx.record_reconciliation(1, ReconcileResult(True))
    assert len(speaker.results(1)) == 1, "a second record has nothing to end and is no error"


async def test_no_result_is_sent_as_null(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1)
    await ctx.record_reconciliation(1, None)
    assert speaker.results(1)[0]["success"] is None


async def test_a_result_whose_answer_was_lost_counts_as_given(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker
) -> None:
    await claimed(ctx, speaker, 1)
    speaker.answers_to_lose = 1
    await ctx.record_reconciliation(1, ReconcileResult(True))
    assert len(speaker.results(1)) == 2
    assert worker.leases.held == {}


async def test_deletion_within_the_lease(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1)
    speaker.answers |= {
        "get_finalizers": {"status": 200, "finalizers": []},
        "hard_delete": {"status": 200, "deleted": True},
    }
    await ctx.remove_finalizer(1, "dns_record")
    assert await ctx.get_finalizers(1) == []
    assert await ctx.hard_delete_resource(1) is True
    await ctx.record_reconciliation(1, ReconcileResult(True, "Deleted"))
    assert speaker.ops(1) == ["remove_finalizer", "get_finalizers", "hard_delete", "result"]


async def test_an_untouched_resource_is_handed_out_again(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1, 2)
    await ctx.record_reconciliation(1, ReconcileResult(True))
    speaker.offer(resource(3))
    again = await ctx.get_resources_needing_reconciliation(TYPES, limit=10)
    assert [it["id"] for it in again] == [2, 3]
    assert len(speaker.claims) == 2


async def test_a_loop_that_never_records_is_reported_by_its_last_phase(
    ctx: ReconcilerContext, speaker: Speaker
) -> None:
    await claimed(ctx, speaker, 1, 2, 3)
    await ctx.update_status(1, "ready", "fine", observed_generation=1)
    await ctx.update_status(2, "failed", "broken")
    await ctx.update_status(3, "reconciling", "")
    speaker.offer(resource(4))
    assert [it["id"] for it in await ctx.get_resources_needing_reconciliation(TYPES)] == [4]
    ended = [(it["success"], it["message"]) for number in (1, 2, 3) for it in speaker.results(number)]
    assert ended == [(True, "fine"), (False, "broken"), (False, "the plugin went on without recording a result")]


async def test_work_in_another_task_is_left_alone_by_the_next_claim(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker
) -> None:
    await claimed(ctx, speaker, 1)
    await asyncio.create_task(ctx.update_status(1, "reconciling"))
    speaker.offer(resource(2))
    assert [it["id"] for it in await ctx.get_resources_needing_reconciliation(TYPES)] == [2]
    assert 1 in worker.leases.held


async def test_no_types_means_no_request(ctx: ReconcilerContext, speaker: Speaker) -> None:
    assert await ctx.get_resources_needing_reconciliation([]) == []
    assert speaker.claims == []


async def test_a_shutdown_ends_the_wait_for_work(
    ctx: ReconcilerContext, speaker: Speaker, shutdown: asyncio.Event, until: Any
) -> None:
    waiting = asyncio.create_task(ctx.get_resources_needing_reconciliation(TYPES))
    await until(lambda: speaker.claims)
    shutdown.set()
    assert await asyncio.wait_for(waiting, 5) == []


async def test_a_forgotten_registration_is_made_again(
    ctx: ReconcilerContext, speaker: Speaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("no8s_operator.worker.REGISTER_PAUSE", 0)
    speaker.is_known = False
    assert len(await claimed(ctx, speaker, 1)) == 1
    assert [it["name"] for it in speaker.registered] == ["dns_record", "dns_record"]


async def test_a_conflict_has_the_words_of_the_server(speaker: Speaker, shutdown: asyncio.Event) -> None:
    speaker.conflict = (
        "Resource type 'DnsRecord' is already claimed by reconciler 'dns_record'. Cannot register 'other_dns'."
    )
    async with Server(speaker.url) as server:
        worker = Worker(server, "other_dns", [{"resource_type": "DnsRecord"}], "host-1", shutdown)
        with pytest.raises(ValueError) as raised:
            await worker.register()
    assert str(raised.value) == speaker.conflict


async def test_an_outage_is_said_once_and_survived(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker, caplog: pytest.LogCaptureFixture, until: Any
) -> None:
    caplog.set_level(logging.INFO)
    await claimed(ctx, speaker, 1)
    port = speaker.server.port
    await speaker.server.close()
    writing = asyncio.create_task(ctx.update_status(1, "ready"))
    await until(lambda: "Cannot reach the server" in caplog.text)
    replacement = Speaker()
    replacement.leases = speaker.leases
    replacement.server.port = port
    await replacement.server.start_server()
    await writing
    assert replacement.ops(1) == ["status"]
    assert caplog.text.count("Cannot reach the server") == 1
    assert caplog.text.count("answers again") == 1
    await replacement.server.close()
    worker.leases.held.clear()


async def test_a_write_gives_up_when_its_lease_has_run_out(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker
) -> None:
    await claimed(ctx, speaker, 1)
    worker.leases.held[1].expires = asyncio.get_running_loop().time()
    await speaker.server.close()
    with pytest.raises(ServerUnreachableError):
        await ctx.update_status(1, "ready")


async def test_an_answer_that_is_none_does_not_end_the_renewals(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker, caplog: pytest.LogCaptureFixture, until: Any
) -> None:
    await claimed(ctx, speaker, 1)
    expires = worker.leases.held[1].expires
    speaker.garbage = ["<html>", "null", '{"lost": [{}]}']
    await until(lambda: worker.leases.held[1].expires > expires)
    assert speaker.garbage == []
    assert caplog.text.count("Worker dns_record could not renew its leases") == 3


async def test_a_lease_that_cannot_be_renewed_is_given_up(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker, until: Any
) -> None:
    await claimed(ctx, speaker, 1)
    await speaker.server.close()
    worker.leases.held[1].expires = asyncio.get_running_loop().time()
    await until(lambda: worker.leases.why_lost(1))
    with pytest.raises(StaleLeaseError, match="expired while the server could not be reached"):
        await ctx.update_status(1, "ready")


async def test_everything_goes_back_unharmed_when_the_host_stops(
    ctx: ReconcilerContext, speaker: Speaker, worker: Worker
) -> None:
    await claimed(ctx, speaker, 1, 2)
    await ctx.update_status(1, "reconciling")
    await worker.close()
    assert speaker.released == ["1", "2"]
    assert speaker.results(1) == []


async def test_a_worker_that_the_server_forgot_holds_nothing(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1)
    speaker.is_known = False
    with pytest.raises(StaleLeaseError, match="Worker not found"):
        await ctx.update_status(1, "ready")


async def test_a_claim_whose_answer_was_lost_is_made_again(ctx: ReconcilerContext, speaker: Speaker) -> None:
    speaker.claims_to_lose = 1
    await claimed(ctx, speaker, 1)
    first, second = speaker.claims[-2:]
    assert first["claim_id"] == second["claim_id"]
    await ctx.update_status(1, "ready")
    later = speaker.claims[-1]["claim_id"]
    await ctx.record_reconciliation(1, ReconcileResult(True))
    await claimed(ctx, speaker, 2)
    assert speaker.claims[-1]["claim_id"] != later


async def test_marking_a_resource_under_work_is_its_requeue_time(ctx: ReconcilerContext, speaker: Speaker) -> None:
    await claimed(ctx, speaker, 1)
    await ctx.db.mark_resource_for_reconciliation(1, delay_seconds=7)
    await ctx.record_reconciliation(1, ReconcileResult(True))
    assert speaker.results(1)[0]["requeue_after"] == 7


async def test_the_sooner_of_a_mark_and_a_result_counts(ctx: ReconcilerContext, speaker: Speaker) -> None:
    for number, (mark, requeue_after) in enumerate([(7, 300), (300, 7)], start=1):
        await claimed(ctx, speaker, number)
        await ctx.db.mark_resource_for_reconciliation(number, delay_seconds=mark)
        await ctx.record_reconciliation(number, ReconcileResult(True, requeue_after=requeue_after))
        assert speaker.results(number)[0]["requeue_after"] == 7


async def test_a_mark_that_comes_when_the_result_is_on_the_way_goes_to_the_server(
    ctx: ReconcilerContext, speaker: Speaker, until: Any
) -> None:
    await claimed(ctx, speaker, 1)
    speaker.writes_may_end.clear()
    ending = asyncio.create_task(ctx.record_reconciliation(1, ReconcileResult(True)))
    await until(lambda: speaker.results(1))
    await ctx.db.mark_resource_for_reconciliation(1, delay_seconds=7)
    speaker.writes_may_end.set()
    await ending
    assert "requeue_after" not in speaker.results(1)[0]
    assert speaker.marks == [(1, 7)]


async def test_there_is_no_sql_behind_the_context(ctx: ReconcilerContext) -> None:
    with pytest.raises(AttributeError, match="no SQL database"):
        _ = ctx.db.pool
