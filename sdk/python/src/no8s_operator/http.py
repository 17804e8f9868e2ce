"""Requests to the server, repeated while it cannot be reached."""

import asyncio
import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from no8s_operator.errors import ServerError, ServerUnreachableError

logger = logging.getLogger(__name__)

# The server is down, starting, or asks for patience; the same request may work in a moment.
PASSING = frozenset({429, 502, 503, 504})
PAUSE_FIRST = 0.2
PAUSE_MAX = 10.0
ANSWER_SECONDS = 30.0
# Longest that a server may ask us to stay away.
RETRY_AFTER_MAX = 3600.0


class Server:
    """One server, and whether it answers. Says once that it does not, and once that it does again."""

    def __init__(
        self, url: str, token: str | None = None, ca: str | None = None, *, token_file: str | None = None
    ) -> None:
        self.url = url.rstrip("/")
        # A file is read again when what was in it is refused: somebody replaces tokens before they end.
        self._token_file = token_file
        self._token = _read(token_file) if token_file else token
        self._ca = ca
        self._session: aiohttp.ClientSession | None = None
        self._is_silent = False
        self._borrowed: Server | None = None

    def at(self, url: str, token: str) -> "Server":
        """Another address, known by the same authority, and somebody else to it. Uses these connections."""
        other = Server(url, token, self._ca)
        other._borrowed = self
        return other

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    def session(self) -> aiohttp.ClientSession:
        """The connections, made on first use: they belong to the running loop."""
        if self._borrowed:
            return self._borrowed.session()
        if self._session is None:
            secure: ssl.SSLContext | bool = True
            if self._ca:
                secure = ssl.create_default_context(cafile=self._ca)
            headers = {"Accept": "application/json"}
            # Every worker keeps one long poll open; 100 leaves room for writes beside them.
            connector = aiohttp.TCPConnector(limit=100, ssl=secure)
            # A request without a body has no type either; left alone, aiohttp would make one up.
            self._session = aiohttp.ClientSession(
                connector=connector, headers=headers, skip_auto_headers=["Content-Type"]
            )
        return self._session

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds: float = ANSWER_SECONDS,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """One request. Raises `ServerError` for a refusal and lets connection errors through."""
        token = self._token
        try:
            return await self._ask(method, path, body, seconds, headers)
        except ServerError as error:
            if error.status != 401 or not self._renew(token):
                raise
        return await self._ask(method, path, body, seconds, headers)

    def _renew(self, refused: str | None) -> bool:
        """Whether there is another token than the one that was refused."""
        if self._token_file:
            try:
                self._token = _read(self._token_file)
            except OSError as error:
                logger.warning("The token was refused, and there is no other one: %s", error)
        return self._token != refused

    async def _ask(self, method: str, path: str, body: Any, seconds: float, headers: dict[str, str] | None) -> Any:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        # What is said here goes before what the connections say.
        headers = {**(headers or {}), **self._identity()}
        if data is not None:
            headers["Content-Type"] = "application/json"
        timeout = aiohttp.ClientTimeout(total=seconds)
        request = self.session().request(method, self.url + path, data=data, headers=headers, timeout=timeout)
        async with request as answer:
            raw = await answer.read()
            if answer.status >= 400:
                wait = seconds_of(answer.headers.get("Retry-After"))
                raise ServerError(answer.status, _detail(raw, answer.reason), wait)
            return json.loads(raw) if raw else None

    @asynccontextmanager
    async def stream(
        self, path: str, headers: dict[str, str], *, silence_seconds: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to a GET as it comes, however long that takes, unless nothing comes for so long.

        Raises `aiohttp.ClientResponseError` for a refusal.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_read=silence_seconds)
        token = self._token
        answer = await self._get(path, headers, timeout)
        if answer.status == 401 and self._renew(token):
            answer.close()
            answer = await self._get(path, headers, timeout)
        async with answer:
            answer.raise_for_status()
            yield answer

    async def _get(self, path: str, headers: dict[str, str], timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        return await self.session().get(self.url + path, headers={**headers, **self._identity()}, timeout=timeout)

    def _identity(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    async def ask_until(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        seconds: float = ANSWER_SECONDS,
        deadline: float | None = None,
        on_repeat: Callable[[], None] | None = None,
    ) -> Any:
        """`ask`, repeated with back-off while the server is away; `deadline` is in the loop's time."""
        pause = PAUSE_FIRST
        while True:
            try:
                answer = await self.ask(method, path, body, seconds=seconds)
                self.answered()
                return answer
            except ServerError as error:
                self.answered() if error.status not in PASSING else self.is_silent(str(error))
                if error.status not in PASSING:
                    raise
                problem: Exception = error
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                self.is_silent(str(error) or type(error).__name__)
                problem = error
            if deadline is not None and asyncio.get_running_loop().time() + pause > deadline:
                raise ServerUnreachableError(f"no answer from {self.url}: {problem}") from problem
            if on_repeat:
                on_repeat()
            await asyncio.sleep(pause)
            pause = min(pause * 2, PAUSE_MAX)

    def is_silent(self, problem: str) -> None:
        if not self._is_silent:
            self._is_silent = True
            logger.warning("Cannot reach the server at %s, trying again until it answers: %s", self.url, problem)

    def answered(self) -> None:
        if self._is_silent:
            self._is_silent = False
            logger.info("The server at %s answers again", self.url)


def _read(path: str) -> str:
    with open(path) as file:
        return file.read().strip()


def seconds_of(retry_after: str | None) -> float | None:
    """What `Retry-After` says. A date is not understood, and nobody is believed who says days."""
    if retry_after is None or not retry_after.strip().isdecimal():
        return None
    return min(float(retry_after), RETRY_AFTER_MAX)


def _detail(raw: bytes, reason: str | None) -> str:
    with contextlib.suppress(ValueError):
        body = json.loads(raw)
        detail = body.get("detail", body.get("message")) if isinstance(body, dict) else None
        if detail is not None:
            return detail if isinstance(detail, str) else json.dumps(detail)
    return raw[:500].decode(errors="replace") or reason or "no reason given"


async def unless(stop: asyncio.Event, work: Awaitable[Any]) -> Any | None:
    """What `work` gives, or None as soon as `stop` is set; then the work is cancelled."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        stopped.cancel()
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
