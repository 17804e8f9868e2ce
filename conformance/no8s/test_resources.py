"""A2.4: resources, as far as no worker is needed."""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from api import DNS_SPEC, NAIVE, Api, unique, unique_type
from conftest import Kind, Somebody

FIELDS = {
    "id",
    "name",
    "resource_type_name",
    "resource_type_version",
    "action_plugin",
    "status",
    "status_message",
    "generation",
    "observed_generation",
    "finalizers",
    "conditions",
    "created_at",
    "updated_at",
    "last_reconcile_time",
}
MORE_FIELDS = {"spec", "plugin_config", "metadata", "outputs", "retry_count", "next_reconcile_time", "deleted_at"}


def test_create_and_read(admin: Api, kind: Kind) -> None:
    body = kind.body(plugin_config={"a": 1}, metadata={"team": "net"})
    created = admin.expect(201, "POST", "/resources", body)
    kind.made.append(created["id"])
    assert set(created) >= FIELDS
    assert {key: created[key] for key in body if key in FIELDS} == {
        key: it for key, it in body.items() if key in FIELDS
    }
    assert (created["status"], created["generation"], created["observed_generation"]) == ("pending", 1, 0)
    assert created["action_plugin"] == ""
    assert created["finalizers"] == [kind.worker.name]
    assert created["last_reconcile_time"] is None
    for path in (f"/{created['id']}", f"/by-name/{kind.name}/{kind.version}/{body['name']}"):
        assert admin.expect(200, "GET", "/resources" + path)["id"] == created["id"]


@pytest.mark.differs("leaves these out")
def test_what_was_asked_for_is_shown(admin: Api, kind: Kind) -> None:
    created = kind.create(plugin_config={"a": 1}, metadata={"team": "net"})
    assert set(created) >= MORE_FIELDS
    assert (created["spec"], created["plugin_config"], created["metadata"]) == (DNS_SPEC, {"a": 1}, {"team": "net"})
    assert (created["outputs"], created["retry_count"], created["deleted_at"]) == ({}, 0, None)
    assert NAIVE.fullmatch(created["next_reconcile_time"])


def test_times_are_naive_and_in_utc(kind: Kind) -> None:
    created = kind.create()
    assert NAIVE.fullmatch(created["created_at"])
    assert NAIVE.fullmatch(created["updated_at"])
    age = datetime.now(UTC).replace(tzinfo=None) - datetime.fromisoformat(created["created_at"])
    assert abs(age.total_seconds()) < 60


@pytest.mark.parametrize(
    "name", ["API", "-a", "a-", "a_b", "a.b", "a" * 64, "", "ä", "a b"], ids=lambda it: it[:5] or "empty"
)
def test_names_that_are_not_allowed(admin: Api, kind: Kind, name: str) -> None:
    entry = admin.invalid(["body", "name"], "POST", "/resources", kind.body(name=name))
    if name == "API":
        assert entry["type"] == "value_error"
        assert entry["input"] == "API"
        assert "must consist of lowercase alphanumeric characters or '-'" in entry["msg"]


def test_a_name_may_have_63_characters(kind: Kind) -> None:
    name = (unique("a") + "x" * 63)[:63]
    assert kind.create(name=name)["name"] == name


@pytest.mark.parametrize("field", ["name", "resource_type_name", "resource_type_version"])
def test_create_needs(admin: Api, kind: Kind, field: str) -> None:
    body = kind.body()
    del body[field]
    assert admin.invalid(["body", field], "POST", "/resources", body)["type"] == "missing"


@pytest.mark.parametrize("change", [{"spec": []}, {"spec": "x"}, {"plugin_config": 1}, {"metadata": [1]}, {"name": 5}])
def test_create_with_wrong_types(admin: Api, kind: Kind, change: dict[str, Any]) -> None:
    admin.invalid(["body", next(iter(change))], "POST", "/resources", kind.body(**change))


def test_an_action_plugin_that_does_not_exist(admin: Api, kind: Kind) -> None:
    detail = admin.expect(400, "POST", "/resources", kind.body(action_plugin="nothing"))["detail"]
    assert detail.startswith("Unknown action plugin: nothing. Available plugins: ")


def test_nobody_reconciles_the_type(admin: Api) -> None:
    name = unique_type()
    kind_id = admin.expect(201, "POST", "/resource-types", {"name": name, "version": "v1", "schema": {}})["id"]
    body = {"name": unique("a"), "resource_type_name": name, "resource_type_version": "v1", "spec": {"a": 1}}
    detail = f"No reconciler plugin registered for resource type '{name}' and no action_plugin specified"
    admin.refused(400, detail, "POST", "/resources", body)
    admin.expect(204, "DELETE", f"/resource-types/{kind_id}")


@pytest.mark.parametrize("spec", [{}, None, "absent"])
def test_a_spec_is_required(admin: Api, kind: Kind, spec: Any) -> None:
    body = kind.body(spec=spec)
    if spec == "absent":
        del body["spec"]
    admin.refused(400, "spec is required", "POST", "/resources", body)


