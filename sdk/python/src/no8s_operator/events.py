"""Events of resources, as the server streams them."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import aiohttp

from no8s_operator.http import PAUSE_FIRST, PAUSE_MAX, Server
from no8s_operator.records import naive

__all__ = ["EventBus", "EventType", "ResourceEvent"]

logger = logging.getLogger(__name__)

# Longer than any event: a spec and a plugin_config of 1 MiB each, and what is around them.
LINE_BYTES_MAX = 8 << 20
# The server sends a comment every 15 s, so a longer silence is a dead connection.
SILENCE_SECONDS = 60.0
# The server does not know the place that we want to go on from.
PLACE_IS_GONE = frozenset({400, 410})

# As many as a subscriber may be behind; beyond that it loses the oldest, and is told so in the log.
WAITING_MAX = 256


class EventType(StrEnum):
    """What happened to a resource."""

    CREATED = "CREATED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    RECONCILED = "RECONCILED"
    TRIGGER = "TRIGGER"


@dataclass
class ResourceEvent:
    """One event of one resource."""

    event_type: EventType
    resource_id: int
    resource_name: str
    resource_type_name: str
    resource_type_version: str
    resource_data: dict[str, Any] = field(default_factory=dict)
    timestamp: datetime | None = None


Filter = Callable[[ResourceEvent], bool]


class EventBus:
    """Events for whoever subscribes; connected to the server only while somebody does."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._subscribers: dict[asyncio.Queue[ResourceEvent], Filter | None] = {}
        self._reader: asyncio.Task[None] | None = None
        self._last_id: str | None = None

    @asynccontextmanager
    async def subscribe(self, filter_fn: Filter | None = None) -> AsyncIterator["asyncio.Queue[ResourceEvent]"]:
        """A queue of the events that `filter_fn` lets through."""
        queue: asyncio.Queue[ResourceEvent] = asyncio.Queue(WAITING_MAX)
        self._subscribers[queue] = filter_fn
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(), name="events")
        try:
            yield queue
        finally:
            del self._subscribers[queue]
            if not self._subscribers:
                await self.close()

    async def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    async def _read(self) -> None:
        pause = PAUSE_FIRST
        while True:
            try:
                async for name, data in self._frames():
                    pause = PAUSE_FIRST
                    self._publish(name, data)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                if isinstance(error, aiohttp.ClientResponseError) and error.status in PLACE_IS_GONE and self._last_id:
                    logger.warning(
                        "Events after %s are no longer to be had; going on with those from now on", self._last_id
                    )
                    self._last_id = None
                    continue
                self._server.is_silent(str(error) or type(error).__name__)
            except ValueError as error:
                logger.warning("The stream of events could not be read: %s", error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX)

    async def _frames(self) -> AsyncIterator[tuple[str, str]]:
        headers = {"Accept": "text/event-stream"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        async with self._server.stream("/api/v1/events", headers, silence_seconds=SILENCE_SECONDS) as answer:
            self._server.answered()
            name, data = "message", ""
            async for line in _lines(answer.content):
                key, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not line:
                    if data:
                        yield name, data
                    name, data = "message", ""
                elif key == "event":
                    name = value
                elif key == "data":
                    data += value
                elif key == "id":
                    self._last_id = value

    def _publish(self, name: str, data: str) -> None:
        try:
            body = json.loads(data)
            event = ResourceEvent(
                event_type=EventType(body.get("event_type", name)),
                resource_id=int(body["resource_id"]),
                resource_name=body["resource_name"],
                resource_type_name=body["resource_type_name"],
                resource_type_version=body["resource_type_version"],
                resource_data=body.get("resource_data") or {},
                timestamp=naive(body.get("timestamp")),
            )
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("An event could not be read: %s", error)
            return
        for queue, filter_fn in self._subscribers.items():
            if filter_fn is None or filter_fn(event):
                _offer(queue, event)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[str]:
    """The lines of a stream. The stream's own iterator gives up on lines that its buffer cannot hold."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" in chunk:
            *whole, rest = rest.split(b"\n")
            for raw in whole:
                yield raw.decode(errors="replace").rstrip("\r")
        if len(rest) > LINE_BYTES_MAX:
            raise ValueError(f"a line is longer than {LINE_BYTES_MAX} bytes")


def _offer(queue: "asyncio.Queue[ResourceEvent]", event: ResourceEvent) -> None:
    if queue.full():
        dropped = queue.get_nowait()
        logger.warning("A subscriber is too slow and lost an event of resource %s", dropped.resource_id)
    queue.put_nowait(event)
