"""A2.5 and A6: admission webhooks."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api import DNS_SPEC, Api, unique
from conftest import Kind
from webhook import Webhook

FIELDS = {
    "id",
    "name",
    "resource_type_name",
    "resource_type_version",
    "webhook_url",
    "webhook_type",
    "operations",
    "timeout_seconds",
    "failure_policy",
    "ordering",
    "created_at",
    "updated_at",
}
ALL = ["CREATE", "UPDATE", "DELETE"]


@pytest.fixture
def hook() -> Iterator[Webhook]:
    with Webhook() as it:
        yield it


@pytest.fixture
def declare(admin: Api) -> Iterator[Callable[..., dict[str, Any]]]:
    """Declares webhooks, and takes them away again."""
    made: list[int] = []

    def make(url: str, kind: Kind, **more: Any) -> dict[str, Any]:
        body = {
            "name": unique("hook"),
            "webhook_url": url,
            "webhook_type": "validating",
            "operations": ALL,
            "resource_type_name": kind.name,
            **more,
        }
        created: dict[str, Any] = admin.expect(201, "POST", "/admission-webhooks", body)
        made.append(created["id"])
        return created

    yield make
    for number in made:
        admin.ask("DELETE", f"/admission-webhooks/{number}")


Declare = Callable[..., dict[str, Any]]


def test_create_read_list(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    made = declare(hook.url, kind)
    assert set(made) >= FIELDS
    assert (made["timeout_seconds"], made["failure_policy"], made["ordering"]) == (10, "Fail", 0)
    assert (made["resource_type_name"], made["resource_type_version"]) == (kind.name, None)
    assert admin.expect(200, "GET", f"/admission-webhooks/{made['id']}") == made
    for query, is_in in (
        ("", True),
        (f"?resource_type_name={kind.name}", True),
        ("?resource_type_name=SomethingElse", False),
        ("?webhook_type=validating", True),
        ("?webhook_type=mutating", False),
    ):
        found = {it["id"] for it in admin.expect(200, "GET", "/admission-webhooks" + query)}
        assert (made["id"] in found) is is_in, query
    body = {key: made[key] for key in ("name", "webhook_url", "webhook_type", "operations")}
    admin.refused(409, f"Admission webhook '{body['name']}' already exists", "POST", "/admission-webhooks", body)


def test_list_by_the_version_of_a_type(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    one = declare(hook.url, kind, resource_type_version="v1")
    two = declare(hook.url, kind, resource_type_version="v2")
    query = f"/admission-webhooks?resource_type_name={kind.name}&resource_type_version="
    for version, found in (("v1", [one["id"]]), ("v2", [two["id"]]), ("v3", [])):
        assert [it["id"] for it in admin.expect(200, "GET", query + version)] == found, version


def test_update_and_delete(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    made = declare(hook.url, kind)
    path = f"/admission-webhooks/{made['id']}"
    changed = admin.expect(200, "PUT", path, {"failure_policy": "Ignore", "ordering": 5, "name": None})
    assert (changed["failure_policy"], changed["ordering"], changed["name"]) == ("Ignore", 5, made["name"])
    admin.expect(204, "DELETE", path)
    for method, body in (("GET", None), ("PUT", {}), ("DELETE", None)):
        admin.refused(404, "Admission webhook not found", method, path, body)


@pytest.mark.parametrize(
    "change",
    [
        {"webhook_type": "converting"},
        {"operations": ["WATCH"]},
        {"operations": "CREATE"},
        {"failure_policy": "Perhaps"},
        {"timeout_seconds": "x"},
        {"webhook_url": None},
        {"name": None},
    ],
)
def test_create_with_what_cannot_be(admin: Api, hook: Webhook, change: dict[str, Any]) -> None:
    body = {"name": unique("hook"), "webhook_url": hook.url, "webhook_type": "validating", "operations": ALL, **change}
    entries = admin.expect(422, "POST", "/admission-webhooks", body)["detail"]
    assert entries[0]["loc"][:2] == ["body", next(iter(change))]


@pytest.mark.differs("calls any address")
@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "ftp://a.example/",
        "file:///etc/passwd",
        "not a url",
        "https://user:password@a.example/",
    ],
)
def test_addresses_that_are_refused(admin: Api, url: str) -> None:
    body = {"name": unique("hook"), "webhook_url": url, "webhook_type": "validating", "operations": ALL}
    admin.invalid(["body", "webhook_url"], "POST", "/admission-webhooks", body)


def test_what_a_webhook_is_sent(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    declare(hook.url, kind)
    created = kind.create()
    sent = hook.seen[0]
    assert (sent["operation"], sent["old_resource"]) == ("CREATE", None)
    assert sent["resource"] == {
        "name": created["name"],
        "resource_type_name": kind.name,
        "resource_type_version": "v1",
        "spec": DNS_SPEC,
    }
    admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": {**DNS_SPEC, "value": "203.0.113.51"}})
    sent = hook.seen[1]
    assert (sent["operation"], sent["resource"]["spec"]["value"]) == ("UPDATE", "203.0.113.51")
    assert sent["old_resource"]["spec"] == DNS_SPEC
    assert isinstance(sent["old_resource"]["created_at"], str)
    kind.delete(created)
    assert hook.seen[2]["operation"] == "DELETE"
    assert len(hook.seen) == 3


def test_a_denial(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    resource = kind.create()
    declare(hook.url, kind)
    hook.answer = lambda _: {"allowed": False, "message": "not on a Friday"}
    path = f"/resources/{resource['id']}"
    admin.refused(403, "not on a Friday", "POST", "/resources", kind.body())
    admin.refused(403, "not on a Friday", "PUT", path, {"spec": {**DNS_SPEC, "value": "203.0.113.51"}})
    admin.refused(403, "not on a Friday", "DELETE", path)
    after = kind.get(resource)
    assert (after["generation"], after["deleted_at"]) == (1, None)
    assert len(admin.expect(200, "GET", f"/resources?resource_type_name={kind.name}")) == 1


def test_allowed_must_be_said(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    declare(hook.url, kind)
    hook.answer = lambda _: {}
    admin.expect(403, "POST", "/resources", kind.body())


def test_an_answer_below_500_counts(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    declare(hook.url, kind)
    hook.status = 404
    hook.answer = lambda _: {"allowed": False, "message": "no such thing"}
    admin.refused(403, "no such thing", "POST", "/resources", kind.body())


@pytest.mark.parametrize("fault", ["status", "garbage", "hangs", "nobody there"])
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_does_not_work(
    admin: Api, kind: Kind, hook: Webhook, declare: Declare, policy: str, fault: str
) -> None:
    made = declare(
        "http://127.0.0.1:1/" if fault == "nobody there" else hook.url, kind, failure_policy=policy, timeout_seconds=1
    )
    if fault == "status":
        hook.status = 500
    elif fault == "garbage":
        hook.answer = lambda _: b"<html>"
    elif fault == "hangs":
        hook.may_answer.clear()
    if policy == "Ignore":
        kind.create()
    else:
        detail = admin.expect(403, "POST", "/resources", kind.body())["detail"]
        assert detail.startswith(f"Admission webhook {made['name']} failed: ")
    hook.may_answer.set()


def test_operations_and_versions_choose(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    declare(hook.url, kind, operations=["DELETE"])
    declare(hook.url, kind, resource_type_version="v9")
    created = kind.create()
    assert hook.seen == []
    kind.delete(created)
    assert [it["operation"] for it in hook.seen] == ["DELETE"]


def patching(*patches: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda _: {"allowed": True, "patches": list(patches)}


def test_a_mutating_webhook_changes_the_spec(kind: Kind, hook: Webhook, declare: Declare) -> None:
    declare(hook.url, kind, webhook_type="mutating")
    hook.answer = patching(
        {"op": "replace", "path": "/spec/value", "value": "198.51.100.1"},
        {"op": "add", "path": "/note", "value": {"a": 1}},
        {"op": "add", "path": "/spec/note/b", "value": 2},
        {"op": "remove", "path": "/spec/ttl"},
    )
    spec = kind.create()["spec"]
    assert spec["value"] == "198.51.100.1"
    assert spec["note"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "patch",
    [
        {"op": "replace", "path": "/spec/absent/x", "value": 1},
        {"op": "remove", "path": "/spec/absent"},
        {"op": "move", "path": "/spec/value", "from": "/spec/domain"},
        {"op": "add", "path": "", "value": 1},
        {"op": "add", "path": "/metadata/name", "value": "x"},
        "text",
    ],
)
def test_a_patch_that_does_not_fit_is_a_refusal(
    admin: Api, kind: Kind, hook: Webhook, declare: Declare, patch: Any
) -> None:
    declare(hook.url, kind, webhook_type="mutating")
    hook.answer = patching(patch)
    assert "patch" in admin.expect(403, "POST", "/resources", kind.body())["detail"]
    assert admin.expect(200, "GET", f"/resources?resource_type_name={kind.name}") == []


def test_mutating_first_then_validating_each_by_ordering(kind: Kind, declare: Declare) -> None:
    with Webhook() as first, Webhook() as second, Webhook() as last:
        declare(last.url, kind, ordering=-5)
        declare(second.url, kind, webhook_type="mutating", ordering=2)
        declare(first.url, kind, webhook_type="mutating", ordering=1)
        first.answer = patching({"op": "replace", "path": "/spec/value", "value": "1"})
        second.answer = patching({"op": "replace", "path": "/spec/value", "value": "2"})
        assert kind.create()["spec"]["value"] == "2"
        assert second.seen[0]["resource"]["spec"]["value"] == "1"
        assert last.seen[0]["resource"]["spec"]["value"] == "2"


@pytest.mark.differs("a changed spec is not validated again")
def test_what_a_webhook_makes_of_a_spec_must_be_valid(admin: Api, kind: Kind, hook: Webhook, declare: Declare) -> None:
    declare(hook.url, kind, webhook_type="mutating")
    hook.answer = patching({"op": "replace", "path": "/spec/ttl", "value": 5})
    detail = "Spec validation failed: ttl: 5 is less than the minimum of 60"
    admin.refused(400, detail, "POST", "/resources", kind.body())
    assert admin.expect(200, "GET", f"/resources?resource_type_name={kind.name}") == []
