"""A2.3: resource types."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api import DNS_SCHEMA, NAIVE, Api, unique_type
from conftest import Kind, Somebody

FIELDS = {"id", "name", "version", "schema", "description", "status", "metadata", "created_at", "updated_at"}


@pytest.fixture
def made(admin: Api) -> Iterator[dict[str, Any]]:
    body = {"name": unique_type(), "version": "v1", "schema": DNS_SCHEMA}
    it = admin.expect(201, "POST", "/resource-types", {**body, "description": "D", "metadata": {"a": 1}})
    yield it
    admin.ask("DELETE", f"/resource-types/{it['id']}")


def test_create_and_read(admin: Api, made: dict[str, Any]) -> None:
    assert set(made) >= FIELDS
    assert isinstance(made["id"], int)
    assert (made["schema"], made["description"], made["metadata"]) == (DNS_SCHEMA, "D", {"a": 1})
    assert made["status"] == "active"
    assert NAIVE.fullmatch(made["created_at"])
    assert NAIVE.fullmatch(made["updated_at"])
    assert admin.expect(200, "GET", f"/resource-types/{made['id']}") == made
    assert admin.expect(200, "GET", f"/resource-types/{made['name']}/v1") == made
    body = {"name": made["name"], "version": "v1", "schema": {}}
    admin.refused(409, f"Resource type {made['name']}/v1 already exists", "POST", "/resource-types", body)


def test_anybody_known_may_read(user: Callable[..., Somebody], made: dict[str, Any]) -> None:
    somebody = user().api
    somebody.expect(200, "GET", f"/resource-types/{made['id']}")
    somebody.expect(200, "GET", f"/resource-types/{made['name']}/v1")
    assert made["id"] in {it["id"] for it in somebody.expect(200, "GET", f"/resource-types?name={made['name']}")}


@pytest.mark.parametrize("field", ["name", "version", "schema"])
def test_create_needs(admin: Api, field: str) -> None:
    body = {"name": unique_type(), "version": "v1", "schema": {}}
    del body[field]
    assert admin.invalid(["body", field], "POST", "/resource-types", body)["type"] == "missing"


@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"properties": []}, {"required": "a"}, {"minimum": "x"}, {"pattern": "("}, [], "x", None],
)
def test_a_schema_must_be_draft_7(admin: Api, schema: Any) -> None:
    body = {"name": unique_type(), "version": "v1", "schema": schema}
    admin.expect(422, "POST", "/resource-types", body)
    admin.expect(404, "GET", f"/resource-types/{body['name']}/v1")


@pytest.mark.differs("takes any text; here a type is also a kind")
@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "has space"), ("name", "1st"), ("name", "a" * 64), ("name", ""), ("version", "V1"), ("version", "1.0")],
)
def test_names_and_versions_that_cannot_be_a_kind(admin: Api, field: str, value: str) -> None:
    body = {"name": unique_type(), "version": "v1", "schema": {}, field: value}
    admin.invalid(["body", field], "POST", "/resource-types", body)


def test_versions_are_separate(admin: Api, made: dict[str, Any]) -> None:
    body = {"name": made["name"], "version": "v2", "schema": {}}
    second = admin.expect(201, "POST", "/resource-types", body)
    assert second["id"] != made["id"]
    found = admin.expect(200, "GET", f"/resource-types?name={made['name']}")
    assert [it["version"] for it in found] == ["v1", "v2"]
    admin.expect(204, "DELETE", f"/resource-types/{second['id']}")


def test_list_is_ordered_and_filtered(admin: Api, made: dict[str, Any]) -> None:
    found = admin.expect(200, "GET", "/resource-types?limit=10000")
    assert [(it["name"], it["version"]) for it in found] == sorted((it["name"], it["version"]) for it in found)
    assert made["id"] in {it["id"] for it in found}
    admin.expect(200, "PUT", f"/resource-types/{made['id']}", {"status": "deprecated"})
    path = f"/resource-types?name={made['name']}&status="
    assert [it["id"] for it in admin.expect(200, "GET", path + "deprecated")] == [made["id"]]
    assert admin.expect(200, "GET", path + "active") == []
    assert len(admin.expect(200, "GET", "/resource-types?limit=1")) == 1


def test_update(admin: Api, made: dict[str, Any]) -> None:
    path = f"/resource-types/{made['id']}"
    body = {"schema": {"type": "object"}, "description": "E", "status": "deprecated", "metadata": {"b": 2}}
    changed = admin.expect(200, "PUT", path, body)
    assert {key: changed[key] for key in body} == body
    assert (changed["name"], changed["version"], changed["id"]) == (made["name"], "v1", made["id"])
    assert admin.expect(200, "PUT", path, {})["description"] == "E"
    admin.expect(422, "PUT", path, {"schema": {"type": "objekt"}})
    assert admin.expect(200, "GET", path)["schema"] == {"type": "object"}


def test_a_new_schema_leaves_existing_resources_alone(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    admin.expect(200, "PUT", f"/resource-types/{kind.id}", {"schema": {"required": ["other"]}})
    assert kind.get(resource)["status"] == "ready"
    detail = admin.expect(400, "POST", "/resources", kind.body())["detail"]
    assert detail == "Spec validation failed: (root): 'other' is a required property"


def test_delete(admin: Api, made: dict[str, Any]) -> None:
    admin.expect(204, "DELETE", f"/resource-types/{made['id']}")
    for path in (f"/resource-types/{made['id']}", f"/resource-types/{made['name']}/v1"):
        admin.refused(404, "Resource type not found", "GET", path)


def test_a_type_with_resources_stays(admin: Api, kind: Kind) -> None:
    kind.create()
    detail = "Cannot delete: resources still reference this type"
    admin.refused(409, detail, "DELETE", f"/resource-types/{kind.id}")
    admin.expect(200, "GET", f"/resource-types/{kind.id}")


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PUT", {})])
def test_a_type_that_does_not_exist(admin: Api, method: str, body: Any) -> None:
    admin.refused(404, "Resource type not found", method, "/resource-types/999999999", body)


def test_a_name_and_version_that_do_not_exist(admin: Api) -> None:
    admin.refused(404, "Resource type not found", "GET", "/resource-types/Nothing/v1")


@pytest.mark.differs("answers 409 that resources reference it")
def test_deleting_a_type_that_does_not_exist(admin: Api) -> None:
    admin.refused(404, "Resource type not found", "DELETE", "/resource-types/999999999")


@pytest.mark.differs("knows no If-Match")
def test_if_match(admin: Api, made: dict[str, Any]) -> None:
    path = f"/resource-types/{made['id']}"
    tag = admin.ask("GET", path).headers["etag"]
    assert admin.ask("GET", f"/resource-types/{made['name']}/v1").headers["etag"]
    admin.expect(200, "PUT", path, {"description": "other"}, headers={"If-Match": "*"})
    assert admin.ask("GET", path).headers["etag"] != tag
    for method, body in (("PUT", {"description": "late"}), ("DELETE", None)):
        said = admin.expect(412, method, path, body, headers={"If-Match": tag})["detail"]
        assert said.startswith("If-Match does not name the current state, which is ")
    assert admin.expect(200, "GET", path)["description"] == "other"


def test_resources_that_are_on_their_way_out_do_not_hold_a_type(admin: Api, kind: Kind) -> None:
    created = kind.create()
    path = f"/resource-types/{kind.id}"
    admin.refused(409, "Cannot delete: resources still reference this type", "DELETE", path)
    kind.delete(created)
    assert kind.get(created)["status"] == "deleting"
    admin.expect(204, "DELETE", path)
    admin.refused(404, "Resource type not found", "GET", path)
