"""What an author writes."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from no8s_operator.fleet.answers import Answer
from no8s_operator.fleet.inventory import Inventory


@dataclass(frozen=True)
class Watch:
    """Wakes a reconciler: a write of a section, or a change of what a JSON pointer leads to in it."""

    section: str
    path: str | None = None


@dataclass(frozen=True)
class ClusterEvent:
    """Wakes a reconciler: an object of this kind in the cluster of the entry."""

    group: str
    version: str
    kind: str
    namespace: str | None = None


@dataclass(frozen=True)
class Entry:
    """One entry of the fleet, as it was when it was lent."""

    id: str
    kind: str = ""
    tenant: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    is_deleting: bool = False
    attempt: int = 0
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(cls, item: dict[str, Any]) -> "Entry":
        """From an item of a claim."""
        it = item["object"]
        return cls(
            id=it["entry"],
            kind=it.get("kind") or "",
            tenant=it.get("tenant"),
            labels=it.get("labels") or {},
            is_deleting=bool(it.get("deleting")),
            attempt=item.get("attempt", 0),
            reasons=tuple(item.get("reasons") or ()),
        )


class Component(ABC):
    """A component reconciler: what it is for, what wakes it, what of the inventory it reads and writes."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    watches: ClassVar[tuple[Watch, ...]] = ()
    cluster_events: ClassVar[tuple[ClusterEvent, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    # So many entries at once on this host, and on all hosts together (100 unless said).
    concurrency: ClassVar[int] = 10
    total: ClassVar[int | None] = None

    @abstractmethod
    async def reconcile(self, entry: Entry, inventory: Inventory) -> Answer:
        """Makes the world match what the inventory says of `entry`.

        It may run twice, late, or after a crash between any two of its lines, so it compares and corrects.
        It answers soon: what takes long is begun and looked at again (`requeue`). While `entry.is_deleting`
        it takes away what it made, and is ready when nothing is left. Raise `Failed` for a failure and `Busy`
        where somebody has too much to do; any other exception is a failure that may pass.
        """

    async def close(self) -> None:
        """Lets go of what the component holds, such as connections."""
        return None

    def registration(self) -> dict[str, Any]:
        """What it says of itself to the mothership."""
        body: dict[str, Any] = {
            "name": self.name,
            "handles": [{"kind": it} for it in self.kinds],
            "watches": [_without_none(section=it.section, path=it.path) for it in self.watches],
            "grants": {"read": list(self.reads), "write": list(self.writes)},
        }
        if self.total is not None:
            body["concurrency"] = self.total
        if self.cluster_events:
            body["cluster_events"] = [
                _without_none(group=it.group, version=it.version, kind=it.kind, namespace=it.namespace)
                for it in self.cluster_events
            ]
        return body


def _without_none(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value is not None}
