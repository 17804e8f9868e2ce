"""Keeps an object of some HTTP API as the spec wants it.

How to speak to the API is in the resource's `plugin_config`: `url` of the object, `method` (PUT, POST
or PATCH), `body`, `headers`, and if they differ `read_url` and `delete_url`. Fields of the spec fill
them in: `{domain}`. Plan reads and compares, apply writes what differs, destroy deletes.

Which addresses may be called is the host's to say (`allow` in `PLUGIN_CONFIGS`, or
`HTTP_API_ALLOW`): otherwise whoever may create a resource could reach what only the host can.
"""

import json
import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import aiohttp
from yarl import URL

from no8s_operator.plugins.actions import templates
from no8s_operator.plugins.actions.base import ActionPlugin, failed
from no8s_operator.plugins.actions.bodies import whole
from no8s_operator.plugins.base import ActionContext, ActionPhase, ActionResult
from no8s_operator.plugins.registry import get_secret_store

METHODS = ("PUT", "POST", "PATCH")
BYTES_MAX = 1 << 20
SECONDS = 30.0
SHOWN_MAX = 4096
SECRET = "secret:"


@dataclass(frozen=True)
class Rule:
    """Addresses that may be called: the same origin, and a path at or below this one."""

    url: str
    headers: tuple[tuple[str, str], ...] = ()

    def covers(self, url: str) -> bool:
        own, other = urlsplit(self.url), urlsplit(url)
        if (own.scheme, own.hostname, _port(own)) != (other.scheme, other.hostname, _port(other)):
            return False
        segments = [unquote(part) for part in other.path.split("/")]
        if any(part in (".", "..") or "/" in part or "\\" in part for part in segments):
            return False
        base = own.path.rstrip("/")
        return other.path == base or other.path.startswith(base + "/")


@dataclass(frozen=True)
class Call:
    """What one resource wants, filled in and checked."""

    url: str
    read_url: str
    delete_url: str
    method: str
    body: Any
    headers: dict[str, str]
    outputs: dict[str, str]


