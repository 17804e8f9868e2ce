"""The worker protocol: owners, leases, fences, batches."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from api import DNS_SPEC, Api, unique, unique_type
from conftest import Kind, Somebody
from worker import Worker


def test_registering_again_is_the_same_worker(admin: Api, kind: Kind) -> None:
    again = {**kind.worker.body, "host_id": unique("host")}
    admin.expect(200, "POST", "/workers", again)
    shown = admin.expect(200, "GET", f"/workers/{kind.worker.name}")
    assert shown["name"] == kind.worker.name
    assert shown["status"] == "Ready"
    assert {kind.worker.host_id, again["host_id"]} <= {it["host_id"] for it in shown["hosts"]}
    assert kind.worker.name in {it["name"] for it in admin.expect(200, "GET", "/workers")}


def test_a_type_has_one_owner(admin: Api, kind: Kind) -> None:
    other = unique("other")
    body = {"name": other, "handles": [{"resource_type": kind.name}], "host_id": "h", "concurrency": 1}
    detail = (
        f"Resource type '{kind.name}' is already claimed by reconciler '{kind.worker.name}'. Cannot register '{other}'."
    )
    admin.refused(409, detail, "POST", "/workers", body)
    admin.expect(404, "GET", f"/workers/{other}")


def test_a_type_is_free_when_its_owner_is_gone(admin: Api, kind: Kind) -> None:
    old = kind.ready()
    admin.expect(204, "DELETE", f"/workers/{kind.worker.name}")
    detail = f"No reconciler plugin registered for resource type '{kind.name}' and no action_plugin specified"
    admin.refused(400, detail, "POST", "/resources", kind.body())
    kind.worker = Worker(admin, [{"resource_type": kind.name}])
    assert kind.ready()["finalizers"] == [kind.worker.name]
    kind.delete(old)
    lent = kind.worker.one()
    assert lent.id == old["id"]
    lent.write(op="remove_finalizer", finalizer=kind.worker.name)
    assert lent.write(op="get_finalizers")["finalizers"] == old["finalizers"]
    lent.result(True, "Deleted")
    admin.expect(404, "GET", f"/resources/{old['id']}")


def test_a_worker_may_come_before_its_type(admin: Api) -> None:
    name = unique_type()
    worker = Worker(admin, [{"resource_type": name}])
    made = admin.expect(201, "POST", "/resource-types", {"name": name, "version": "v1", "schema": {}})
    body = {"name": unique("a"), "resource_type_name": name, "resource_type_version": "v1", "spec": {"a": 1}}
    created = admin.expect(201, "POST", "/resources", body)
    assert worker.one().id == created["id"]
    admin.expect(202, "DELETE", f"/resources/{created['id']}")
    admin.expect(200, "PUT", f"/resources/{created['id']}/finalizers", {"remove": [worker.name]})
    worker.close()
    admin.expect(204, "DELETE", f"/resource-types/{made['id']}")


@pytest.mark.parametrize("what", ["claim", "heartbeat", "writes", "results"])
def test_a_worker_that_does_not_exist(admin: Api, what: str) -> None:
    bodies = {
        "claim": {"limit": 1, "wait_seconds": 0, "host_id": "h"},
        "heartbeat": {"host_id": "h", "items": []},
        "writes": {"writes": []},
        "results": {"results": []},
    }
    admin.refused(404, "Worker not found", "POST", f"/workers/{unique('nothing')}/{what}", bodies[what])


def test_a_stranger_may_not_work(kind: Kind, user: Callable[..., Somebody]) -> None:
    somebody = user(["CREATE", "READ", "UPDATE", "DELETE"]).api
    body = {"limit": 1, "wait_seconds": 0, "host_id": "h"}
    somebody.expect(403, "POST", f"/workers/{kind.worker.name}/claim", body)
    somebody.expect(403, "POST", "/workers", {"name": unique("w"), "handles": [], "host_id": "h"})
    somebody.expect(403, "DELETE", f"/workers/{kind.worker.name}")


def test_an_item_is_lent_once(kind: Kind) -> None:
    created = [kind.create()["id"] for _ in range(5)]
    first = kind.worker.claim(limit=3)
    second = kind.worker.claim(limit=10)
    kind.worker.nothing()
    assert sorted(it.id for it in first + second) == created
    assert len(first) <= 3


def test_a_claim_waits_for_the_first_item(kind: Kind) -> None:
    began = time.monotonic()
    assert kind.worker.claim(wait_seconds=1) == []
    assert time.monotonic() - began >= 0.9


def test_a_claim_that_is_made_again_gets_the_same_items(kind: Kind) -> None:
    kind.create()
    name = unique("claim")
    (lost,) = kind.worker.claim(claim_id=name)
    (again,) = kind.worker.claim(claim_id=name)
    assert (again.item, again.fence) == (lost.item, lost.fence)
    assert kind.worker.claim(wait_seconds=1, claim_id=unique("claim")) == []
    again.make_ready()


def test_a_claim_of_nothing_gets_nothing(kind: Kind) -> None:
    kind.create()
    assert kind.worker.claim(limit=0) == []


def test_a_worker_shows_what_runs_and_what_waits(admin: Api, kind: Kind) -> None:
    for _ in range(3):
        kind.create()
    kind.worker.one()
    path = f"/workers/{kind.worker.name}"
    shown = admin.wait(path, lambda it: it["waiting"] == 2)
    assert shown["running"] == 1
    assert [(it["host_id"], it["leases"]) for it in shown["hosts"]] == [(kind.worker.host_id, 1)]


def test_what_is_to_go_comes_first_then_what_is_new_then_what_failed_then_the_rest(admin: Api, kind: Kind) -> None:
    deleted = kind.ready()
    steady = kind.create()
    lent = kind.worker.one()
    lent.phase("ready", "", 1)
    lent.result(True, requeue_after=1)
    failed = kind.create()
    lent = kind.worker.one(wait_seconds=0)
    assert lent.id == failed["id"]
    lent.phase("failed", "broken")
    lent.result(False, "broken", requeue_after=2)
    new = kind.create()
    kind.delete(deleted)
    admin.wait(f"/workers/{kind.worker.name}", lambda it: it["waiting"] == 4)
    order = [kind.worker.one().id for _ in range(4)]
    assert order == [deleted["id"], new["id"], failed["id"], steady["id"]]


def test_a_claim_can_be_for_some_types(admin: Api, kind: Kind) -> None:
    kind.create()
    assert kind.worker.claim(wait_seconds=1, resource_types=["SomethingElse"]) == []
    assert len(kind.worker.claim(resource_types=[kind.name])) == 1


def test_a_heartbeat_keeps_a_lease_and_names_what_is_lost(kind: Kind) -> None:
    kind.create()
    lent = kind.worker.one()
    answer = kind.worker.heartbeat(lent)
    assert [it["item"] for it in answer["items"]] == [lent.item]
    assert answer["lost"] == []
    lent.make_ready()
    assert [it["item"] for it in kind.worker.heartbeat(lent)["lost"]] == [lent.item]


def test_a_lease_that_is_renewed_does_not_end(make_kind: Callable[..., Kind]) -> None:
    kind = make_kind(lease_seconds=2)
    kind.create()
    lent = kind.worker.one()
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert kind.worker.heartbeat(lent)["lost"] == []
        time.sleep(0.5)
    lent.make_ready()


def test_a_lease_that_ends_is_a_failure(admin: Api, make_kind: Callable[..., Kind]) -> None:
    kind = make_kind(lease_seconds=1)
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("reconciling", "then nothing more")
    path = f"/resources/{created['id']}"
    after = admin.wait(path, lambda it: it["status"] == "failed")
    assert after["status_message"] == "lease expired"
    assert after["retry_count"] == 1
    (entry,) = admin.expect(200, "GET", path + "/history")
    assert (entry["success"], entry["error_message"]) == (False, "lease expired")
    assert lent.write(409, op="status", status="ready")["detail"].startswith("stale fence")
    assert kind.get(created) == after, "a late write changes nothing"


def test_a_later_claim_has_a_later_fence_and_the_older_one_is_refused(
    admin: Api, make_kind: Callable[..., Kind]
) -> None:
    kind = make_kind(lease_seconds=1)
    created = kind.create()
    early = kind.worker.one()
    path = f"/resources/{created['id']}"
    admin.wait(path, lambda it: it["status"] == "failed")
    admin.expect(202, "POST", path + "/reconcile")
    late = kind.worker.one()
    assert late.fence > early.fence
    for op in (
        {"op": "status", "status": "ready", "message": "late"},
        {"op": "condition", "type": "A", "status": "True", "reason": "R"},
        {"op": "outputs", "outputs": {"late": True}},
        {"op": "remove_finalizer", "finalizer": kind.worker.name},
        {"op": "result", "success": True},
    ):
        early.write(409, **op)
    late.make_ready()
    after = kind.get(created)
    assert (after["outputs"], after["finalizers"]) == ({}, [kind.worker.name])


def test_writes_of_a_batch_have_an_answer_each(kind: Kind) -> None:
    for _ in range(3):
        kind.create()
    first, second, third = kind.worker.claim(limit=3)
    answers = kind.worker.writes(
        first.raw(op="status", status="reconciling", message="1"),
        {**second.raw(op="status", status="reconciling"), "fence": 0},
        first.raw(op="status", status="ready", message="2", observed_generation=1),
        third.raw(op="status", status="nonsense"),
        third.raw(op="get_finalizers"),
    )
    assert [it["status"] for it in answers] == [200, 409, 200, 422, 200]
    assert answers[4]["finalizers"] == [kind.worker.name]
    assert kind.get({"id": first.id})["status_message"] == "2"


def test_after_the_result_the_lease_is_over(kind: Kind) -> None:
    kind.create()
    lent = kind.worker.one()
    lent.make_ready()
    lent.write(409, op="status", status="failed")


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("status", {"status": "ready", "message": "m", "observed_generation": 1}),
        ("conditions/Synced", {"status": "True", "reason": "R", "message": "m"}),
        ("outputs", {"outputs": {"a": 1}}),
    ],
)
def test_the_single_form_of_a_write(admin: Api, kind: Kind, what: str, body: dict[str, Any]) -> None:
    created = kind.create()
    lent = kind.worker.one()
    path = f"/resources/{created['id']}/{what}"
    assert "stale fence" in admin.expect(409, "PUT", path, {**body, "fence": 0})["detail"]
    admin.expect(200, "PUT", path, {**body, "fence": lent.fence})
    lent.result(True)


def test_an_administrator_may_write_while_nobody_works(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    admin.expect(200, "PUT", f"/resources/{resource['id']}/outputs", {"outputs": {"a": 1}})
    assert admin.expect(200, "GET", f"/resources/{resource['id']}/outputs") == {"outputs": {"a": 1}}


def test_what_cannot_be_meant_is_refused_and_not_passed_over(admin: Api, kind: Kind) -> None:
    kind.create()
    lent = kind.worker.one()
    path = f"/workers/{kind.worker.name}/heartbeat"
    for bad in ({"item": lent.item}, {"item": lent.item, "fence": "x"}):
        admin.expect(422, "POST", path, {"host_id": kind.worker.host_id, "items": [bad]})
    handles = [{"resource_type": unique_type(), "version": 1}]
    admin.invalid(["body", "handles"], "POST", "/workers", {"name": unique("w"), "handles": handles, "host_id": "h"})
    entry = admin.invalid(["query", "colour"], "POST", path + "?colour=red", {"host_id": "h", "items": []})
    assert entry["type"] == "extra_forbidden"
    admin.invalid(["query", "colour"], "POST", "/users/ldap-sync?colour=red")
    lent.make_ready()


@pytest.mark.differs("knows no If-Match")
def test_if_match_of_a_write_without_a_lease(admin: Api, kind: Kind) -> None:
    path = f"/resources/{kind.ready()['id']}"
    tag = admin.ask("GET", path).headers["etag"]
    written = admin.ask("PUT", path + "/outputs", {"outputs": {"a": 1}}, headers={"If-Match": tag})
    assert written.status_code == 200
    current = admin.ask("GET", path).headers["etag"]
    assert written.headers["etag"] == current != tag
    detail = f"If-Match does not name the current state, which is {current}"
    for what, body in (
        ("/status", {"status": "failed"}),
        ("/conditions/Synced", {"status": "True", "reason": "R"}),
        ("/outputs", {"outputs": {"a": 2}}),
    ):
        admin.refused(412, detail, "PUT", path + what, body, headers={"If-Match": tag})
    assert admin.ask("GET", path).headers["etag"] == current


def test_a_change_while_a_worker_runs_gives_exactly_one_more_run(admin: Api, kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    for number in range(3):
        spec = {**DNS_SPEC, "value": f"203.0.113.{number}"}
        admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": spec})
    kind.worker.nothing()
    lent.make_ready()
    again = kind.worker.one()
    assert again.record["generation"] == 4
    again.make_ready()
    kind.worker.nothing()
    assert kind.get(created)["observed_generation"] == 4


def test_a_result_says_all_in_one_entry(admin: Api, kind: Kind) -> None:
    ids = [kind.create()["id"] for _ in range(4)]
    lent: dict[int, Any] = {}
    while len(lent) < 4:
        lent |= {it.id: it for it in kind.worker.claim(limit=4)}
    ready, failed, requeue, waiting = (lent[it] for it in ids)
    condition = {"type": "Synced", "status": "True", "reason": "Done"}
    answers = kind.worker.results(
        ready.raw(outcome="ready", observed_generation=1, outputs={"ip": "1.2.3.4"}, conditions=[condition]),
        failed.raw(outcome="failed", message="boom"),
        requeue.raw(outcome="requeue", retry_after=3600),
        waiting.raw(outcome="not_ready", waits_for=[{"object": str(ids[1]), "condition": "Ready"}]),
    )
    assert [it["status"] for it in answers] == [200] * 4
    shown = [admin.expect(200, "GET", f"/resources/{it}") for it in ids]
    assert [it["status"] for it in shown] == ["ready", "failed", "reconciling", "reconciling"]
    assert (shown[0]["outputs"], shown[0]["conditions"][-1]["type"]) == ({"ip": "1.2.3.4"}, "Synced")
    assert (shown[1]["status_message"], shown[1]["retry_count"]) == ("boom", 1)
    kind.worker.nothing()
    other = {"outcome": "ready", "outputs": {"ip": "5.6.7.8"}}
    again, stale = kind.worker.results(ready.raw(**other), {**ready.raw(**other), "fence": 0})
    assert again["status"] == 200, "the answer to a result that was taken may have been lost"
    assert stale["status"] == 409
    assert admin.expect(200, "GET", f"/resources/{ids[0]}")["outputs"] == {"ip": "1.2.3.4"}


def test_a_result_says_the_phase_that_its_outcome_leaves_open(admin: Api, kind: Kind) -> None:
    for said, expected in (
        ({"outcome": "requeue"}, "reconciling"),
        ({"outcome": "requeue", "observed_generation": 1}, "reconciling"),
        ({"outcome": "requeue", "status": "ready", "observed_generation": 1}, "ready"),
        ({"outcome": "requeue", "status": "pending"}, "pending"),
        ({"outcome": "not_ready", "status": "pending"}, "pending"),
        ({"outcome": "failed", "status": "failed"}, "failed"),
    ):
        created = kind.create()["id"]
        (answer,) = kind.worker.results(kind.worker.one().raw(retry_after=3600, **said))
        assert answer["status"] == 200, answer
        shown = admin.expect(200, "GET", f"/resources/{created}")
        assert shown["status"] == expected, said
        assert shown["next_reconcile_time"] is not None, said
    kind.worker.nothing()


def test_what_failed_for_good_is_not_tried_again_until_it_changes(admin: Api, kind: Kind) -> None:
    created = kind.create()
    item = kind.worker.one()
    kind.worker.results(item.raw(outcome="failed", message="no such zone", error_class="terminal"))
    shown = admin.expect(200, "GET", f"/resources/{created['id']}")
    assert (shown["status"], shown["next_reconcile_time"]) == ("failed", None)
    kind.worker.nothing()
    admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": {**DNS_SPEC, "value": "198.51.100.7"}})
    kind.worker.one().make_ready()


def test_a_wait_for_what_has_changed_meanwhile_is_over_at_once(admin: Api, kind: Kind) -> None:
    other = kind.create()["id"]
    kind.worker.one().make_ready()
    kind.create()
    item = kind.worker.one()
    answer = admin.ask("GET", f"/resources/{other}")
    read = answer.headers["etag"].strip('"')
    admin.expect(200, "PUT", f"/resources/{other}/finalizers", {"add": ["external"]})
    kind.worker.results(item.raw(outcome="not_ready", waits_for=[{"object": str(other), "resource_version": read}]))
    assert kind.worker.one().item == item.item
    admin.expect(200, "PUT", f"/resources/{other}/finalizers", {"remove": ["external"]})


def test_a_wait_for_what_is_gone_is_over_at_once(kind: Kind) -> None:
    kind.create()
    item = kind.worker.one()
    kind.worker.results(item.raw(outcome="not_ready", retry_after=3600, waits_for=[{"object": "2147483647"}]))
    again = kind.worker.one()
    assert again.item == item.item
    again.make_ready()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"outcome": "perhaps"},
        {"outcome": "failed", "error_class": "odd"},
        {"outcome": "ready", "status": {"phase": "ready"}},
        {"outcome": "ready", "status": "pending"},
        {"outcome": "requeue", "status": "failed"},
        {"outcome": "not_ready", "status": "ready"},
        {"outcome": "failed", "status": "reconciling"},
        {"outcome": "requeue", "status": "shiny"},
        {"outcome": "not_ready", "waits_for": [{"object": "x"}]},
    ],
)
def test_a_result_that_makes_no_sense_is_refused(kind: Kind, wrong: dict[str, Any]) -> None:
    kind.create()
    item = kind.worker.one()
    (answer,) = kind.worker.results(item.raw(**wrong))
    assert answer["status"] == 422, answer
