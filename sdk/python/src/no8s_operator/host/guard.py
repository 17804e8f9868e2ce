"""A plugin's own loop that is stuck in one resource, which is the end of all its others."""

import asyncio
from types import TracebackType

from no8s_operator.leases import Lease
from no8s_operator.worker import Worker

# A loop that lost a lease may be asleep between two looks; that of the guide sleeps 30 s.
GRACE_SECONDS = 60.0


class Guard:
    """Cancels `task`, the `start()` of a plugin, once it neither gives up a lost resource nor asks for another.

    What `BaseReconciler` hands to tasks of their own is cancelled with the lease and does not concern it.
    """

    def __init__(self, worker: Worker, task: "asyncio.Task[None]") -> None:
        self._worker = worker
        self._task = task
        self._looks: set[asyncio.TimerHandle] = set()
        self.stuck_in: str | None = None

    def __enter__(self) -> "Guard":
        self._worker.unattended = self._lost
        return self

    def __exit__(self, *_: "type[BaseException] | BaseException | TracebackType | None") -> None:
        self._worker.unattended = None
        for look in self._looks:
            look.cancel()

    def _lost(self, lease: Lease) -> None:
        asking = self._worker.asking
        # Who was told by the answer to its own write is not stuck in it.
        if lease.task is self._task and not asking.is_asking(lease.writer or self._task):
            self._look_later(lease, asking.count(self._task))

    def _look_later(self, lease: Lease, asked: int) -> None:
        def look() -> None:
            self._looks.discard(handle)
            self._look(lease, asked)

        handle = asyncio.get_running_loop().call_later(GRACE_SECONDS, look)
        self._looks.add(handle)

    def _look(self, lease: Lease, asked: int) -> None:
        asking = self._worker.asking
        if self._task.done() or asking.count(self._task) != asked:
            return
        if asking.is_asking(self._task) or self._worker.leases.are_worked_on_for(self._task):
            self._look_later(lease, asked)
            return
        self.stuck_in = f"{lease.record['name']} ({lease.resource_id})"
        self._task.cancel()
