"""A2.2: users."""

from collections.abc import Callable
from typing import Any

import pytest

from api import PASSWORD, ZULU, Api, unique
from conftest import Somebody
from test_auth import USER_FIELDS


def test_create(admin: Api) -> None:
    name = unique("user")
    body = {"username": name, "password": PASSWORD, "email": "a@example.com", "display_name": "A B"}
    created = admin.expect(201, "POST", "/users", body)
    assert set(created) >= USER_FIELDS
    assert isinstance(created["id"], int)
    assert (created["username"], created["email"], created["display_name"]) == (name, "a@example.com", "A B")
    assert (created["source"], created["is_admin"], created["status"]) == ("manual", False, "active")
    assert ZULU.fullmatch(created["created_at"])
    assert created["last_login_at"] is None
    assert admin.expect(200, "GET", f"/users/{created['id']}") == created
    admin.refused(409, f"User '{name}' already exists", "POST", "/users", body)
    admin.expect(204, "DELETE", f"/users/{created['id']}")


@pytest.mark.parametrize(
    ("change", "place", "kind"),
    [
        ({"password": "x"}, "password", "string_too_short"),
        ({"password": None}, "password", "string_type"),
        ({"username": "Upper"}, "username", "value_error"),
        ({"username": "-a"}, "username", "value_error"),
        ({"username": "a" * 64}, "username", None),
        ({"username": ""}, "username", None),
        ({"is_admin": "perhaps"}, "is_admin", "bool_parsing"),
        ({"custom_role_id": "x"}, "custom_role_id", "int_parsing"),
    ],
)
def test_create_with_what_cannot_be(admin: Api, change: dict[str, Any], place: str, kind: str | None) -> None:
    body = {"username": unique("user"), "password": PASSWORD, **change}
    entry = admin.invalid(["body", place], "POST", "/users", body)
    assert kind is None or entry["type"] == kind
    if kind == "string_too_short":
        assert entry["ctx"] == {"min_length": 8}


@pytest.mark.parametrize("field", ["username", "password"])
def test_create_needs(admin: Api, field: str) -> None:
    body = {"username": unique("user"), "password": PASSWORD}
    del body[field]
    assert admin.invalid(["body", field], "POST", "/users", body)["type"] == "missing"


@pytest.mark.differs("the role is silently ignored")
def test_create_with_a_role(admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user(system=["view_plugins"])
    somebody.api.expect(200, "GET", "/plugins/actions")


@pytest.mark.differs("the role is silently ignored")
def test_create_with_a_role_that_does_not_exist(admin: Api) -> None:
    body = {"username": unique("user"), "password": PASSWORD, "custom_role_id": 999_999_999}
    assert "there is no role with this id" in admin.invalid(["body", "custom_role_id"], "POST", "/users", body)["msg"]
    assert body["username"] not in {it["username"] for it in admin.expect(200, "GET", "/users?limit=10000")}


def test_list_and_its_filters(admin: Api, user: Callable[..., Somebody]) -> None:
    plain, suspended = user(), user()
    admin.expect(204, "DELETE", f"/users/{suspended.id}")

    def ids(query: str) -> set[int]:
        return {it["id"] for it in admin.expect(200, "GET", f"/users?limit=10000&{query}")}

    assert {plain.id, suspended.id} <= ids("")
    assert plain.id in ids("status=active&source=manual&is_admin=false")
    assert suspended.id not in ids("status=active")
    assert suspended.id in ids("status=suspended")
    assert plain.id not in ids("is_admin=true")
    assert plain.id not in ids("source=ldap")
    assert len(admin.expect(200, "GET", "/users?limit=1")) == 1


@pytest.mark.differs("answers 500")
@pytest.mark.parametrize("field", ["source", "status"])
def test_list_with_an_unknown_value(admin: Api, field: str) -> None:
    admin.invalid(["query", field], "GET", f"/users?{field}=strange")


def test_update(admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user()
    path = f"/users/{somebody.id}"
    changed = admin.expect(200, "PUT", path, {"email": "b@example.com", "display_name": "B"})
    assert (changed["email"], changed["display_name"]) == ("b@example.com", "B")
    assert admin.expect(200, "PUT", path, {"status": "suspended"})["status"] == "suspended"
    changed = admin.expect(200, "PUT", path, {"status": "active", "is_admin": True})
    assert (changed["status"], changed["is_admin"], changed["email"]) == ("active", True, "b@example.com")
    assert admin.expect(200, "PUT", path, {"email": None})["email"] == "b@example.com", "null leaves it as it is"


@pytest.mark.parametrize("status", ["deleted", "", 1])
def test_update_with_a_status_that_does_not_exist(admin: Api, user: Callable[..., Somebody], status: Any) -> None:
    admin.invalid(["body", "status"], "PUT", f"/users/{user().id}", {"status": status})


def test_delete_suspends(admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user()
    admin.expect(204, "DELETE", f"/users/{somebody.id}")
    assert admin.expect(200, "GET", f"/users/{somebody.id}")["status"] == "suspended"


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PUT", {}), ("DELETE", None)])
def test_a_user_that_does_not_exist(admin: Api, method: str, body: Any) -> None:
    admin.refused(404, "User not found", method, "/users/999999999", body)


def test_without_ldap_there_is_nothing_to_synchronise(admin: Api) -> None:
    admin.refused(503, "LDAP is not configured", "POST", "/users/ldap-sync")


@pytest.mark.differs("knows no If-Match")
@pytest.mark.parametrize(
    ("path", "body", "change"),
    [
        ("/users", {"username": unique("user"), "password": PASSWORD}, {"display_name": "One"}),
        ("/custom-roles", {"name": unique("role")}, {"description": "One"}),
    ],
)
def test_if_match(admin: Api, path: str, body: dict[str, Any], change: dict[str, Any]) -> None:
    path = f"{path}/{admin.expect(201, 'POST', path, body)['id']}"
    tag = admin.ask("GET", path).headers["etag"]
    changed = admin.ask("PUT", path, change, headers={"If-Match": tag})
    assert (changed.status_code, changed.headers["etag"] != tag) == (200, True)
    for method, late in (("PUT", dict.fromkeys(change, "Two")), ("DELETE", None)):
        admin.expect(412, method, path, late, headers={"If-Match": tag})
    assert admin.expect(200, "GET", path) == changed.json()
    admin.expect(204, "DELETE", path, headers={"If-Match": changed.headers["etag"]})