def test_a_version_that_does_not_exist(admin: Api, kind: Kind) -> None:
    detail = f"Resource type {kind.name}/v9 not found"
    admin.refused(400, detail, "POST", "/resources", kind.body(resource_type_version="v9"))


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"domain": "a"}, ["(root): 'type' is a required property", "(root): 'value' is a required property"]),
        ({**DNS_SPEC, "ttl": 5}, ["ttl: 5 is less than the minimum of 60"]),
        ({**DNS_SPEC, "ttl": "5"}, ["ttl: '5' is not of type 'integer'"]),
        ({**DNS_SPEC, "type": "MX"}, ["type: 'MX' is not one of ['A', 'AAAA', 'CNAME', 'TXT']"]),
    ],
)
def test_a_spec_must_match_the_schema(admin: Api, kind: Kind, spec: Any, problems: list[str]) -> None:
    detail = "Spec validation failed: " + "; ".join(problems)
    admin.refused(400, detail, "POST", "/resources", kind.body(spec=spec))
    assert admin.expect(200, "GET", f"/resources?resource_type_name={kind.name}") == []


def test_places_in_a_spec_are_dotted(admin: Api, make_kind: Callable[..., Kind]) -> None:
    schema = {"properties": {"a": {"properties": {"b": {"items": {"type": "integer"}}}}}}
    kind = make_kind(schema)
    detail = admin.expect(400, "POST", "/resources", kind.body(spec={"a": {"b": [1, "x"]}}))["detail"]
    assert detail == "Spec validation failed: a.b.1: 'x' is not of type 'integer'"


def test_formats_are_checked(admin: Api, make_kind: Callable[..., Kind]) -> None:
    kind = make_kind({"properties": {"at": {"type": "string", "format": "date"}}})
    kind.create(spec={"at": "2026-01-02"})
    assert (
        "Spec validation failed: at: "
        in admin.expect(400, "POST", "/resources", kind.body(spec={"at": "no"}))["detail"]
    )


@pytest.mark.parametrize("field", ["spec", "plugin_config"])
def test_a_mebibyte_is_too_much(admin: Api, make_kind: Callable[..., Kind], field: str) -> None:
    kind = make_kind({})
    much = {field: {"a": "x" * (1 << 20)}}
    wrong = admin.invalid(["body", field], "POST", "/resources", kind.body(**{"spec": {"a": 1}, **much}))
    assert f"{field} must not exceed 1048576 bytes of JSON" in wrong["msg"]
    assert admin.expect(200, "GET", f"/resources?resource_type_name={kind.name}") == []
    created = kind.create(**{"spec": {"a": 1}, field: {"a": "x" * 500_000}})
    admin.invalid(["body", field], "PUT", f"/resources/{created['id']}", much)
    assert kind.get(created) == created


@pytest.mark.differs("answers 500")
def test_a_name_is_taken_once(admin: Api, kind: Kind) -> None:
    resource = kind.create()
    detail = f"Resource '{resource['name']}' already exists"
    admin.refused(409, detail, "POST", "/resources", kind.body(name=resource["name"]))


def test_the_spec_hash_is_the_one_of_python(kind: Kind) -> None:
    spec = {**DNS_SPEC, "é": [1, 2.5, None, True, {"b": "\u2028", "a": ""}]}
    created = kind.create(spec=spec)
    lent = kind.worker.one()
    expected = hashlib.sha256(json.dumps(created["spec"], sort_keys=True).encode()).hexdigest()
    assert lent.record["spec_hash"] == expected
    lent.make_ready()


def test_list_newest_first_and_filtered(admin: Api, kind: Kind, user: Callable[..., Somebody]) -> None:
    ids = [kind.create()["id"] for _ in range(3)]
    path = f"/resources?resource_type_name={kind.name}"
    assert [it["id"] for it in admin.expect(200, "GET", path)] == ids[::-1]
    assert [it["id"] for it in admin.expect(200, "GET", path + "&limit=2")] == ids[:0:-1]
    assert len(admin.expect(200, "GET", path + "&status=pending")) == 3
    assert admin.expect(200, "GET", path + "&status=ready") == []
    assert admin.expect(200, "GET", path + "&action_plugin=http_api") == []
    assert admin.expect(200, "GET", path + "&limit=0") == []


@pytest.mark.differs("knows no labels")
def test_list_by_label(admin: Api, kind: Kind) -> None:
    live = kind.create(metadata={"labels": {"tier": "live", "team": "net"}})["id"]
    test = kind.create(metadata={"labels": {"tier": "test"}})["id"]
    plain = kind.create()["id"]

    def ids(label: str) -> list[int]:
        params = {"resource_type_name": kind.name, "label": label}
        return [it["id"] for it in admin.expect(200, "GET", "/resources", params=params)]

    assert ids("tier=live") == [live]
    assert ids("tier=live,team=net") == [live]
    assert ids("tier") == [test, live]
    assert ids("tier!=live") == [plain, test]
    assert ids("tier in (live, test)") == [test, live]
    assert ids("tier=none") == []
    admin.invalid(["query", "label"], "GET", "/resources", params={"label": "=="})


