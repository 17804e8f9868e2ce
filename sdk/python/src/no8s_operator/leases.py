"""Which resources a worker holds, and what it has said about them so far."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

logger = logging.getLogger(__name__)

# How many ended leases are remembered, so that a late write is told apart from one by a stranger.
# A host that holds this many at once would long have been out of memory for the records themselves.
ENDED_MAX = 10_000


@dataclass(eq=False)
class Lease:
    """One claimed resource. `fence` goes with every write; the server refuses an older one."""

    resource_id: int
    fence: Any
    record: dict[str, Any]
    expires: float
    task: "asyncio.Task[Any] | None" = None
    writer: "asyncio.Task[Any] | None" = None
    phase: str | None = None
    message: str = ""
    requeue_after: float | None = None
    # Its result is on the way: what comes now is not in it any more.
    is_reported: bool = False
    on_lost: "Callable[[], object] | None" = None

    @property
    def is_untouched(self) -> bool:
        return self.writer is None

    def soonest(self, requeue_after: float | None) -> float | None:
        """When the resource is due again: as its result says or as somebody has asked for, if that is sooner."""
        asked = [it for it in (requeue_after, self.requeue_after) if it is not None]
        return min(asked, default=None)


class Leases:
    """The leases of one worker by resource id, and the ids whose lease ended badly or for good."""

    def __init__(self) -> None:
        self.held: dict[int, Lease] = {}
        self._lost: OrderedDict[int, str] = OrderedDict()
        self._purged: OrderedDict[int, None] = OrderedDict()

    def take(self, lease: Lease) -> None:
        self.held[lease.resource_id] = lease
        self._lost.pop(lease.resource_id, None)

    def end(self, resource_id: int) -> None:
        self.held.pop(resource_id, None)

    def lose(self, resource_id: int, reason: str) -> None:
        lease = self.held.pop(resource_id, None)
        _remember(self._lost, resource_id, reason)
        logger.warning("Lost the lease of resource %s: %s", resource_id, reason)
        if lease and lease.on_lost:
            lease.on_lost()

    def why_lost(self, resource_id: int) -> str | None:
        return self._lost.get(resource_id)

    def purged(self, resource_id: int) -> None:
        _remember(self._purged, resource_id, None)

    def is_purged(self, resource_id: int) -> bool:
        return resource_id in self._purged

    def are_worked_on_for(self, task: "asyncio.Task[Any]") -> bool:
        """Whether other tasks still work on what `task` claimed."""
        return any(it.task is task and it.writer not in (None, task) for it in self.held.values())

    def left_by(self, task: "asyncio.Task[Any] | None") -> list[Lease]:
        """Leases that `task` claimed and no other task has written to."""
        return [it for it in self.held.values() if it.task is task and it.writer in (None, task)]


def _remember(book: "OrderedDict[int, Any]", key: int, value: Any) -> None:
    book[key] = value
    book.move_to_end(key)
    while len(book) > ENDED_MAX:
        book.popitem(last=False)
