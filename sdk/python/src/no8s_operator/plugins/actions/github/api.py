"""Requests to GitHub, with its limits respected and its passing faults waited out."""

import asyncio
import email.utils
import json
import time
from typing import Any

import aiohttp

from no8s_operator.plugins.actions.bodies import whole

# One page is 100; a workflow with more jobs or artifacts than this shows the first thousand.
PAGES_MAX = 10
ATTEMPTS_MAX = 4
PAUSE_MAX = 60.0
BYTES_MAX = 8 << 20


class GitHubError(RuntimeError):
    """GitHub refused, or could not be reached. `status` is 0 for the latter."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"GitHub answered {status}: {message}" if status else f"GitHub cannot be reached: {message}")
        self.status = status


class GitHub:
    """One GitHub, and the token to use there."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    async def get(self, path: str, **params: str | int) -> dict[str, Any]:
        """An object. Reading is repeated when GitHub stumbles."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                _, body = await self._ask("GET", path, params=params)
                return body
            except _PassingError as error:
                if attempt == ATTEMPTS_MAX:
                    raise
                pause = 2.0**attempt / 2 if error.pause is None else error.pause
                await asyncio.sleep(min(pause, PAUSE_MAX))
        raise AssertionError("the loop returns or raises")

    async def pages(self, path: str, key: str) -> list[dict[str, Any]]:
        """All entries of a list, over its pages."""
        found: list[dict[str, Any]] = []
        for page in range(1, PAGES_MAX + 1):
            body = await self.get(path, per_page=100, page=page)
            entries = body.get(key) or []
            found += entries
            if len(entries) < 100 or len(found) >= int(body.get("total_count", len(found))):
                break
        return found

    async def post(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status and answer. Not repeated: a dispatch that arrived must not happen twice."""
        return await self._ask("POST", path, body=body)

    async def _ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, params: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        timeout = aiohttp.ClientTimeout(total=30)
        try:
            async with (
                aiohttp.ClientSession(headers=self._headers, timeout=timeout) as session,
                session.request(method, self._url + path, json=body, params=params, allow_redirects=False) as answer,
            ):
                raw = await whole(answer.content, BYTES_MAX)
                if raw is None:
                    raise GitHubError(answer.status, f"more than {BYTES_MAX} bytes")
                if answer.status >= 300:
                    raise _refusal(answer, raw)
                parsed = json.loads(raw) if raw else {}
                return answer.status, parsed if isinstance(parsed, dict) else {"items": parsed}
        except (aiohttp.ClientError, TimeoutError, ConnectionError, ValueError) as error:
            raise _PassingError(0, str(error) or type(error).__name__, None) from error


class _PassingError(GitHubError):
    def __init__(self, status: int, message: str, pause: float | None) -> None:
        super().__init__(status, message)
        self.pause = pause


def _refusal(answer: aiohttp.ClientResponse, raw: bytes) -> GitHubError:
    try:
        message = str(json.loads(raw).get("message"))
    except (ValueError, AttributeError):
        message = answer.reason or "no reason given"
    is_limited = answer.status == 429 or (answer.status == 403 and answer.headers.get("x-ratelimit-remaining") == "0")
    if answer.status >= 500 or is_limited or "retry-after" in answer.headers:
        return _PassingError(answer.status, message, _pause(answer))
    return GitHubError(answer.status, message)


def _pause(answer: aiohttp.ClientResponse) -> float | None:
    after = answer.headers.get("retry-after")
    if after and after.isdigit():
        return float(after)
    if after:
        when = email.utils.parsedate_to_datetime(after)
        return max(0.0, when.timestamp() - time.time())
    reset = answer.headers.get("x-ratelimit-reset", "")
    return max(1.0, float(reset) - time.time()) if reset.isdigit() else None