def test_a_list_has_only_what_may_be_read(
    admin: Api, make_kind: Callable[..., Kind], user: Callable[..., Somebody]
) -> None:
    mine, theirs = make_kind(), make_kind()
    wanted, hidden = mine.create()["id"], theirs.create()["id"]
    found = {it["id"] for it in user(["READ"], mine.name).api.expect(200, "GET", "/resources?limit=10000")}
    assert wanted in found
    assert hidden not in found
    assert user().api.expect(200, "GET", "/resources") == []


@pytest.mark.differs("filters after the limit")
def test_a_limit_counts_what_may_be_read(make_kind: Callable[..., Kind], user: Callable[..., Somebody]) -> None:
    mine, theirs = make_kind(), make_kind()
    wanted = mine.create()["id"]
    for _ in range(3):
        theirs.create()
    found = user(["READ"], mine.name).api.expect(200, "GET", "/resources?limit=1")
    assert [it["id"] for it in found] == [wanted]


@pytest.mark.parametrize(
    ("method", "what", "body"),
    [
        ("GET", "", None),
        ("PUT", "", {"spec": DNS_SPEC}),
        ("DELETE", "", None),
        ("PUT", "/finalizers", {"add": ["a"]}),
        ("POST", "/reconcile", None),
        ("GET", "/history", None),
        ("GET", "/outputs", None),
        ("GET", "/events", None),
    ],
)
def test_a_resource_that_does_not_exist(admin: Api, method: str, what: str, body: Any) -> None:
    admin.refused(404, "Resource not found", method, f"/resources/999999999{what}", body)


def test_a_name_that_does_not_exist(admin: Api, kind: Kind) -> None:
    admin.refused(404, "Resource not found", "GET", f"/resources/by-name/{kind.name}/v1/{unique('nothing')}")


def test_update_replaces(admin: Api, kind: Kind) -> None:
    created = kind.create(plugin_config={"a": 1})
    path = f"/resources/{created['id']}"
    changed = admin.expect(200, "PUT", path, {"spec": {**DNS_SPEC, "value": "203.0.113.51"}})
    assert (changed["generation"], changed["status"], changed["plugin_config"]) == (2, "pending", {"a": 1})
    assert changed["spec"]["value"] == "203.0.113.51"
    changed = admin.expect(200, "PUT", path, {"plugin_config": {"b": 2}})
    assert (changed["generation"], changed["plugin_config"]) == (3, {"b": 2})
    assert changed["spec"]["value"] == "203.0.113.51"


def test_update_is_validated(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resources/{created['id']}"
    detail = "Spec validation failed: ttl: 5 is less than the minimum of 60"
    admin.refused(400, detail, "PUT", path, {"spec": {**DNS_SPEC, "ttl": 5}})
    admin.expect(422, "PUT", path, {"spec": []})
    assert kind.get(created)["generation"] == 1


@pytest.mark.differs("knows no If-Match")
def test_if_match(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resources/{created['id']}"
    tag = admin.ask("GET", path).headers["etag"]
    changed = {"spec": {**DNS_SPEC, "value": "203.0.113.51"}}
    admin.expect(200, "PUT", path, changed, headers={"If-Match": tag})
    again = {"spec": {**DNS_SPEC, "value": "203.0.113.52"}}
    current = admin.ask("GET", path).headers["etag"]
    assert current != tag
    detail = f"If-Match does not name the current state, which is {current}"
    for method, what, body in (
        ("PUT", "", again),
        ("PUT", "/finalizers", {"add": ["ext"]}),
        ("POST", "/reconcile", None),
        ("DELETE", "", None),
    ):
        admin.refused(412, detail, method, path + what, body, headers={"If-Match": tag})
    shown = kind.get(created)
    assert (shown["finalizers"], admin.ask("GET", path).headers["etag"]) == ([kind.worker.name], current)
    assert (shown["spec"]["value"], shown["deleted_at"]) == ("203.0.113.51", None)


def test_outputs_are_empty_at_first(admin: Api, kind: Kind) -> None:
    created = kind.create()
    assert admin.expect(200, "GET", f"/resources/{created['id']}/outputs") == {"outputs": {}}


def test_history_is_empty_at_first(admin: Api, kind: Kind) -> None:
    created = kind.create()
    assert admin.expect(200, "GET", f"/resources/{created['id']}/history") == []


def test_finalizers_come_and_go(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resources/{created['id']}/finalizers"
    owner = kind.worker.name
    assert admin.expect(200, "PUT", path, {"add": ["ext", "ext"]})["finalizers"] == [owner, "ext"]
    assert admin.expect(200, "PUT", path, {"add": ["ext"]})["finalizers"] == [owner, "ext"]
    changed = admin.expect(200, "PUT", path, {"add": ["two"], "remove": ["ext", "never-there"]})
    assert set(changed) >= FIELDS
    assert changed["finalizers"] == [owner, "two"]
    admin.invalid(["body", "add"], "PUT", path, {"add": "x"})
