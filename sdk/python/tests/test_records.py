"""Resources as plugins see them."""

from datetime import datetime

import pytest
from speaker import resource

from no8s_operator.records import ResourceRecord, naive, record, trigger_reason


def test_times_are_naive_and_in_utc() -> None:
    assert naive("2026-01-02T03:04:05.678901") == datetime(2026, 1, 2, 3, 4, 5, 678901)
    assert naive("2026-01-02T03:04:05Z") == datetime(2026, 1, 2, 3, 4, 5)
    assert naive("2026-01-02T05:04:05+02:00") == datetime(2026, 1, 2, 3, 4, 5)
    assert naive(None) is None


def test_every_promised_key_is_present() -> None:
    got = record({"id": "7", "name": "a", "spec": None})
    assert set(got) == set(ResourceRecord.__annotations__)
    assert got["id"] == 7
    assert got["spec"] == {}
    assert got["status"] == "pending"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "initial"),
        ({"status": "deleting"}, "deletion"),
        ({"last_reconcile_time": "2026-01-02T03:04:05", "generation": 2, "observed_generation": 1}, "spec_change"),
        ({"last_reconcile_time": "2026-01-02T03:04:05", "observed_generation": 1, "status": "failed"}, "retry"),
        ({"last_reconcile_time": "2026-01-02T03:04:05", "observed_generation": 1, "status": "ready"}, "scheduled"),
    ],
)
def test_the_trigger_reason_says_why(changes: dict[str, object], reason: str) -> None:
    assert trigger_reason({**record(resource(1, **changes))}) == reason
