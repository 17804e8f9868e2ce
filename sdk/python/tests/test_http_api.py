"""`http_api` against a small API of records."""

import functools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer

from no8s_operator.plugins.actions import http_api, templates
from no8s_operator.plugins.actions.http_api import HttpApiPlugin, Rule, differences
from no8s_operator.plugins.base import ActionContext, ActionResult

SPEC = {"domain": "a.example.com", "ttl": 300, "tags": ["x"], "owner": {"team": "net"}}


class Records:
    def __init__(self) -> None:
        self.records: dict[str, Any] = {}
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.fault: Callable[[], web.Response] | None = None
        app = web.Application()
        app.router.add_route("*", "/v1/records/{name}", self._record)
        app.router.add_route("*", "/inside", self._record)
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return str(self.server.make_url("")).rstrip("/")

    async def _record(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info.get("name", "")
        self.seen.append((request.method, request.raw_path, dict(request.headers)))
        if self.fault:
            return self.fault()
        if request.method == "DELETE":
            return web.Response(status=204 if self.records.pop(name, None) else 404)
        if request.method == "PUT":
            self.records[name] = {**await request.json(), "id": 7}
        if name not in self.records:
            return web.Response(status=404)
        return web.json_response(self.records[name])


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Records]:
    it = Records()
    await it.server.start_server()
    yield it
    await it.server.close()


async def plugin(api: Records) -> HttpApiPlugin:
    it = HttpApiPlugin()
    await it.initialize({"allow": [{"url": api.url + "/v1/", "headers": {"X-Key": "host"}}]})
    return it


def context(api: Records, spec: dict[str, Any] | None = None, **config: Any) -> ActionContext:
    base = {
        "url": api.url + "/v1/records/{domain}",
        "body": {"ttl": "{ttl}", "text": "team {owner.team}", "tags": "{tags}"},
        "outputs": {"record": "id", "none": "a.b"},
    }
    return ActionContext(1, "a", 1, {**SPEC, **(spec or {})}, "00", {**base, **config})


async def step(it: HttpApiPlugin, name: str, ctx: ActionContext) -> ActionResult:
    workspace = await it.prepare(ctx)
    if name == "apply":
        await it.plan(ctx, workspace)
    result: ActionResult = await getattr(it, name)(ctx, workspace)
    return result


async def test_create_compare_update_delete(api: Records) -> None:
    it = await plugin(api)
    plan = await step(it, "plan", context(api))
    assert (plan.success, plan.has_changes, plan.plan_output) == (True, True, "The object does not exist")
    result = await step(it, "apply", context(api))
    assert (result.resources_created, result.outputs) == (1, {"record": 7, "none": None})
    assert api.records["a.example.com"] == {"ttl": 300, "text": "team net", "tags": ["x"], "id": 7}
    plan = await step(it, "plan", context(api))
    assert (plan.success, plan.has_changes) == (True, False)
    plan = await step(it, "plan", context(api, {"ttl": 60}))
    assert (plan.has_changes, plan.plan_output) == (True, "ttl: 300 should be 60")
    assert (await step(it, "apply", context(api, {"ttl": 60}))).resources_updated == 1
    assert (await step(it, "destroy", context(api))).resources_deleted == 1
    assert (await step(it, "destroy", context(api))).resources_deleted == 0


async def test_the_hosts_headers_win(api: Records) -> None:
    it = await plugin(api)
    await step(it, "plan", context(api, headers={"X-Key": "mine", "X-Domain": "{domain}"}))
    headers = api.seen[0][2]
    assert (headers["X-Key"], headers["X-Domain"]) == ("host", "a.example.com")


async def test_values_cannot_leave_their_place_in_the_address(api: Records) -> None:
    it = await plugin(api)
    with pytest.raises(ValueError, match="not among the addresses"):
        await step(it, "plan", context(api, {"domain": "a/../../inside?x=1#y"}))
    await step(it, "plan", context(api, {"domain": "a?x=1#y z"}))
    assert api.seen[0][1] == "/v1/records/a%3Fx%3D1%23y%20z"