class HttpApiPlugin(ActionPlugin):
    """`http_api`: GET to compare, PUT, POST or PATCH to write, DELETE to remove."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._seconds = SECONDS

    @property
    def name(self) -> str:
        return "http_api"

    @property
    def version(self) -> str:
        return "1.0.0"

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        allow = [it.strip() for it in os.environ.get("HTTP_API_ALLOW", "").split(",")]
        return {"allow": [it for it in allow if it]}

    async def initialize(self, config: dict[str, Any]) -> None:
        self._rules = [await _rule(it) for it in config.get("allow", [])]
        self._seconds = float(config.get("timeout", SECONDS))

    async def validate_spec(self, spec: dict[str, Any]) -> tuple[bool, str | None]:
        """Any spec will do; what is made of it is checked with the resource's `plugin_config`."""
        return True, None

    async def validate_resource(self, ctx: ActionContext) -> tuple[bool, str | None]:
        try:
            describe(ctx.spec, ctx.plugin_config)
        except ValueError as error:
            return False, str(error)
        return True, None

    async def prepare(self, ctx: ActionContext) -> Any:
        call = describe(ctx.spec, ctx.plugin_config)
        for url in {call.url, call.read_url, call.delete_url}:
            self._rule_for(url)
        return {"call": call, "outputs": None}

    async def plan(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        call: Call = workspace["call"]
        status, found = await self._send("GET", call.read_url, call)
        if status in (404, 410):
            return _planned("The object does not exist", has_changes=True)
        if status >= 300:
            return failed(f"GET {call.read_url} answered {status}: {_shown(found)}")
        workspace["outputs"] = _outputs(call, found)
        changes = differences(call.body, found)
        return _planned("\n".join(changes) or "Nothing differs", has_changes=bool(changes))

    async def apply(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        call: Call = workspace["call"]
        existed = workspace["outputs"] is not None
        status, found = await self._send(call.method, call.url, call, body=call.body)
        if status >= 300:
            return failed(f"{call.method} {call.url} answered {status}: {_shown(found)}")
        workspace["outputs"] = _outputs(call, found)
        return ActionResult(
            success=True,
            phase=ActionPhase.COMPLETED,
            apply_output=f"{call.method} {call.url} answered {status}",
            resources_created=0 if existed else 1,
            resources_updated=1 if existed else 0,
            outputs=workspace["outputs"],
            has_changes=True,
        )

    async def destroy(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        call: Call = workspace["call"]
        status, found = await self._send("DELETE", call.delete_url, call)
        is_gone = status in (404, 410)
        if status >= 300 and not is_gone:
            return failed(f"DELETE {call.delete_url} answered {status}: {_shown(found)}")
        text = f"DELETE {call.delete_url} answered {status}"
        deleted = 0 if is_gone else 1
        return ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output=text, resources_deleted=deleted)

    async def get_outputs(self, ctx: ActionContext, workspace: Any) -> dict[str, Any]:
        return workspace["outputs"] or {}

    async def get_state(self, ctx: ActionContext, workspace: Any) -> dict[str, Any] | None:
        status, found = await self._send("GET", workspace["call"].read_url, workspace["call"])
        return found if status < 300 and isinstance(found, dict) else None

    async def cleanup(self, workspace: Any) -> None:
        """Nothing is kept outside the workspace."""

    def _rule_for(self, url: str) -> Rule:
        for rule in self._rules:
            if rule.covers(url):
                return rule
        raise ValueError(f"{url} is not among the addresses that http_api may call (HTTP_API_ALLOW)")

    async def _send(self, method: str, url: str, call: Call, body: Any = None) -> tuple[int, Any]:
        # The rule's headers win: they carry the host's credentials, and a resource may not replace them.
        headers = {**call.headers, **dict(self._rule_for(url).headers)}
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.request(
                method, URL(url, encoded=True), data=data, headers=headers, allow_redirects=False
            ) as answer,
        ):
            raw = await whole(answer.content, BYTES_MAX)
            if raw is None:
                raise ValueError(f"{method} {url} answered with more than {BYTES_MAX} bytes")
            return answer.status, _parsed(raw)


def describe(spec: dict[str, Any], config: dict[str, Any]) -> Call:
    """What a resource wants. Raises `ValueError` naming the field and the rule."""
    if not isinstance(config.get("url"), str):
        raise ValueError("plugin_config.url is required by http_api")
    method = str(config.get("method", "PUT")).upper()
    if method not in METHODS:
        raise ValueError(f"plugin_config.method: {method!r} is not one of {', '.join(METHODS)}")

    def address(key: str) -> str:
        return templates.text(str(config.get(key) or config["url"]), spec, lambda it: quote(it, safe=""))

    headers = {key: templates.text(str(it), spec) for key, it in (config.get("headers") or {}).items()}
    for key, value in headers.items():
        if any(ord(char) < 32 for char in key + value):
            raise ValueError(f"plugin_config.headers.{key}: control characters are not allowed")
    return Call(
        url=address("url"),
        read_url=address("read_url"),
        delete_url=address("delete_url"),
        method=method,
        body=templates.tree(config["body"], spec) if "body" in config else spec,
        headers=headers,
        outputs={str(key): str(path) for key, path in (config.get("outputs") or {}).items()},
    )


def differences(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Where `found` lacks what is wanted. Members that nobody asked for are the API's own."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        lines = []
        for key, value in wanted.items():
            where = f"{path}.{key}" if path else key
            lines += differences(value, found[key], where) if key in found else [f"{where}: missing"]
        return lines
    if wanted == found and isinstance(wanted, bool) == isinstance(found, bool):
        return []
    return [f"{path or '(root)'}: {_shown(found)} should be {_shown(wanted)}"]


async def _rule(entry: Any) -> Rule:
    entry = {"url": entry} if isinstance(entry, str) else entry
    parts = urlsplit(entry["url"])
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise ValueError(f"http_api: {entry['url']!r} is no address that can be allowed")
    headers = []
    for key, value in (entry.get("headers") or {}).items():
        is_secret = value.startswith(SECRET)
        headers.append((key, await get_secret_store().get_secret(value[len(SECRET) :]) if is_secret else value))
    return Rule(entry["url"], tuple(headers))


def _port(parts: Any) -> int | None:
    return parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _planned(text: str, *, has_changes: bool) -> ActionResult:
    return ActionResult(success=True, phase=ActionPhase.PLANNING, plan_output=text, has_changes=has_changes)


def _outputs(call: Call, found: Any) -> dict[str, Any]:
    outputs = {}
    for key, path in call.outputs.items():
        try:
            outputs[key] = templates.lookup(found, path)
        except ValueError:
            outputs[key] = None
    return outputs


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…"
