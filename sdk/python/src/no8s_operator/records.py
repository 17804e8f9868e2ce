"""Resources as plugins see them: plain dictionaries with naive UTC times."""

from datetime import UTC, datetime
from typing import Any, TypedDict, cast


class ResourceRecord(TypedDict):
    """What `reconcile` is handed. Every key is present; `status` is the phase when it was claimed."""

    id: int
    name: str
    resource_type_name: str
    resource_type_version: str
    action_plugin: str
    spec: dict[str, Any]
    plugin_config: dict[str, Any]
    metadata: dict[str, Any]
    status: str
    generation: int
    observed_generation: int
    status_message: str | None
    conditions: list[dict[str, Any]]
    finalizers: list[str]
    spec_hash: str
    outputs: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    last_reconcile_time: datetime | None
    next_reconcile_time: datetime | None
    retry_count: int


_TIMES = ("created_at", "updated_at", "deleted_at", "last_reconcile_time", "next_reconcile_time")
_TEXTS = ("name", "resource_type_name", "resource_type_version", "action_plugin", "spec_hash")
_MAPS = ("spec", "plugin_config", "metadata", "outputs")


def naive(text: str | None) -> datetime | None:
    """The time in `text` as a naive datetime in UTC: what plugins compare with `datetime.utcnow()`."""
    if not text:
        return None
    time = datetime.fromisoformat(text)
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def record(wire: dict[str, Any]) -> ResourceRecord:
    """A record from the server's JSON, with every promised key."""
    out: dict[str, Any] = dict(wire)
    out["id"] = int(wire["id"])
    out.update({key: wire.get(key) or "" for key in _TEXTS})
    out.update({key: wire.get(key) or {} for key in _MAPS})
    out.update({key: wire.get(key) or [] for key in ("conditions", "finalizers")})
    out.update({key: int(wire.get(key) or 0) for key in ("generation", "observed_generation", "retry_count")})
    out.update({key: naive(wire.get(key)) for key in _TIMES})
    out["status"] = wire.get("status") or "pending"
    out["status_message"] = wire.get("status_message")
    return cast(ResourceRecord, out)


def trigger_reason(resource: dict[str, Any]) -> str:
    """Why a resource is worked on, in one word for its history."""
    if resource["status"] == "deleting":
        return "deletion"
    if resource["last_reconcile_time"] is None:
        return "initial"
    if resource["generation"] > resource["observed_generation"]:
        return "spec_change"
    return "retry" if resource["status"] == "failed" else "scheduled"