@pytest.mark.parametrize("domain", ["..", ".", "../../inside", "..\\x"])
async def test_dots_do_not_climb(api: Records, domain: str) -> None:
    with pytest.raises(ValueError, match="not among the addresses"):
        await (await plugin(api)).prepare(context(api, {"domain": domain}))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"url": None}, "plugin_config.url is required"),
        ({"method": "TRACE"}, "'TRACE' is not one of PUT, POST, PATCH"),
        ({"url": "http://127.0.0.1:1/x"}, "not among the addresses"),
        ({"url": "http://169.254.169.254/latest"}, "not among the addresses"),
        ({"delete_url": "http://127.0.0.1:1/x"}, "not among the addresses"),
        ({"body": {"a": "{absent}"}}, "{absent} names no field of the spec"),
        ({"body": {"a": "x{tags}"}}, "{tags} is no single value"),
        ({"headers": {"A": "x\r\nB: y"}}, "control characters"),
    ],
)
async def test_what_cannot_be_is_said(api: Records, config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        await (await plugin(api)).prepare(context(api, **config))
    assert message in str(raised.value)
    assert api.seen == []


async def test_answers_that_are_no_success_are_failures(api: Records) -> None:
    it = await plugin(api)
    for status in (302, 400, 500):
        headers = {"Location": api.url + "/inside"}
        api.fault = functools.partial(web.json_response, {"error": "no"}, status=status, headers=headers)
        for name in ("plan", "apply", "destroy"):
            result = await step(it, name, context(api))
            assert not result.success
            assert f"answered {status}" in str(result.error_message)
    assert all(path != "/inside" for _, path, _ in api.seen), "redirects are not followed"


async def test_an_answer_without_end_is_refused(api: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "BYTES_MAX", 1000)
    api.fault = lambda: web.Response(text="x" * 1001)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        await step(await plugin(api), "plan", context(api))


@pytest.mark.parametrize(
    ("rule", "url", "covers"),
    [
        ("https://a.example/v1", "https://a.example/v1", True),
        ("https://a.example/v1", "https://a.example/v1/x?y=1", True),
        ("https://a.example/v1", "https://a.example/v10", False),
        ("https://a.example/v1", "https://a.example/v1/%2e%2e/x", False),
        ("https://a.example/v1", "https://a.example/v1/a%2fb", False),
        ("https://a.example/", "http://a.example/", False),
        ("https://a.example/", "https://a.example:444/", False),
        ("https://a.example/", "https://a.example:443/", True),
        ("https://a.example/", "https://a.example.evil/", False),
        ("https://a.example/", "https://a.example@evil/", False),
    ],
)
def test_rules_cover_an_origin_and_what_is_below_a_path(rule: str, url: str, covers: bool) -> None:
    assert Rule(rule).covers(url) is covers


def test_only_what_is_wanted_is_compared() -> None:
    assert differences({"a": 1, "b": {"c": [1]}}, {"a": 1, "b": {"c": [1], "d": 2}, "e": 3}) == []
    assert differences({"a": 1, "b": 2}, {"a": True}) == ["a: true should be 1", "b: missing"]
    assert differences({"a": 1}, "text") == ['(root): text should be {"a": 1}']


def test_templates_name_fields_of_the_spec_and_nothing_else() -> None:
    assert templates.tree({"a": ["{tags.0}", "{ttl}"]}, SPEC) == {"a": ["x", 300]}
    assert templates.text("{}{ ttl }{ttl!r}{0.__class__", SPEC) == "{}{ ttl }{ttl!r}{0.__class__"
    with pytest.raises(ValueError, match="names no field"):
        templates.text("{domain.__class__}", SPEC)
    assert json.dumps(templates.tree(None, SPEC)) == "null"
