"""The end of a host whose event loop stands still: code that blocks it stops every plugin of the host."""

import asyncio
import faulthandler
import os
import sys
import threading
from collections.abc import Callable

STEP_SECONDS = 1.0
# The log may be what it is stuck in.
TELL_SECONDS = 2.0
EXIT_STUCK = 70


def end_process(seconds: float) -> None:
    """Says where every thread is, and ends. Whoever supervises the host starts another one."""

    def tell() -> None:
        sys.stderr.write(
            f"The plugin host has stood still for {seconds:g} s and ends: a plugin blocks the event loop, "
            "such as with time.sleep or a request that is not awaited. Where it is:\n"
        )
        faulthandler.dump_traceback(file=sys.stderr)
        sys.stderr.flush()

    talk = threading.Thread(target=tell, daemon=True)
    talk.start()
    talk.join(TELL_SECONDS)
    os._exit(EXIT_STUCK)


class Watchdog:
    """Calls `end` when the loop has not run for `seconds`.

    Time is counted in steps of its own, so that a process that was frozen as a whole is not blamed for it.
    """

    def __init__(self, seconds: float, end: Callable[[float], None] = end_process) -> None:
        self._seconds = seconds
        self._step = min(STEP_SECONDS, seconds / 5)
        self._end = end
        self._ticks = 0
        self._is_over = threading.Event()
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begins to watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._tick()
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()
        if self._handle:
            self._handle.cancel()

    def _tick(self) -> None:
        self._ticks += 1
        self._handle = self._loop.call_later(self._step, self._tick)

    def _watch(self) -> None:
        seen, still = 0, 0.0
        while not self._is_over.wait(self._step):
            if self._loop.is_closed():
                return
            ticks = self._ticks
            still = still + self._step if ticks == seen else 0.0
            seen = ticks
            if still >= self._seconds:
                self._end(self._seconds)
                return
