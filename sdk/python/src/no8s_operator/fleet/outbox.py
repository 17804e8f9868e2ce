"""Results go out together: whatever has come up while the last request was under way is the next one."""

import asyncio
import contextlib
import json
import logging
from dataclasses import dataclass
from typing import Any

import aiohttp

from no8s_operator.errors import ServerError
from no8s_operator.http import PASSING, PAUSE_FIRST, PAUSE_MAX, Server

logger = logging.getLogger(__name__)

BATCH_MAX = 1000
# Most of one request, unless one result alone has more: a third of what the server takes.
BATCH_BYTES_MAX = 1024 * 1024
# Most of a refusal that is told on: it says what was wrong with something of any size.
DETAIL_MAX = 1000


@dataclass(frozen=True)
class Ready:
    """One result, and who waits for it to arrive."""

    result: dict[str, Any]
    arrived: asyncio.Future[None]
    # It says no more than that what was meant was refused.
    is_last: bool = False

    def refused(self, detail: Any) -> "Ready":
        """What is said instead, under the same fence."""
        text = detail if isinstance(detail, str) else json.dumps(detail)
        result = {
            "item": self.result["item"],
            "fence": self.result["fence"],
            "outcome": "failed",
            "message": f"the result was refused: {text[:DETAIL_MAX]}",
        }
        return Ready(result, self.arrived, is_last=True)


Waiting = list[Ready]


class Outbox:
    """Sends results until the server has them, or nobody waits for that any more."""

    def __init__(self, server: Server, path: str) -> None:
        self._server = server
        self._path = path
        self._waiting: Waiting = []
        self._sender: asyncio.Task[None] | None = None

    async def send(self, result: dict[str, Any]) -> None:
        """Returns when the server has taken the result, or has refused it and then taken that it did.

        Otherwise the item would not show the refusal until its lease runs out.
        """
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(Ready(result, arrived))
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send_all(), name=f"send {self._path}")
        await arrived

    async def close(self) -> None:
        if self._sender:
            self._sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sender

    async def _send_all(self) -> None:
        while self._waiting:
            count = _fitting(self._waiting)
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            await self._send(batch)

    async def _send(self, batch: Waiting) -> None:
        pause = PAUSE_FIRST
        while batch := [it for it in batch if not it.arrived.done()]:
            try:
                answer = await self._server.ask("POST", self._path, {"results": [it.result for it in batch]})
            except ServerError as error:
                if error.status == 413 and len(batch) > 1:
                    # Whoever is in the way takes less than the server does.
                    await self._send(batch[: len(batch) // 2])
                    batch = batch[len(batch) // 2 :]
                    continue
                if error.status not in PASSING:
                    logger.warning("Results were refused: %s", error)
                    _settle(batch, [])
                    return
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                self._server.is_silent(str(error) or type(error).__name__)
            else:
                self._server.answered()
                batch = _settle(batch, (answer or {}).get("results", []))
                if not batch:
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX)


def _fitting(waiting: Waiting) -> int:
    """How many of them fit into one request."""
    count = total = 0
    for ready in waiting[:BATCH_MAX]:
        total += len(json.dumps(ready.result))
        if count and total > BATCH_BYTES_MAX:
            break
        count += 1
    return count


def _settle(batch: Waiting, answers: list[dict[str, Any]]) -> Waiting:
    """Tells who waits; returns what is to be sent in a moment.

    That is what may be taken then, and what is said instead of what never will be.
    """
    again: Waiting = []
    for index, ready in enumerate(batch):
        answer = answers[index] if index < len(answers) else {}
        status = int(answer.get("status", 200))
        if status == 429 or status >= 500:
            again.append(ready)
            continue
        if status >= 400:
            logger.warning("A result for %s was refused: %s", ready.result["item"], answer.get("detail"))
            # Of one that came too late there is nothing more to say.
            if status != 409 and not ready.is_last:
                again.append(ready.refused(answer.get("detail")))
                continue
        if not ready.arrived.done():
            ready.arrived.set_result(None)
    return again
