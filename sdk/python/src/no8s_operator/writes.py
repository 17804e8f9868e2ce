"""Writes of one worker, sent together.

Everything that is asked for in one turn of the event loop goes out in one request, because a
thousand small requests are the slow part of a thousand small reconciles. Each write has its own
answer. Writes of one resource keep their order: whoever makes them waits for each answer, and those
of one turn go out in one request.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from no8s_operator.errors import ServerError
from no8s_operator.http import Server

# Requests under way at once. While all are, further writes gather into a larger one.
REQUESTS_MAX = 4
WRITES_MAX = 256
# Below every sensible limit of a request body, yet one large write still goes alone.
BYTES_MAX = 1 << 20


@dataclass(eq=False)
class _Write:
    body: bytes
    answer: "asyncio.Future[dict[str, Any]]"
    deadline: float
    was_repeated: bool = False


class Writes:
    """The way out for one worker's writes."""

    def __init__(self, server: Server, path: Callable[[], str]) -> None:
        self._server = server
        self._path = path
        self._waiting: deque[_Write] = deque()
        self._requests: set[asyncio.Task[None]] = set()
        self._is_scheduled = False

    async def send(self, write: dict[str, Any], deadline: float) -> dict[str, Any]:
        """The server's answer to `write`, with `repeated` if it was asked more than once.

        What cannot be JSON is the caller's error, raised here and not in a batch with others.
        """
        loop = asyncio.get_running_loop()
        item = _Write(json.dumps(write, allow_nan=False).encode(), loop.create_future(), deadline)
        self._waiting.append(item)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._flush)
        return await item.answer

    def _flush(self) -> None:
        self._is_scheduled = False
        while self._waiting and len(self._requests) < REQUESTS_MAX:
            task = asyncio.ensure_future(self._request(self._batch()))
            self._requests.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._requests.discard(task)
        self._flush()

    def _batch(self) -> list[_Write]:
        batch = [self._waiting.popleft()]
        size = len(batch[0].body)
        while self._waiting and len(batch) < WRITES_MAX and size + len(self._waiting[0].body) <= BYTES_MAX:
            batch.append(self._waiting.popleft())
            size += len(batch[-1].body)
        return batch

    async def _request(self, batch: list[_Write]) -> None:
        body = b'{"writes":[' + b",".join(it.body for it in batch) + b"]}"

        def repeated() -> None:
            for item in batch:
                item.was_repeated = True

        try:
            answer = await self._server.ask_until(
                "POST", self._path(), body, deadline=max(it.deadline for it in batch), on_repeat=repeated
            )
            results = answer["results"]
            if len(results) != len(batch):
                raise ServerError(500, f"{len(batch)} writes got {len(results)} answers")
        except BaseException as error:
            for item in batch:
                if not item.answer.done():
                    item.answer.set_exception(error if isinstance(error, Exception) else ConnectionError("stopped"))
            if not isinstance(error, Exception):
                raise
            return
        for item, result in zip(batch, results, strict=True):
            if not item.answer.done():
                item.answer.set_result({**result, "repeated": item.was_repeated})

    async def close(self) -> None:
        for task in list(self._requests):
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
