"""The base classes of reconciler plugins, and what they are handed."""

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from no8s_operator.cancellation import is_cancelled
from no8s_operator.errors import ServerError, StaleLeaseError
from no8s_operator.records import ResourceRecord, trigger_reason

if TYPE_CHECKING:
    from no8s_operator.plugins.actions.base import ActionPlugin

__all__ = [
    "BaseReconciler",
    "DetailedResult",
    "ReconcileResult",
    "ReconcilerContext",
    "ReconcilerPlugin",
    "ResourceRecord",
    "StaleLeaseError",
]

logger = logging.getLogger(__name__)

PHASES = ("pending", "reconciling", "ready", "failed", "deleting")
CONDITION_STATUSES = ("True", "False", "Unknown")
# How long a request for work waits at the server. A plain loop adds its own sleep to this.
WAIT_SECONDS = 20.0
# After an error that is not the connection's (those are waited out), before the next claim.
CLAIM_PAUSE = 5.0


@dataclass
class ReconcileResult:
    """How one reconciliation ended."""

    success: bool = False
    message: str = ""
    requeue_after: int | None = None


@dataclass
class DetailedResult(ReconcileResult):
    """A result with more to keep in history, such as `plan_output` or `resources_created`."""

    drift_detected: bool = False
    details: dict[str, Any] = field(default_factory=dict)


class ReconcilerContext:
    """A plugin's way to the server. Every write is made under the lease of the resource it is for.

    A write to a resource whose lease is lost raises `StaleLeaseError` and changes nothing.
    """

    def __init__(self, db: Any, registry: Any, shutdown_event: asyncio.Event, event_bus: Any = None) -> None:
        self.db = db
        self.registry = registry
        self.shutdown_event = shutdown_event
        self.event_bus = event_bus

    async def get_resources_needing_reconciliation(
        self, resource_type_names: list[str], limit: int = 10
    ) -> list[dict[str, Any]]:
        """Claims at most `limit` resources that are due; waits a while for the first one.

        Each is this plugin's until `record_reconciliation`; leases are renewed in the background.
        """
        if not resource_type_names:
            return []
        again: list[dict[str, Any]] = await self.db.settle()
        if len(again) >= limit:
            return again[:limit]
        wait = 0.0 if again else WAIT_SECONDS
        claimed: list[dict[str, Any]] = await self.db.claim(list(resource_type_names), limit - len(again), wait)
        return again + claimed

    async def update_status(
        self, resource_id: int, status: str, message: str = "", observed_generation: int | None = None
    ) -> None:
        """Sets the phase. The standard conditions and the next reconcile time follow from it."""
        if status not in PHASES:
            raise ValueError(f"{status!r} is not a status: use one of {', '.join(PHASES)}")
        body: dict[str, Any] = {"status": status, "message": message}
        if observed_generation is not None:
            body["observed_generation"] = observed_generation
        await self._write(resource_id, {"op": "status", **body}, "/status", body)
        self._note(resource_id, status, message)

    async def set_condition(
        self,
        resource_id: int,
        condition_type: str,
        status: str,
        reason: str,
        message: str = "",
        observed_generation: int | None = None,
    ) -> None:
        """Sets one condition. Its transition time changes only when its status does."""
        if status not in CONDITION_STATUSES:
            raise ValueError(f"{status!r} is not a condition status: use one of {', '.join(CONDITION_STATUSES)}")
        body: dict[str, Any] = {"status": status, "reason": reason, "message": message}
        if observed_generation is not None:
            body["observed_generation"] = observed_generation
        op = {"op": "condition", "type": condition_type, **body}
        await self._write(resource_id, op, f"/conditions/{quote(condition_type, safe='')}", body)

    async def get_action_plugin(self, name: str) -> "ActionPlugin":
        """The action plugin of that name, configured from the host's environment."""
        plugin: ActionPlugin = await self.registry.get_action_plugin(name)
        return plugin

    async def record_reconciliation(
        self,
        resource_id: int,
        result: ReconcileResult | None,
        duration_seconds: float | None = None,
        trigger_reason: str | None = None,
        drift_detected: bool = False,
    ) -> None:
        """Ends the reconciliation: into history, and when it is due again. `None` counts as a failure."""
        body: dict[str, Any] = {
            "success": None if result is None else bool(result.success),
            "message": "" if result is None else result.message,
            "requeue_after": None if result is None else result.requeue_after,
            "duration_seconds": duration_seconds,
            "trigger_reason": trigger_reason,
            "drift_detected": drift_detected,
        }
        if isinstance(result, DetailedResult):
            body.update(result.details)
        await self.db.finish(resource_id, {key: it for key, it in body.items() if it is not None or key == "success"})

    async def add_finalizer(self, resource_id: int, finalizer: str) -> None:
        """Adds a finalizer; one that is there stays there once."""
        op = {"op": "add_finalizer", "finalizer": finalizer}
        await self._write(resource_id, op, "/finalizers", {"add": [finalizer]})

    async def remove_finalizer(self, resource_id: int, finalizer: str) -> None:
        """Removes a finalizer; one that is not there is no error."""
        op = {"op": "remove_finalizer", "finalizer": finalizer}
        await self._write(resource_id, op, "/finalizers", {"remove": [finalizer]})
        self._note(resource_id, "released", "")

    async def get_finalizers(self, resource_id: int) -> list[str]:
        """The finalizers as they are now; none if the resource is gone."""
        answer = await self.db.write(resource_id, {"op": "get_finalizers"})
        if answer is not None:
            return list(answer["finalizers"])
        resource = await self.db.get_resource(resource_id)
        return list(resource["finalizers"]) if resource else []

    async def hard_delete_resource(self, resource_id: int) -> bool:
        """Whether the resource is gone: only one that is being deleted and has no finalizers goes."""
        answer = await self.db.write(resource_id, {"op": "hard_delete"})
        if answer is None:
            return await self.db.get_resource(resource_id) is None
        if answer["deleted"]:
            self.db.leases.purged(resource_id)
            self._note(resource_id, "released", "")
        return bool(answer["deleted"])

    async def update_outputs(self, resource_id: int, outputs: dict[str, Any]) -> None:
        """Replaces the outputs of the resource."""
        await self._write(resource_id, {"op": "outputs", "outputs": outputs}, "/outputs", {"outputs": outputs})

    async def _write(self, resource_id: int, op: dict[str, Any], what: str, body: dict[str, Any]) -> None:
        if await self.db.write(resource_id, op) is None:
            await self.db.without_lease("PUT", resource_id, what, body)

    def _note(self, resource_id: int, phase: str, message: str) -> None:
        lease = self.db.leases.held.get(resource_id)
        if lease:
            lease.phase, lease.message = phase, message


