"""Running plugins: each in its own task, started again when it crashes, stopped once."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from no8s_operator.cancellation import is_cancelled
from no8s_operator.host.guard import Guard
from no8s_operator.plugins.reconcilers.base import ReconcilerContext, ReconcilerPlugin
from no8s_operator.worker import Worker

logger = logging.getLogger(__name__)

RESTART_FIRST = 5
RESTART_MAX = 300
# A plugin that ran this long before it crashed starts over with the shortest delay.
RAN_WELL_SECONDS = 600.0
# For `stop()`, for the loop to end after it, and for it to end when cancelled. `concert serve` waits 10 s
# for the whole host.
STOP_SECONDS = 2.5


def restart_delay(crashes: int) -> int:
    """Seconds before start number `crashes + 1`: 5, 10, 20, … at most 300."""
    return int(min(RESTART_FIRST * 2 ** min(crashes - 1, 16), RESTART_MAX))


async def _contained(plugin: ReconcilerPlugin, ctx: ReconcilerContext) -> None:
    """`start()`, where sys.exit is a crash of the plugin and not the end of the host."""
    try:
        await plugin.start(ctx)
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code})") from error


async def _run(plugin: ReconcilerPlugin, ctx: ReconcilerContext, worker: Worker) -> None:
    """`start()` until it ends or crashes. That it is stuck is a crash."""
    # A task of its own: what it leaves behind is told apart by the task that claimed it.
    task = asyncio.create_task(_contained(plugin, ctx), name=f"start {plugin.name}")
    with Guard(worker, task) as guard:
        try:
            await task
        except asyncio.CancelledError as error:
            if guard.stuck_in is None:
                if is_cancelled() or ctx.shutdown_event.is_set():
                    raise
                # Let through, it would end the plugin as if somebody had asked for that.
                raise RuntimeError("start() was cancelled from within") from error
    # Also if it took the cancellation for a reason to return.
    if guard.stuck_in is not None and not ctx.shutdown_event.is_set():
        raise RuntimeError(f"it hung in {guard.stuck_in}, whose lease had ended")


@dataclass(eq=False)
class Running:
    """One plugin, the context it was given, and the task it runs in."""

    plugin: ReconcilerPlugin
    ctx: ReconcilerContext
    worker: Worker
    task: "asyncio.Task[None]"


class Supervisor:
    """All plugins of a host."""

    def __init__(self, shutdown_event: asyncio.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._shutdown = shutdown_event
        self._clock = clock
        self._running: list[Running] = []

    async def start(self, plugin: ReconcilerPlugin, ctx: ReconcilerContext, worker: Worker) -> None:
        task = asyncio.create_task(self._keep_running(plugin, ctx, worker), name=f"plugin {plugin.name}")
        self._running.append(Running(plugin, ctx, worker, task))
        logger.info("Started reconciler plugin: %s", plugin.name)

    async def _keep_running(self, plugin: ReconcilerPlugin, ctx: ReconcilerContext, worker: Worker) -> None:
        crashes = 0
        while not self._shutdown.is_set():
            began = self._clock()
            try:
                await _run(plugin, ctx, worker)
                return
            except Exception as error:
                crashes = 1 if self._clock() - began >= RAN_WELL_SECONDS else crashes + 1
                delay = restart_delay(crashes)
                logger.exception("Reconciler plugin %s crashed; starting it again in %s s", plugin.name, delay)
                await worker.abandon(f"reconciler plugin {plugin.name} crashed: {error}")
                await self._pause(delay)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._shutdown.wait(), seconds)
        except TimeoutError:
            return

    async def stop(self) -> None:
        """`stop()` once for each, a moment for their loops to end, then the rest is cancelled."""
        await asyncio.gather(*(self._stop_one(it) for it in self._running))

    async def _stop_one(self, running: Running) -> None:
        name = running.plugin.name
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await running.plugin.stop()
        except TimeoutError:
            logger.warning("Reconciler plugin %s did not stop within %g s", name, STOP_SECONDS)
        except (Exception, SystemExit, asyncio.CancelledError):
            if is_cancelled():
                raise
            logger.exception("Reconciler plugin %s failed to stop", name)
        _, pending = await asyncio.wait({running.task}, timeout=STOP_SECONDS)
        for task in pending:
            logger.warning("Reconciler plugin %s still runs and is cancelled", name)
            task.cancel()
            await asyncio.wait({task}, timeout=STOP_SECONDS)
        await running.worker.close()
        logger.info("Stopped reconciler plugin: %s", name)
