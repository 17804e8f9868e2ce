"""The stream of events, from a server that does what a real one does only on bad days."""

import asyncio
import json
from pathlib import Path
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
        self.identities: list[str | None] = []
        # Who else asks is refused; nobody is if it is None.
        self.token: str | None = None
        app = web.Application()
        app.router.add_get("/api/v1/events", self._answer)
        self.server = TestServer(app)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.identities.append(request.headers.get("Authorization"))
        if self.token and self.identities[-1] != f"Bearer {self.token}":
            return web.json_response({"detail": "Token has expired"}, status=401)
        self.asked.append(request.headers.get("Last-Event-ID"))
        answer = self.answers.pop(0) if self.answers else b""
        if isinstance(answer, int):
            return web.json_response({"detail": "no"}, status=answer)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(answer)
        return response


async def heard(stream: Stream, count: int, **identity: Any) -> list[int]:
    await stream.server.start_server()
    try:
        url = str(stream.server.make_url(""))
        async with Server(url, **identity) as server, EventBus(server).subscribe() as queue:
            return [(await asyncio.wait_for(queue.get(), 20)).resource_id for _ in range(count)]
    finally:
        await stream.server.close()


async def test_a_cut_stream_goes_on_after_the_last_event() -> None:
    stream = Stream(frame(1) + frame(2), frame(3))
    assert await heard(stream, 3) == [1, 2, 3]
    assert stream.asked[:2] == [None, "2"]


async def test_a_stream_is_asked_for_in_the_name_of_the_host() -> None:
    stream = Stream(frame(1))
    stream.token = "of-the-host"
    assert await heard(stream, 1, token="of-the-host") == [1]


async def test_a_token_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    stream = Stream(frame(1))
    stream.token = "new"
    await stream.server.start_server()
    async with Server(str(stream.server.make_url("")), token_file=str(file)) as server:
        file.write_text("new")
        async with EventBus(server).subscribe() as queue:
            assert (await asyncio.wait_for(queue.get(), 20)).resource_id == 1
    await stream.server.close()
    assert stream.identities[:2] == ["Bearer old", "Bearer new"]


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
