"""One plugin at the server: registered, claiming, holding leases, writing under fences.

A `Worker` is also what plugins know as `ctx.db`. There is no SQL behind it.
"""

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

import aiohttp

from no8s_operator import records
from no8s_operator.asking import Asking
from no8s_operator.errors import ServerError, StaleLeaseError
from no8s_operator.http import ANSWER_SECONDS, Server, unless
from no8s_operator.leases import Lease, Leases
from no8s_operator.writes import Writes

logger = logging.getLogger(__name__)

LEASE_SECONDS = 60
# A registration that the server forgot is made again, but never in a tight circle.
REGISTER_PAUSE = 1.0
# Without an answer leases run out by themselves, so giving them back is not worth a long wait.
ABANDON_SECONDS = 2.0


class Worker:
    """A named worker of one host. Several hosts with the same name share its work."""

    def __init__(
        self,
        server: Server,
        name: str,
        handles: list[dict[str, Any]],
        host_id: str,
        shutdown_event: asyncio.Event,
        *,
        lease_seconds: int = LEASE_SECONDS,
        deadline_seconds: int | None = None,
    ) -> None:
        self.server = server
        self.name = name
        self.handles = handles
        self.host_id = host_id
        self.shutdown_event = shutdown_event
        self.lease_seconds = lease_seconds
        self.deadline_seconds = deadline_seconds
        # Two renewals may fail before a lease runs out.
        self.renew_seconds = lease_seconds / 3
        self.leases = Leases()
        self.asking = Asking()
        # Told of a lost lease that nobody was handed: it may be what the plugin's own loop hangs in.
        self.unattended: Callable[[Lease], None] | None = None
        self._path = f"/api/v1/workers/{quote(name, safe='')}"
        self._writes = Writes(server, lambda: f"{self._path}/writes")
        self._renewal: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"ctx.db has no {name!r}: there is no SQL database behind it, only the server's API")

    # Registration and renewal.

    async def open(self) -> None:
        """Registers, and keeps the registration and every lease alive until `close`."""
        await self.register()
        self._renewal = asyncio.create_task(self._renew(), name=f"renew {self.name}")

    async def register(self) -> None:
        """Claims what this worker handles.

        How many items there may be at a time is not said: that would be a bound for all hosts of the
        worker together, and what this one can do is the limit of each of its claims.

        Raises `ValueError` with the server's words if another worker has it.
        """
        body: dict[str, Any] = {
            "name": self.name,
            "handles": self.handles,
            "host_id": self.host_id,
            "lease_seconds": self.lease_seconds,
        }
        if self.deadline_seconds is not None:
            body["deadline_seconds"] = self.deadline_seconds
        try:
            await unless(self.shutdown_event, self.server.ask_until("POST", "/api/v1/workers", body))
        except ServerError as error:
            if error.status == 409:
                raise ValueError(error.detail) from error
            raise

    async def close(self) -> None:
        """Gives back what is held, at no cost to it, and stops renewing."""
        if self._renewal:
            self._renewal.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._renewal
        await self._release(list(self.leases.held.values()))
        await self._writes.close()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.renew_seconds)
            try:
                await self._beat()
            except ServerError as error:
                if error.status == 404:
                    with contextlib.suppress(ValueError, ServerError):
                        await self.register()
                else:
                    logger.warning("Worker %s could not renew its leases: %s", self.name, error)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                self.server.is_silent(str(error) or type(error).__name__)
            # Such as an answer that is none of ours. Without renewals this worker would lose everything, silently.
            except Exception:
                logger.exception("Worker %s could not renew its leases", self.name)
            self._expire()

    async def _beat(self) -> None:
        held = list(self.leases.held.values())
        sent = asyncio.get_running_loop().time()
        items = [{"item": str(it.resource_id), "fence": it.fence} for it in held]
        body = {"host_id": self.host_id, "items": items}
        answer = await self.server.ask("POST", f"{self._path}/heartbeat", body, seconds=self.lease_seconds / 3)
        self.server.answered()
        lost = {int(it["item"]): it.get("reason") or "the lease ended" for it in answer.get("lost", [])}
        for lease in held:
            reason = lost.get(lease.resource_id)
            if reason is None:
                lease.expires = sent + self.lease_seconds
            elif self.leases.held.get(lease.resource_id) is lease:
                self.leases.lose(lease.resource_id, reason)

    def _expire(self) -> None:
        """A lease that could not be renewed in time may be somebody else's by now."""
        now = asyncio.get_running_loop().time()
        for lease in [it for it in self.leases.held.values() if it.expires < now]:
            self.leases.lose(lease.resource_id, "the lease expired while the server could not be reached")

    # Claims.

    async def claim(self, resource_types: list[str] | None, limit: int, wait_seconds: float) -> list[dict[str, Any]]:
        """Resources that are due, at most `limit`; waits for the first one, but not past a shutdown.

        Nobody knows when in a wait a lease began, so it counts from the start of the wait, which is short beside it.
        """
        wait_seconds = min(wait_seconds, self.lease_seconds / 3)
        body: dict[str, Any] = {"limit": limit, "wait_seconds": wait_seconds, "host_id": self.host_id}
        # Asked again under the same name, the server hands out again what was lost on the way.
        body["claim_id"] = uuid.uuid4().hex
        if resource_types is not None:
            body["resource_types"] = resource_types
        while not self.shutdown_event.is_set():
            sent = asyncio.get_running_loop().time()
            try:
                request = self.server.ask_until(
                    "POST", f"{self._path}/claim", body, seconds=wait_seconds + ANSWER_SECONDS
                )
                with self.asking.asks():
                    answer = await unless(self.shutdown_event, request)
            except ServerError as error:
                if error.status != 404:
                    raise
                await asyncio.sleep(REGISTER_PAUSE)
                await self.register()
                continue
            return [self._take(item, sent) for item in (answer or {}).get("items", [])]
        return []

    def _take(self, item: dict[str, Any], sent: float) -> dict[str, Any]:
        record: dict[str, Any] = {**records.record(item["object"])}
        lease = Lease(
            resource_id=record["id"],
            fence=item["lease"]["fence"],
            record=record,
            expires=sent + self.lease_seconds,
            task=asyncio.current_task(),
        )
        lease.on_lost = partial(self._lost, lease)
        self.leases.take(lease)
        return record

    def _lost(self, lease: Lease) -> None:
        if self.unattended:
            self.unattended(lease)

    async def settle(self) -> list[dict[str, Any]]:
        """What the current task claimed earlier and left behind; it asks for more, so it is done with it.

        A plain loop that ends a batch early, or never records results, must not sit on leases. What it
        never wrote to is given to it again. The rest is reported by the last phase it wrote.
        """
        again = []
        for lease in self.leases.left_by(asyncio.current_task()):
            if lease.is_untouched:
                again.append(lease.record)
            else:
                with contextlib.suppress(StaleLeaseError):
                    await self.finish(lease.resource_id, _unrecorded(lease))
        return again

    def hand_to(self, resource_id: int, task: "asyncio.Task[Any]") -> None:
        """Makes `task` the one that works on a claimed resource: it is cancelled if the lease is lost."""
        lease = self.leases.held.get(resource_id)
        if lease:
            lease.task = task
            lease.on_lost = task.cancel

    async def abandon(self, reason: str) -> None:
        """Ends every lease: what was begun has failed with `reason`, what was not goes back unharmed."""
        await self._release([it for it in self.leases.held.values() if it.is_untouched])
        result = {"success": False, "message": reason}
        with contextlib.suppress(Exception):
            async with asyncio.timeout(ABANDON_SECONDS):
                await asyncio.gather(*(self.finish(it, result) for it in list(self.leases.held)))

    async def _release(self, leases: list[Lease]) -> None:
        for lease in leases:
            self.leases.end(lease.resource_id)
        writes = [{"item": str(it.resource_id), "fence": it.fence, "op": "release"} for it in leases]
        if writes:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(ABANDON_SECONDS):
                    await self.server.ask("POST", f"{self._path}/writes", {"writes": writes})

    # Writes.

    async def write(self, resource_id: int, op: dict[str, Any]) -> dict[str, Any] | None:
        """One write under the lease of `resource_id`; None if this worker holds none.

        Raises `StaleLeaseError` when the lease is lost, `ValueError` for what the server finds invalid.
        """
        with self.asking.asks():
            return await self._write(resource_id, op)

    async def _write(self, resource_id: int, op: dict[str, Any]) -> dict[str, Any] | None:
        lease = self.leases.held.get(resource_id)
        if lease is None:
            reason = self.leases.why_lost(resource_id)
            if reason is not None:
                raise StaleLeaseError(resource_id, reason)
            return None
        lease.writer = asyncio.current_task()
        body = {"item": str(resource_id), "fence": lease.fence, **op}
        answer = await self._sent(body, lease.expires)
        status, detail = int(answer.get("status", 200)), str(answer.get("detail", ""))
        if status < 400:
            return answer
        if status == 422:
            raise ValueError(detail)
        if status not in (404, 409):
            raise ServerError(status, detail)
        if op["op"] == "result" and answer["repeated"]:
            # The first request arrived and only its answer was lost: that ended the lease.
            return answer
        if self.leases.held.get(resource_id) is lease:
            self.leases.lose(resource_id, detail)
        raise StaleLeaseError(resource_id, detail)

    async def _sent(self, body: dict[str, Any], deadline: float) -> dict[str, Any]:
        try:
            return await self._writes.send(body, deadline)
        except ServerError as error:
            if error.status != 404:
                raise
            # The server does not know this worker any more, so it knows none of its leases.
            return {"status": 409, "detail": error.detail, "repeated": False}

    async def finish(self, resource_id: int, result: dict[str, Any]) -> None:
        """Reports the result of a reconciliation, which ends the lease. Silent if there is none any more."""
        lease = self.leases.held.get(resource_id)
        if lease:
            lease.is_reported = True
            if (soonest := lease.soonest(result.get("requeue_after"))) is not None:
                result = {**result, "requeue_after": soonest}
        await self.write(resource_id, {"op": "result", **result})
        self.leases.end(resource_id)

    # What plugins reach for through `ctx.db`.

    async def get_resource(self, resource_id: int) -> dict[str, Any] | None:
        """The resource as it is now, or None."""
        return await self._get(f"/api/v1/resources/{int(resource_id)}")

    async def get_resource_by_name(self, name: str, resource_type: str, version: str) -> dict[str, Any] | None:
        """The resource of that type, version and name, or None."""
        parts = "/".join(quote(it, safe="") for it in (resource_type, version, name))
        return await self._get(f"/api/v1/resources/by-name/{parts}")

    async def get_history(self, resource_id: int, limit: int) -> list[dict[str, Any]]:
        """The last reconciliations of the resource, newest first."""
        found: list[dict[str, Any]] = await self._soon(
            "GET", f"/api/v1/resources/{int(resource_id)}/history?limit={limit}"
        )
        return found

    async def _get(self, path: str) -> dict[str, Any] | None:
        try:
            return {**records.record(await self._soon("GET", path))}
        except ServerError as error:
            if error.status == 404:
                return None
            raise

    async def mark_resource_for_reconciliation(self, resource_id: int, delay_seconds: float = 0) -> None:
        """Has the resource reconciled again after `delay_seconds`.

        For a resource under work this is its `requeue_after`. Otherwise, and when its result is on the way
        already, the server keeps the time.
        """
        lease = self.leases.held.get(resource_id)
        if lease and not lease.is_reported:
            lease.requeue_after = delay_seconds
        else:
            delay = {"delay_seconds": max(delay_seconds, 0)}
            await self._soon("POST", f"/api/v1/resources/{int(resource_id)}/reconcile", delay)

    async def without_lease(self, method: str, resource_id: int, what: str, body: Any) -> Any:
        """A write to a resource this worker does not hold. The server refuses it while somebody does."""
        try:
            return await self._soon(method, f"/api/v1/resources/{int(resource_id)}{what}", body)
        except ServerError as error:
            if error.status == 404 and self.leases.is_purged(resource_id):
                return None
            if error.status == 409:
                raise StaleLeaseError(resource_id, error.detail) from error
            raise

    async def _soon(self, method: str, path: str, body: Any = None) -> Any:
        deadline = asyncio.get_running_loop().time() + ANSWER_SECONDS
        with self.asking.asks():
            return await self.server.ask_until(method, path, body, deadline=deadline)


def _unrecorded(lease: Lease) -> dict[str, Any]:
    if lease.phase in ("ready", "released"):
        return {"success": True, "message": lease.message}
    return {"success": False, "message": lease.message or "the plugin went on without recording a result"}
