"""What a component reconciler answers."""

from dataclasses import dataclass, field, replace
from typing import Any

# Longest message and longest reason that the server takes, in bytes.
MESSAGE_MAX = 32 * 1024
REASON_MAX = 1024
ELLIPSIS = "…"
# How long somebody is left alone who has too much to do and does not say for how long.
BUSY_SECONDS = 10.0


def _cut(text: str, most: int) -> str:
    """As much of a text as the server takes: a result that says too much must not get lost for it."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= most:
        return text
    return encoded[: most - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS


@dataclass(frozen=True)
class Condition:
    """One observation: `Reachable` is `True`, since the cluster answers."""

    type: str
    status: str
    reason: str
    message: str = ""

    def to_json(self) -> dict[str, str]:
        reason, message = _cut(self.reason, REASON_MAX), _cut(self.message, MESSAGE_MAX)
        return {"type": self.type, "status": self.status, "reason": reason, "message": message}


@dataclass(frozen=True)
class WaitsFor:
    """A section, or what a JSON pointer leads to in it, or a condition that is to be `True`; of this entry
    or another. `version` is what was read of the section; of another entry it counts, and none is that it was
    not there."""

    section: str | None = None
    path: str | None = None
    entry: str | None = None
    condition: str | None = None
    version: int | None = None

    def __post_init__(self) -> None:
        of_section = self.path is not None or self.version is not None
        if (self.section is None) == (self.condition is None) or (of_section and self.section is None):
            raise ValueError("what is waited for is a section, perhaps with a path and a version, or a condition")

    def to_json(self) -> dict[str, Any]:
        named: dict[str, Any] = {"section": self.section, "path": self.path, "entry": self.entry}
        named |= {"condition": self.condition, "version": self.version}
        if self.section is not None and self.entry is not None and self.version is None:
            named["version"] = 0
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class Answer:
    """An end that is no failure. `ready`, `requeue` and `not_ready` make them."""

    outcome: str
    message: str = ""
    retry_after: float | None = None
    waits_for: tuple[WaitsFor, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def with_condition(self, type: str, status: str, reason: str, message: str = "") -> "Answer":
        """The same, with a condition of the component's own."""
        return replace(self, conditions=(*self.conditions, Condition(type, status, reason, message)))

    def again_after(self, seconds: float) -> "Answer":
        """The same, and look again after this time in any case."""
        return replace(self, retry_after=seconds)

    def to_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {"outcome": self.outcome, "message": _cut(self.message, MESSAGE_MAX)}
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        if self.outcome == "not_ready":
            body["waits_for"] = [it.to_json() for it in self.waits_for]
        if self.conditions:
            body["conditions"] = [it.to_json() for it in self.conditions]
        return body


def ready(message: str = "") -> Answer:
    """All is as it should be."""
    return Answer("ready", message)


def requeue(seconds: float, message: str = "") -> Answer:
    """It goes well and is not finished: come back after a while."""
    return Answer("requeue", message, retry_after=seconds)


def not_ready(message: str, *waits_for: WaitsFor) -> Answer:
    """Something that others make is not there yet. Costs no retry; a write of it wakes the entry at once."""
    return Answer("not_ready", message, waits_for=waits_for)


@dataclass
class Failed(Exception):
    """An end that is a failure. Raise it from `reconcile`; no secret may be in its message.

    `terminal`: nothing but a change helps. `unreachable`: the target cluster does not answer.
    """

    message: str
    terminal: bool = False
    unreachable: bool = False
    retry_after: float | None = None
    conditions: tuple[Condition, ...] = field(default=())

    def __str__(self) -> str:
        return self.message

    def to_json(self) -> dict[str, Any]:
        error_class = "terminal" if self.terminal else "unreachable" if self.unreachable else "transient"
        message = _cut(self.message, MESSAGE_MAX)
        body: dict[str, Any] = {"outcome": "failed", "message": message, "error_class": error_class}
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        if self.conditions:
            body["conditions"] = [it.to_json() for it in self.conditions]
        return body


@dataclass
class Busy(Exception):
    """Somebody has too much to do, as with HTTP's 429. Raise it from `reconcile`: nobody has failed, and it is
    tried again after `retry_after` seconds."""

    message: str
    retry_after: float | None = None

    def __str__(self) -> str:
        return self.message

    def to_json(self) -> dict[str, Any]:
        return requeue(BUSY_SECONDS if self.retry_after is None else self.retry_after, self.message).to_json()
