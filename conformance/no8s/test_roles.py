"""A2.2: custom roles and their permissions."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api import ZULU, Api, unique
from conftest import Kind, Somebody

ALL = ["CREATE", "READ", "UPDATE", "DELETE"]


@pytest.fixture
def role(admin: Api) -> Iterator[dict[str, Any]]:
    permission = {"resource_type_name": "Abc", "resource_type_version": "v1", "operations": ["READ"]}
    body = {"name": unique("role"), "description": "D", "system_permissions": ["view_plugins"]}
    it = admin.expect(201, "POST", "/custom-roles", {**body, "permissions": [permission]})
    yield it
    admin.ask("DELETE", f"/custom-roles/{it['id']}")


def test_create_and_read(admin: Api, role: dict[str, Any]) -> None:
    assert set(role) >= {"id", "name", "description", "system_permissions", "permissions", "created_at", "updated_at"}
    assert role["system_permissions"] == ["view_plugins"]
    (permission,) = role["permissions"]
    fields = {"id", "role_id", "resource_type_name", "resource_type_version", "operations", "created_at"}
    assert set(permission) >= fields
    assert (permission["role_id"], permission["operations"]) == (role["id"], ["READ"])
    assert ZULU.fullmatch(role["created_at"])
    assert admin.expect(200, "GET", f"/custom-roles/{role['id']}") == role
    assert role["id"] in {it["id"] for it in admin.expect(200, "GET", "/custom-roles")}
    admin.refused(409, f"Role '{role['name']}' already exists", "POST", "/custom-roles", {"name": role["name"]})


def test_what_is_not_said_is_everything(admin: Api) -> None:
    role = admin.expect(201, "POST", "/custom-roles", {"name": unique("role"), "permissions": [{}]})
    permission = role["permissions"][0]
    assert (permission["resource_type_name"], permission["resource_type_version"]) == ("*", "*")
    assert permission["operations"] == ALL
    assert role["system_permissions"] == []
    admin.expect(204, "DELETE", f"/custom-roles/{role['id']}")
    admin.refused(404, "Role not found", "GET", f"/custom-roles/{role['id']}")


@pytest.mark.parametrize(
    "change",
    [
        {"system_permissions": ["view_everything"]},
        {"system_permissions": "view_plugins"},
        {"permissions": [{"operations": ["WATCH"]}]},
        {"permissions": {}},
        {"name": None},
    ],
)
def test_create_with_what_cannot_be(admin: Api, change: dict[str, Any]) -> None:
    body = {"name": unique("role"), **change}
    entries = admin.expect(422, "POST", "/custom-roles", body)["detail"]
    assert entries[0]["loc"][:2] == ["body", next(iter(change))]


@pytest.mark.differs("the role stays when a permission cannot be made")
def test_a_role_is_made_whole_or_not_at_all(admin: Api) -> None:
    name = unique("role")
    twice = [{"resource_type_name": "Abc"}, {"resource_type_name": "Abc"}]
    detail = "Permission for this resource type/version already exists"
    admin.refused(409, detail, "POST", "/custom-roles", {"name": name, "permissions": twice})
    assert name not in {it["name"] for it in admin.expect(200, "GET", "/custom-roles")}


def test_update(admin: Api, role: dict[str, Any]) -> None:
    path = f"/custom-roles/{role['id']}"
    name = unique("role")
    changed = admin.expect(200, "PUT", path, {"name": name, "system_permissions": ["view_webhooks"]})
    assert (changed["name"], changed["description"]) == (name, "D")
    assert changed["system_permissions"] == ["view_webhooks"]
    assert changed["permissions"] == role["permissions"]
    assert admin.expect(200, "PUT", path, {"description": "E"})["description"] == "E"
    admin.expect(422, "PUT", path, {"system_permissions": ["view_everything"]})


@pytest.mark.parametrize(
    ("method", "what", "body"),
    [
        ("GET", "", None),
        ("PUT", "", {}),
        ("DELETE", "", None),
        ("POST", "/permissions", {"resource_type_name": "Abc"}),
    ],
)
def test_a_role_that_does_not_exist(admin: Api, method: str, what: str, body: Any) -> None:
    admin.refused(404, "Role not found", method, f"/custom-roles/999999999{what}", body)


def test_permissions_come_change_and_go(admin: Api, role: dict[str, Any]) -> None:
    path = f"/custom-roles/{role['id']}/permissions"
    body = {"resource_type_name": "Other", "resource_type_version": "*", "operations": ["READ", "CREATE"]}
    made = admin.expect(201, "POST", path, body)
    assert made["role_id"] == role["id"]
    assert {key: made[key] for key in body} == {**body, "operations": made["operations"]}
    assert set(made["operations"]) == {"READ", "CREATE"}
    admin.refused(409, "Permission for this resource type/version already exists", "POST", path, body)
    assert admin.expect(200, "PUT", f"{path}/{made['id']}", {"operations": ["DELETE"]})["operations"] == ["DELETE"]
    admin.expect(422, "PUT", f"{path}/{made['id']}", {"operations": ["WATCH"]})
    admin.expect(204, "DELETE", f"{path}/{made['id']}")
    for method, content in (("PUT", {"operations": ["READ"]}), ("DELETE", None)):
        admin.refused(404, "Permission not found", method, f"{path}/{made['id']}", content)


@pytest.mark.differs("the role in the path is not looked at")
def test_a_permission_belongs_to_its_role(admin: Api, role: dict[str, Any]) -> None:
    other = admin.expect(201, "POST", "/custom-roles", {"name": unique("role")})
    path = f"/custom-roles/{other['id']}/permissions/{role['permissions'][0]['id']}"
    admin.refused(404, "Permission not found", "DELETE", path)
    admin.refused(404, "Permission not found", "PUT", path, {"operations": ["READ"]})
    admin.expect(204, "DELETE", f"/custom-roles/{other['id']}")


@pytest.mark.parametrize(("name_is", "version_is"), [("*", "*"), ("own", "*"), ("*", "own"), ("own", "own")])
def test_names_and_versions_may_be_a_star(
    kind: Kind, user: Callable[..., Somebody], name_is: str, version_is: str
) -> None:
    resource = kind.create()
    name, version = kind.name if name_is == "own" else "*", kind.version if version_is == "own" else "*"
    user(["READ"], name, version).api.expect(200, "GET", f"/resources/{resource['id']}")


def test_permissions_are_looked_at_live(admin: Api, kind: Kind, user: Callable[..., Somebody]) -> None:
    resource = kind.create()
    somebody = user(["READ"], kind.name)
    path = f"/resources/{resource['id']}"
    somebody.api.expect(200, "GET", path)
    roles = admin.expect(200, "GET", "/custom-roles")
    (mine,) = [it for it in roles if any(p["resource_type_name"] == kind.name for p in it["permissions"])]
    admin.expect(204, "DELETE", f"/custom-roles/{mine['id']}/permissions/{mine['permissions'][0]['id']}")
    somebody.api.refused(403, "Insufficient permissions", "GET", path)


@pytest.mark.differs("a role cannot be taken from a user")
def test_a_role_can_be_unset(admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user(system=["view_plugins"])
    somebody.api.expect(200, "GET", "/plugins/actions")
    admin.expect(200, "PUT", f"/users/{somebody.id}", {"custom_role_id": None})
    somebody.api.refused(403, "Insufficient permissions", "GET", "/plugins/actions")