class ReconcilerPlugin(ABC):
    """A plugin that owns resource types and makes the world match their resources."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The plugin's name: its finalizer, its worker, its entry point."""

    @property
    @abstractmethod
    def resource_types(self) -> list[str]:
        """Names of the resource types this plugin owns."""

    @abstractmethod
    async def start(self, ctx: ReconcilerContext) -> None:
        """Runs until `ctx.shutdown_event` is set."""

    @abstractmethod
    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        """Makes the world match one resource. May run again for the same generation."""

    @abstractmethod
    async def stop(self) -> None:
        """Cleans up; called once, when the host stops."""


class BaseReconciler(ReconcilerPlugin):
    """A reconciler whose loop is provided: woken at once, never asleep while something is due.

    Implement `name`, `resource_types` and `reconcile`. An exception in `reconcile` is a failed result.
    """

    reconcile_interval: int = 30
    max_concurrent_reconciles: int = 1
    """How many resources may be in `reconcile` at once. Raise it if yours can run beside itself."""

    async def start(self, ctx: ReconcilerContext) -> None:
        running: set[asyncio.Task[None]] = set()
        freed = asyncio.Event()

        def done(task: asyncio.Task[None]) -> None:
            running.discard(task)
            freed.set()

        try:
            while not ctx.shutdown_event.is_set():
                freed.clear()
                free = max(1, self.max_concurrent_reconciles) - len(running)
                if free < 1:
                    # A slot frees in bounded time: the lease of a hanging reconcile ends, which cancels it.
                    await freed.wait()
                    continue
                for resource in await self._claim(ctx, free):
                    task = asyncio.create_task(self._run(resource, ctx), name=f"{self.name} {resource['id']}")
                    running.add(task)
                    task.add_done_callback(done)
                    ctx.db.hand_to(resource["id"], task)
            if running:
                await asyncio.wait(running)
        finally:
            for task in running:
                task.cancel()

    async def stop(self) -> None:
        """Nothing to clean up unless a subclass says so."""

    async def _claim(self, ctx: ReconcilerContext, limit: int) -> list[dict[str, Any]]:
        try:
            return await self._due(ctx, limit)
        except ServerError:
            logger.exception("Reconciler plugin %s could not ask for work", self.name)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ctx.shutdown_event.wait(), CLAIM_PAUSE)
            return []

    async def _due(self, ctx: ReconcilerContext, limit: int) -> list[dict[str, Any]]:
        return await ctx.get_resources_needing_reconciliation(self.resource_types, limit=limit)

    async def _run(self, resource: dict[str, Any], ctx: ReconcilerContext) -> None:
        started = time.monotonic()
        resource_id, name = resource["id"], resource["name"]

        async def record(result: ReconcileResult | None) -> None:
            await ctx.record_reconciliation(
                resource_id,
                result,
                duration_seconds=time.monotonic() - started,
                trigger_reason=trigger_reason(resource),
                drift_detected=isinstance(result, DetailedResult) and result.drift_detected,
            )

        try:
            result = await self._outcome(resource, ctx)
            try:
                await record(result)
            # No result at all, or one that cannot be sent or is refused. Kept, the lease would only run out.
            except (AttributeError, TypeError, ValueError) as error:
                logger.exception(
                    "Reconciler plugin %s returned no usable result for %s (%s)", self.name, name, resource_id
                )
                await record(ReconcileResult(success=False, message=f"the result cannot be recorded: {error}"))
        except StaleLeaseError as error:
            logger.warning("Reconciler plugin %s lost %s (%s): %s", self.name, name, resource_id, error.reason)
        except Exception:
            logger.exception("Reconciler plugin %s could not record %s (%s)", self.name, name, resource_id)

    async def _outcome(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult | None:
        try:
            return await self.reconcile(resource, ctx)
        except StaleLeaseError as error:
            if error.resource_id == resource["id"]:
                raise
            return ReconcileResult(success=False, message=str(error))
        # Let through, a cancellation that nobody asked for would leave the resource to its lease.
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            return self._failed(resource, error)
        # A plugin that calls sys.exit must not take the host with it.
        except (Exception, SystemExit) as error:
            return self._failed(resource, error)

    def _failed(self, resource: dict[str, Any], error: BaseException) -> ReconcileResult:
        logger.error(
            "Reconciler plugin %s failed on %s (%s)", self.name, resource["name"], resource["id"], exc_info=error
        )
        return ReconcileResult(success=False, message=str(error) or type(error).__name__)
