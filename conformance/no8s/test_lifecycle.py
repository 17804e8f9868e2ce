"""A3, A4.5 and A13: the life of a resource, with the suite as its worker."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from api import DNS_SPEC, OFFSET, Api
from conftest import Kind

STARTED = {
    "Ready": ("Unknown", "ReconcileStarted", "Reconciliation in progress"),
    "Reconciling": ("True", "ReconcileStarted", "Reconciliation has started"),
}
READY = {
    "Ready": ("True", "ReconcileSuccess", "Resource reconciled successfully"),
    "Reconciling": ("False", "ReconcileComplete", "Reconciliation completed"),
    "Degraded": ("False", "NoErrors", ""),
}
RECORD_KEYS = {
    "id",
    "name",
    "resource_type_name",
    "resource_type_version",
    "action_plugin",
    "spec",
    "plugin_config",
    "metadata",
    "status",
    "generation",
    "observed_generation",
    "status_message",
    "conditions",
    "finalizers",
    "spec_hash",
    "outputs",
    "created_at",
    "updated_at",
    "deleted_at",
    "last_reconcile_time",
    "next_reconcile_time",
    "retry_count",
}


def conditions(resource: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {it["type"]: (it["status"], it["reason"], it["message"]) for it in resource["conditions"]}


def seconds_until(text: str) -> float:
    return (datetime.fromisoformat(text) - datetime.now(UTC).replace(tzinfo=None)).total_seconds()


def test_a_claim_hands_out_the_whole_record(kind: Kind) -> None:
    created = kind.create(plugin_config={"a": 1}, metadata={"b": 2})
    lent = kind.worker.one()
    assert set(lent.record) >= RECORD_KEYS
    assert (lent.item, lent.id) == (str(created["id"]), created["id"])
    assert (lent.record["plugin_config"], lent.record["metadata"]) == ({"a": 1}, {"b": 2})
    assert (lent.record["status"], lent.record["generation"]) == ("pending", 1)


def test_the_guides_plugin_makes_a_resource_ready(admin: Api, kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("reconciling", "Syncing DNS record")
    during = kind.get(created)
    assert (during["status"], during["status_message"]) == ("reconciling", "Syncing DNS record")
    assert conditions(during) == STARTED
    lent.make_ready()
    after = kind.get(created)
    assert (after["status"], after["status_message"]) == ("ready", "DNS record api.example.com synced")
    assert (after["observed_generation"], after["retry_count"]) == (1, 0)
    assert [it["type"] for it in after["conditions"]] == ["Ready", "Reconciling", "Degraded", "DnsRecordSynced"]
    own = ("True", "RecordUpserted", "A record for api.example.com synced")
    assert conditions(after) == {**READY, "DnsRecordSynced": own}
    for condition in after["conditions"]:
        assert condition["observedGeneration"] == 1
        assert OFFSET.fullmatch(condition["lastTransitionTime"])
    assert after["last_reconcile_time"] is not None
    assert 270 < seconds_until(after["next_reconcile_time"]) <= 301
    (entry,) = admin.expect(200, "GET", f"/resources/{created['id']}/history")
    fields = {"id", "resource_id", "generation", "success", "phase", "error_message", "reconcile_time"}
    counts = {"resources_created", "resources_updated", "resources_deleted"}
    assert set(entry) >= fields | counts
    assert (entry["resource_id"], entry["generation"]) == (created["id"], 1)
    assert (entry["success"], entry["phase"], entry["error_message"]) == (True, "completed", None)


def test_a_transition_time_changes_only_with_the_status(kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()

    def synced() -> dict[str, Any]:
        (it,) = [it for it in kind.get(created)["conditions"] if it["type"] == "Synced"]
        found: dict[str, Any] = it
        return found

    lent.write(op="condition", type="Synced", status="False", reason="A", message="a")
    first = synced()
    assert first["observedGeneration"] == 0
    lent.write(op="condition", type="Synced", status="False", reason="B", message="b", observed_generation=1)
    second = synced()
    assert (second["reason"], second["message"], second["observedGeneration"]) == ("B", "b", 1)
    assert second["lastTransitionTime"] == first["lastTransitionTime"]
    time.sleep(1)  # the times of conditions have whole seconds
    lent.write(op="condition", type="Synced", status="True", reason="B", message="b")
    assert synced()["lastTransitionTime"] != first["lastTransitionTime"]


def test_a_standard_condition_set_by_hand_changes_neither_back_off_nor_phase(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resources/{created['id']}"
    lent = kind.worker.one()
    lent.phase("reconciling")
    lent.write(op="condition", type="Ready", status="False", reason="Mine", message="m", observed_generation=99)
    assert {it["observedGeneration"] for it in kind.get(created)["conditions"]} == {1}
    lent.phase("failed", "broken")
    lent.write(op="condition", type="Ready", status="False", reason="Mine", message="m")
    lent.result(False, "broken")
    kept = ("status", "retry_count", "next_reconcile_time", "observed_generation")
    before = kind.get(created)
    assert (before["status"], before["retry_count"]) == ("failed", 1)
    for more in ({}, {"observed_generation": 99}):
        body = {"status": "True", "reason": "Mine", "message": "m", **more}
        after = admin.expect(200, "PUT", f"{path}/conditions/Ready", body)
        assert [after[it] for it in kept] == [before[it] for it in kept]
        assert conditions(after)["Ready"] == ("True", "Mine", "m")
        assert after["conditions"][0]["observedGeneration"] == 1
    kind.worker.nothing()
    admin.expect(200, "PUT", path, {"spec": {**DNS_SPEC, "value": "203.0.113.99"}})
    kind.worker.one().make_ready()
    assert kind.get(created)["status"] == "ready"


def test_a_condition_is_not_for_a_generation_that_is_still_to_come(kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.write(op="condition", type="Synced", status="True", reason="R", observed_generation=99)
    (synced,) = [it for it in kind.get(created)["conditions"] if it["type"] == "Synced"]
    assert synced["observedGeneration"] == 1


def test_a_failure_backs_off(admin: Api, kind: Kind) -> None:
    created = kind.create()
    delays = []
    for attempt in range(3):
        lent = kind.worker.one()
        lent.fail(f"broken {attempt}")
        after = kind.get(created)
        assert (after["status"], after["retry_count"]) == ("failed", attempt + 1)
        delays.append(seconds_until(after["next_reconcile_time"]))
        admin.expect(202, "POST", f"/resources/{created['id']}/reconcile")
    assert 53 < delays[0] < 67
    assert 107 < delays[1] < 133
    assert 215 < delays[2] < 265
    assert conditions(after) == {
        "Ready": ("False", "ReconcileFailed", "broken 2"),
        "Reconciling": ("False", "ReconcileFailed", ""),
        "Degraded": ("True", "ReconcileFailed", "broken 2"),
    }
    newest = admin.expect(200, "GET", f"/resources/{created['id']}/history")[0]
    assert (newest["success"], newest["phase"], newest["error_message"]) == (False, "failed", "broken 2")


def test_success_after_failures_starts_over(kind: Kind, admin: Api) -> None:
    created = kind.create()
    kind.worker.one().fail()
    admin.expect(202, "POST", f"/resources/{created['id']}/reconcile")
    kind.worker.one().make_ready()
    after = kind.get(created)
    assert (after["status"], after["retry_count"]) == ("ready", 0)
    assert conditions(after)["Degraded"] == READY["Degraded"]


def test_requeue_after_decides_the_next_time(kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("ready", "", 1)
    lent.result(True, requeue_after=30)
    assert 25 < seconds_until(kind.get(created)["next_reconcile_time"]) <= 31
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("ready", "", 1)
    lent.result(True, requeue_after=1)
    assert kind.worker.one().id == created["id"]


@pytest.mark.parametrize(
    ("observed", "success", "ends_as"), [(1, True, "ready"), (None, True, "reconciling"), (None, False, "failed")]
)
def test_a_result_ends_what_was_left_at_reconciling(
    kind: Kind, observed: int | None, success: bool, ends_as: str
) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("reconciling", "", observed)
    lent.result(success, "the message", requeue_after=30)
    assert kind.get(created)["status"] == ends_as


def test_a_result_without_any_status_counts_too(kind: Kind) -> None:
    created = kind.create()
    kind.worker.one().result(False, "broken")
    after = kind.get(created)
    assert (after["status"], after["status_message"]) == ("failed", "broken")


def test_no_result_is_a_failure_that_says_so(admin: Api, kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("reconciling")
    lent.result(None)
    after = kind.get(created)
    assert (after["status"], after["status_message"]) == ("failed", "reconcile returned None")
    (entry,) = admin.expect(200, "GET", f"/resources/{created['id']}/history")
    assert (entry["success"], entry["error_message"]) == (False, "reconcile returned None")


def test_history_is_newest_first_and_limited(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resources/{created['id']}"
    for _ in range(12):
        lent = kind.worker.one()
        lent.phase("ready", "", 1)
        lent.result(True)
        admin.expect(202, "POST", path + "/reconcile")
    entries = admin.expect(200, "GET", path + "/history")
    assert len(entries) == 10
    times = [it["reconcile_time"] for it in entries]
    assert times == sorted(times, reverse=True)
    assert len(admin.expect(200, "GET", path + "/history?limit=12")) == 12
    assert len(admin.expect(200, "GET", path + "/history?limit=3")) == 3


@pytest.mark.differs("keeps these to itself")
def test_history_tells_more(admin: Api, kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("ready", "", 1)
    more = {"duration_seconds": 1.5, "trigger_reason": "spec_change", "drift_detected": True}
    lent.result(True, "m", plan_output="p", apply_output="a", resources_created=2, **more)
    (entry,) = admin.expect(200, "GET", f"/resources/{created['id']}/history")
    assert {key: entry[key] for key in more} == more
    assert (entry["plan_output"], entry["apply_output"], entry["resources_created"]) == ("p", "a", 2)


def test_outputs_are_replaced(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resources/{created['id']}/outputs"
    lent = kind.worker.one()
    lent.write(op="outputs", outputs={"a": 1, "b": {"c": [2]}})
    assert admin.expect(200, "GET", path) == {"outputs": {"a": 1, "b": {"c": [2]}}}
    lent.write(op="outputs", outputs={"d": 3})
    assert admin.expect(200, "GET", path) == {"outputs": {"d": 3}}
    assert kind.get(created)["generation"] == 1


@pytest.mark.parametrize(
    "op",
    [
        {"op": "status", "status": "done"},
        {"op": "condition", "type": "A", "status": "yes", "reason": "R"},
        {"op": "outputs", "outputs": []},
        {"op": "nothing"},
    ],
)
def test_writes_that_mean_nothing_change_nothing(kind: Kind, op: dict[str, Any]) -> None:
    created = kind.create()
    lent = kind.worker.one()
    before = kind.get(created)
    lent.write(422, **op)
    assert kind.get(created) == before
    lent.make_ready()


def test_deletion_as_the_guide_does_it(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    path = f"/resources/{resource['id']}"
    answer = admin.expect(202, "DELETE", path)
    assert answer == {"message": "Resource marked for deletion", "resource_id": resource["id"]}
    lent = kind.worker.one()
    assert lent.record["status"] == "deleting"
    assert lent.record["deleted_at"] is not None
    lent.delete()
    admin.refused(404, "Resource not found", "GET", path)
    newest = admin.expect(200, "GET", path + "/history")[0]
    assert (newest["success"], newest["phase"]) == (True, "completed")


def test_the_deleting_conditions_are_set_at_once(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    kind.delete(resource)
    found = conditions(kind.get(resource))
    assert found["Ready"] == ("Unknown", "Deleting", "Resource is being deleted")
    assert found["Reconciling"] == ("False", "Deleting", "Resource is being deleted")
    assert found["Degraded"] == READY["Degraded"]


def test_a_resource_that_was_never_seen_can_go(admin: Api, kind: Kind) -> None:
    created = kind.create()
    kind.delete(created)
    kind.worker.one().delete()
    admin.expect(404, "GET", f"/resources/{created['id']}")


def test_a_second_delete_changes_nothing(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    kind.delete(resource)
    deleted_at = kind.get(resource)["deleted_at"]
    kind.delete(resource)
    assert kind.get(resource)["deleted_at"] == deleted_at


def test_ids_are_never_used_again(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    kind.delete(resource)
    kind.worker.one().delete()
    assert kind.create(name=resource["name"])["id"] > resource["id"]


def test_an_update_makes_it_due_at_once(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    spec = {**DNS_SPEC, "value": "203.0.113.51"}
    changed = admin.expect(200, "PUT", f"/resources/{resource['id']}", {"spec": spec})
    assert (changed["status"], changed["generation"], changed["observed_generation"]) == ("pending", 2, 1)
    lent = kind.worker.one()
    assert (lent.record["generation"], lent.record["spec"]) == (2, spec)
    lent.make_ready()
    assert kind.get(resource)["observed_generation"] == 2


def test_reconcile_makes_it_due_at_once(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    kind.worker.nothing()
    answer = admin.expect(202, "POST", f"/resources/{resource['id']}/reconcile")
    assert answer == {"message": "Reconciliation triggered", "resource_id": resource["id"]}
    assert kind.worker.one().id == resource["id"]
    assert kind.get(resource)["generation"] == 1


def test_reconcile_can_be_asked_for_later(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    path = f"/resources/{resource['id']}"
    admin.expect(202, "POST", path + "/reconcile", {"delay_seconds": 3})
    assert 0 < seconds_until(kind.get(resource)["next_reconcile_time"]) <= 3
    kind.worker.nothing()
    assert kind.worker.one().id == resource["id"]
    admin.invalid(["body", "delay_seconds"], "POST", path + "/reconcile", {"delay_seconds": -1})


def test_deleting_goes_first(admin: Api, make_kind: Callable[..., Kind]) -> None:
    kind = make_kind()
    resource = kind.ready()
    for _ in range(3):
        kind.create()
    kind.delete(resource)
    first = kind.worker.claim(limit=1)[0]
    assert first.id == resource["id"]
