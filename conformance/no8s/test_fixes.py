"""A12: what the first implementation gets wrong, by number, and what must happen instead.

9 (configuration of actions), 18 (packaging) and 20 (signals) are about the host and in `test_host.py`;
7, 8, 10, 16, 17 also have cases in other files.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from api import DNS_SPEC, Api, unique
from conftest import Kind
from test_lifecycle import seconds_until
from worker import Worker

pytestmark = pytest.mark.differs("has the fault that the case is named after")

OTHER = {**DNS_SPEC, "value": "203.0.113.51"}


def test_01_writes_answer_and_wake_the_owner(admin: Api, kind: Kind) -> None:
    woken: list[tuple[float, int]] = []

    def claim() -> None:
        lent = kind.worker.one(wait_seconds=20)
        woken.append((time.monotonic(), lent.record["generation"]))
        lent.make_ready()

    created: dict[str, Any] = {}
    for act in ("create", "update", "delete"):
        thread = threading.Thread(target=claim if act != "delete" else lambda: kind.worker.one().delete())
        thread.start()
        began = time.monotonic()
        if act == "create":
            created = kind.create()
        elif act == "update":
            admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": OTHER})
        else:
            kind.delete(created)
        thread.join(30)
        if act != "delete":
            assert woken[-1][0] - began < 2
    assert [it[1] for it in woken] == [1, 2]
    admin.expect(404, "GET", f"/resources/{created['id']}")


def test_02_a_resource_has_one_owner(admin: Api, kind: Kind) -> None:
    others = Worker(admin, [{"action": unique("action").replace("-", "_")}])
    created = kind.create()
    others.nothing()
    kind.worker.one().make_ready()
    assert kind.get(created)["status"] == "ready"
    others.close()


def test_03_what_is_being_deleted_is_visible_and_the_last_finalizer_purges(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    path = f"/resources/{resource['id']}"
    admin.expect(200, "PUT", path + "/finalizers", {"add": ["ext"]})
    kind.delete(resource)
    assert kind.get(resource)["status"] == "deleting"
    assert resource["id"] in {it["id"] for it in admin.expect(200, "GET", "/resources?status=deleting&limit=10000")}
    lent = kind.worker.one()
    lent.write(op="remove_finalizer", finalizer=kind.worker.name)
    assert lent.write(op="get_finalizers")["finalizers"] == ["ext"]
    assert lent.write(op="hard_delete")["deleted"] is False
    lent.result(True, "Deleted")
    assert kind.get(resource)["status"] == "deleting"
    kind.worker.nothing()
    answer = admin.expect(200, "PUT", path + "/finalizers", {"remove": ["ext"]})
    assert answer == {"message": "All finalizers removed, resource deleted", "resource_id": resource["id"]}
    admin.refused(404, "Resource not found", "GET", path)


@pytest.mark.parametrize("says_failed", [True, False])
def test_04_a_failed_deletion_is_tried_again(admin: Api, kind: Kind, says_failed: bool) -> None:
    resource = kind.ready()
    kind.delete(resource)
    lent = kind.worker.one()
    if says_failed:
        lent.phase("failed", "in use")
    lent.result(False, "Delete failed: in use")
    after = kind.get(resource)
    assert after["status"] == "deleting"
    assert after["deleted_at"] is not None
    assert 50 < seconds_until(after["next_reconcile_time"]) < 70
    kind.worker.nothing()
    admin.expect(202, "POST", f"/resources/{resource['id']}/reconcile")
    again = kind.worker.one()
    assert again.record["status"] == "deleting"
    again.delete()
    admin.expect(404, "GET", f"/resources/{resource['id']}")


def test_05_nothing_stays_in_reconciling(admin: Api, make_kind: Callable[..., Kind]) -> None:
    kind = make_kind(lease_seconds=1)
    steady = kind.ready()
    admin.expect(202, "POST", f"/resources/{steady['id']}/reconcile")
    lent = kind.worker.one()
    lent.phase("reconciling", "checking for drift")
    lent.result(True, requeue_after=30)
    assert kind.get(steady)["status"] == "ready"
    crashed = kind.create()
    kind.worker.one().phase("reconciling")
    after = admin.wait(f"/resources/{crashed['id']}", lambda it: it["status"] == "failed")
    assert after["status_message"] == "lease expired"


def test_06_back_off_holds_and_a_change_ends_it(admin: Api, kind: Kind) -> None:
    created = kind.create()
    kind.worker.one().fail()
    assert kind.get(created)["observed_generation"] == 0
    kind.worker.nothing()
    changed = admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": OTHER})
    assert changed["retry_count"] == 0
    kind.worker.one().make_ready()


def test_07_a_change_during_a_run_is_not_lost_and_observed_never_goes_back(admin: Api, kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    lent.phase("reconciling")
    changed = admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": OTHER})
    assert changed["status"] == "pending"
    lent.phase("ready", "for the old spec", 1)
    lent.result(True)
    during = kind.get(created)
    assert (during["generation"], during["observed_generation"]) == (2, 1)
    assert during["status"] != "ready"
    again = kind.worker.one()
    assert again.record["generation"] == 2
    again.phase("ready", "", 2)
    again.phase("ready", "", 1)
    again.result(True)
    assert kind.get(created)["observed_generation"] == 2


def test_08_conditions_set_at_once_all_survive(kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    answers: list[int] = []

    def set_one(number: int) -> None:
        op = lent.raw(op="condition", type=f"C{number}", status="True", reason="R", message="")
        answers.append(kind.worker.writes(op)[0]["status"])

    threads = [threading.Thread(target=set_one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == [200] * 8
    assert {f"C{number}" for number in range(8)} <= {it["type"] for it in kind.get(created)["conditions"]}


def test_10_and_22_history_outlives_the_resource(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    kind.delete(resource)
    kind.worker.one().delete()
    admin.expect(404, "GET", f"/resources/{resource['id']}")
    entries = admin.expect(200, "GET", f"/resources/{resource['id']}/history")
    assert [it["success"] for it in entries] == [True, True]


def test_11_a_name_is_one_of_its_type_and_free_after_the_purge(admin: Api, make_kind: Callable[..., Kind]) -> None:
    first, second = make_kind(), make_kind()
    resource = first.ready()
    second.create(name=resource["name"])
    first.delete(resource)
    admin.expect(409, "POST", "/resources", first.body(name=resource["name"]))
    first.worker.one().delete()
    first.create(name=resource["name"])


def test_12_a_plugin_that_removes_another_finalizer_still_ends(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    kind.delete(resource)
    lent = kind.worker.one()
    lent.write(op="remove_finalizer", finalizer="no8s-postgres")
    assert lent.write(op="get_finalizers")["finalizers"] == [kind.worker.name]
    lent.result(True, "Deleted")
    admin.refused(404, "Resource not found", "GET", f"/resources/{resource['id']}")


def test_13_asking_for_a_run_wakes_who_waits(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(kind.worker.one(wait_seconds=20) and time.monotonic()))
    thread.start()
    began = time.monotonic()
    admin.expect(202, "POST", f"/resources/{resource['id']}/reconcile")
    thread.join(30)
    assert found[0] - began < 2


def test_14_one_slow_item_holds_up_nobody(kind: Kind) -> None:
    slow = kind.create()
    held = kind.worker.one()
    for _ in range(3):
        created = kind.create()
        kind.worker.one().make_ready()
        assert kind.get(created)["status"] == "ready"
    assert kind.get(slow)["status"] == "pending"
    held.make_ready()


def test_15_health_is_where_everybody_looks(nobody: Api) -> None:
    nobody.expect(200, "GET", "/health")


def test_16_errors_do_not_show_the_inside(admin: Api, kind: Kind) -> None:
    resource = kind.create()
    for answer in (
        admin.ask("POST", "/resources", kind.body(name=resource["name"])),
        admin.ask("GET", "/resources?limit=-1"),
        admin.ask("GET", "/users?source=strange"),
        admin.ask("GET", f"/resources/{10**30}"),
    ):
        assert 400 <= answer.status_code < 500, answer.text
        assert "sql" not in answer.text.lower()


def test_17_lists_by_type_page_by_page(admin: Api, kind: Kind) -> None:
    ids = [kind.create()["id"] for _ in range(5)]
    seen: list[int] = []
    path = f"/resources?resource_type_name={kind.name}&resource_type_version=v1&limit=2"
    query = ""
    while True:
        answer = admin.ask("GET", path + query)
        assert answer.status_code == 200, answer.text
        seen += [it["id"] for it in answer.json()]
        if "x-continue" not in answer.headers:
            break
        query = f"&continue={answer.headers['x-continue']}"
    assert seen == ids[::-1]


def test_19_times_are_in_utc_whatever_the_machine_thinks(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    now = datetime.now(UTC).replace(tzinfo=None)
    for key in ("created_at", "updated_at", "last_reconcile_time"):
        assert abs((datetime.fromisoformat(resource[key]) - now).total_seconds()) < 60, key


def test_21_an_update_that_changes_nothing_changes_nothing(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    for body in ({}, {"spec": DNS_SPEC}, {"spec": DNS_SPEC, "plugin_config": {}}):
        after = admin.expect(200, "PUT", f"/resources/{resource['id']}", body)
        assert (after["generation"], after["status"]) == (1, "ready")
    kind.worker.nothing()


def test_23_a_condition_has_one_of_three_statuses(admin: Api, kind: Kind) -> None:
    created = kind.create()
    lent = kind.worker.one()
    for status in ("true", "yes", "", None):
        lent.write(422, op="condition", type="Synced", status=status, reason="R")
    body = {"status": "maybe", "reason": "R", "message": "", "fence": lent.fence}
    admin.expect(422, "PUT", f"/resources/{created['id']}/conditions/Synced", body)
    assert "Synced" not in {it["type"] for it in kind.get(created)["conditions"]}


def test_24_defaults_are_applied_and_draft_7_is_whole(admin: Api, make_kind: Callable[..., Kind]) -> None:
    schema = {
        "type": "object",
        "definitions": {"port": {"type": "integer", "minimum": 1}},
        "properties": {
            "port": {"$ref": "#/definitions/port"},
            "size": {"type": ["string", "null"], "default": "small"},
            "mode": {"enum": ["a", "b"]},
            "deep": {"type": "object", "properties": {"x": {"default": 1}}},
        },
        "if": {"properties": {"mode": {"const": "b"}}, "required": ["mode"]},
        "then": {"required": ["port"]},
    }
    kind = make_kind(schema)
    created = kind.create(spec={"mode": "a", "deep": {}, "unlisted": {"kept": True}})
    assert created["spec"] == {"mode": "a", "deep": {"x": 1}, "size": "small", "unlisted": {"kept": True}}
    for spec in ({"mode": "b"}, {"port": 0}, {"size": 5}):
        assert "Spec validation failed" in admin.expect(400, "POST", "/resources", kind.body(spec=spec))["detail"]
    kind.create(spec={"mode": "b", "port": 1, "size": None})
