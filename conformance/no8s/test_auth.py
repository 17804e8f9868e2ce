"""A2.1 and A8: logging in, and what a token is worth afterwards."""

import base64
import json
from collections.abc import Callable

import pytest

from api import PASSWORD, ZULU, Api, unique
from conftest import Kind, Somebody, logged_in

USER_FIELDS = {
    "id",
    "username",
    "email",
    "display_name",
    "source",
    "is_admin",
    "status",
    "created_at",
    "updated_at",
    "last_login_at",
    "last_synced_at",
}


def test_a_login_gives_a_token(nobody: Api, user: Callable[..., Somebody]) -> None:
    somebody = user()
    answer = nobody.expect(200, "POST", "/auth/login", {"username": somebody.username, "password": PASSWORD})
    assert answer["token_type"] == "bearer"
    assert answer["username"] == somebody.username
    assert answer["is_admin"] is False
    part = answer["access_token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    assert claims["sub"] == str(somebody.id)
    assert claims["username"] == somebody.username
    assert claims["is_admin"] is False
    assert claims["source"] == "manual"
    assert claims["custom_role_id"] is None
    assert isinstance(claims["exp"], int)


def test_me(user: Callable[..., Somebody]) -> None:
    somebody = user()
    me = somebody.api.expect(200, "GET", "/auth/me")
    assert set(me) >= USER_FIELDS
    assert (me["id"], me["username"], me["status"]) == (somebody.id, somebody.username, "active")
    assert ZULU.fullmatch(me["created_at"])
    assert ZULU.fullmatch(me["last_login_at"])
    assert "password" not in json.dumps(me)


@pytest.mark.parametrize("password", ["wrong password", "", "x" * 200, PASSWORD.upper()])
def test_a_wrong_password(nobody: Api, user: Callable[..., Somebody], password: str) -> None:
    body = {"username": user().username, "password": password}
    nobody.refused(401, "Invalid credentials", "POST", "/auth/login", body)


def test_an_unknown_user_looks_like_a_wrong_password(nobody: Api) -> None:
    body = {"username": unique("nobody"), "password": PASSWORD}
    nobody.refused(401, "Invalid credentials", "POST", "/auth/login", body)


@pytest.mark.parametrize("body", [{"username": "a"}, {"password": "a"}, {"username": 1, "password": "a"}])
def test_a_login_needs_both(nobody: Api, body: dict[str, object]) -> None:
    missing = "password" if "password" not in body else "username"
    entry = nobody.invalid(["body", missing], "POST", "/auth/login", body)
    assert entry["type"] == ("missing" if missing not in body else "string_type")


def test_a_suspended_user_cannot_log_in(nobody: Api, admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user()
    admin.expect(204, "DELETE", f"/users/{somebody.id}")
    body = {"username": somebody.username, "password": PASSWORD}
    nobody.refused(401, "Invalid credentials", "POST", "/auth/login", body)


@pytest.mark.differs("a token works until it expires")
def test_suspending_a_user_ends_their_tokens(admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user()
    somebody.api.expect(200, "GET", "/auth/me")
    admin.expect(200, "PUT", f"/users/{somebody.id}", {"status": "suspended"})
    assert "detail" in somebody.api.expect(401, "GET", "/auth/me")


@pytest.mark.differs("a role in a token stays")
def test_what_a_user_may_is_looked_up_live(admin: Api, kind: Kind, user: Callable[..., Somebody]) -> None:
    resource = kind.create()
    somebody = user()
    somebody.api.expect(403, "GET", f"/resources/{resource['id']}")
    permission = {"resource_type_name": kind.name, "operations": ["READ"]}
    role = admin.expect(201, "POST", "/custom-roles", {"name": unique("role"), "permissions": [permission]})
    admin.expect(200, "PUT", f"/users/{somebody.id}", {"custom_role_id": role["id"]})
    somebody.api.expect(200, "GET", f"/resources/{resource['id']}")
    admin.expect(200, "PUT", f"/users/{somebody.id}", {"is_admin": True})
    somebody.api.expect(200, "GET", "/users")
    admin.expect(200, "PUT", f"/users/{somebody.id}", {"is_admin": False})
    somebody.api.refused(403, "Admin role required", "GET", "/users")
    admin.expect(204, "DELETE", f"/custom-roles/{role['id']}")
    somebody.api.expect(403, "GET", f"/resources/{resource['id']}")


@pytest.mark.differs("passwords cannot be changed")
def test_passwords_can_be_changed(nobody: Api, admin: Api, user: Callable[..., Somebody]) -> None:
    somebody = user()
    new = "another long password"
    body = {"password": new, "current_password": "wrong"}
    somebody.api.refused(403, "Current password is incorrect", "PUT", "/auth/password", body)
    somebody.api.refused(400, "current_password is required", "PUT", "/auth/password", {"password": new})
    body["current_password"] = PASSWORD
    somebody.api.expect(204, "PUT", "/auth/password", body)
    nobody.refused(
        401, "Invalid credentials", "POST", "/auth/login", {"username": somebody.username, "password": PASSWORD}
    )
    logged_in(nobody, somebody.username, new)
    admin.expect(204, "PUT", f"/users/{somebody.id}/password", {"password": PASSWORD})
    logged_in(nobody, somebody.username, PASSWORD)


@pytest.mark.differs("answers 500 beyond 72 bytes")
def test_long_passwords_work(nobody: Api, admin: Api) -> None:
    name, password = unique("user"), "é" * 60
    created = admin.expect(201, "POST", "/users", {"username": name, "password": password})
    logged_in(nobody, name, password)
    nobody.refused(401, "Invalid credentials", "POST", "/auth/login", {"username": name, "password": "é" * 59})
    admin.expect(204, "DELETE", f"/users/{created['id']}")


@pytest.mark.differs("never throttles")
def test_guessing_is_throttled(nobody: Api, user: Callable[..., Somebody]) -> None:
    body = {"username": user().username, "password": "wrong password"}
    codes = []
    while 429 not in codes and len(codes) < 30:
        codes.append(nobody.ask("POST", "/auth/login", body).status_code)
    assert codes[0] == 401
    assert codes[-1] == 429, "no end to guessing after 30 wrong passwords"
