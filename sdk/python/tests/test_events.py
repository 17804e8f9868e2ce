"""The stream of events, from a server that does what a real one does only on bad days."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from no8s_operator import events
from no8s_operator.events import EventBus
from no8s_operator.http import Server


def frame(number: int, **data: Any) -> bytes:
    body = {
        "event_type": "MODIFIED",
        "resource_id": number,
        "resource_name": f"record-{number}",
        "resource_type_name": "DnsRecord",
        "resource_type_version": "v1",
        "resource_data": data,
    }
    return f"id: {number}\nevent: MODIFIED\ndata: {json.dumps(body)}\n\n".encode()


class Stream:
    """Answers each request with what is next in `answers`: a refusal, or bytes and the end of the stream."""

    def __init__(self, *answers: int | bytes) -> None:
        self.answers = list(answers)
        self.asked: list[str | None] = []
        app = web.Application()
        app.router.add_get("/api/v1/events", self._answer)
        self.server = TestServer(app)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers.get("Last-Event-ID"))
        answer = self.answers.pop(0) if self.answers else b""
        if isinstance(answer, int):
            return web.json_response({"detail": "no"}, status=answer)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(answer)
        return response


async def heard(stream: Stream, count: int) -> list[int]:
    await stream.server.start_server()
    try:
        async with Server(str(stream.server.make_url(""))) as server, EventBus(server).subscribe() as queue:
            return [(await asyncio.wait_for(queue.get(), 20)).resource_id for _ in range(count)]
    finally:
        await stream.server.close()


async def test_a_cut_stream_goes_on_after_the_last_event() -> None:
    stream = Stream(frame(1) + frame(2), frame(3))
    assert await heard(stream, 3) == [1, 2, 3]
    assert stream.asked[:2] == [None, "2"]


@pytest.mark.parametrize("status", [400, 410])
async def test_a_place_that_the_server_no_longer_has_is_given_up(status: int, caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream(frame(1), status, frame(7))
    assert await heard(stream, 2) == [1, 7]
    assert stream.asked[:3] == [None, "1", None]
    assert "Events after 1 are no longer to be had" in caplog.text


async def test_an_event_may_be_longer_than_what_is_read_at_a_time() -> None:
    assert await heard(Stream(frame(1, text="x" * 1_000_000) + frame(2)), 2) == [1, 2]


async def test_a_line_without_an_end_costs_the_stream_and_not_the_reader(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(events, "LINE_BYTES_MAX", 1000)
    assert await heard(Stream(frame(1) + b"data: " + b"x" * 5000, frame(2)), 2) == [1, 2]
    assert "a line is longer than 1000 bytes" in caplog.text
