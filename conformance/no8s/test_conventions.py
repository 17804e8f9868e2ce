"""What holds for every route: who may, and how errors look."""

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from api import Api, token
from conftest import Kind, Somebody

KNOWN = [
    ("GET", "/auth/me"),
    ("GET", "/resource-types"),
    ("GET", "/resource-types/1"),
    ("GET", "/resource-types/DnsRecord/v1"),
    ("POST", "/resources"),
    ("GET", "/resources"),
    ("GET", "/resources/1"),
    ("GET", "/resources/by-name/DnsRecord/v1/a"),
    ("PUT", "/resources/1"),
    ("DELETE", "/resources/1"),
    ("PUT", "/resources/1/finalizers"),
    ("POST", "/resources/1/reconcile"),
    ("GET", "/resources/1/history"),
    ("GET", "/resources/1/outputs"),
    ("GET", "/resources/1/events"),
    ("GET", "/plugins/actions"),
    ("GET", "/plugins/inputs"),
    ("GET", "/admission-webhooks"),
    ("GET", "/admission-webhooks/1"),
    ("POST", "/workers"),
    ("GET", "/workers"),
    ("POST", "/workers/x/claim"),
    ("POST", "/workers/x/heartbeat"),
    ("POST", "/workers/x/writes"),
    ("DELETE", "/workers/x"),
]
ADMIN = [
    ("POST", "/users", {"username": "a-user", "password": "long enough"}),
    ("GET", "/users", None),
    ("GET", "/users/1", None),
    ("PUT", "/users/1", {}),
    ("DELETE", "/users/1", None),
    ("POST", "/users/ldap-sync", None),
    ("POST", "/custom-roles", {"name": "a-role"}),
    ("GET", "/custom-roles", None),
    ("GET", "/custom-roles/1", None),
    ("PUT", "/custom-roles/1", {}),
    ("DELETE", "/custom-roles/1", None),
    ("POST", "/custom-roles/1/permissions", {}),
    ("PUT", "/custom-roles/1/permissions/1", {"operations": ["READ"]}),
    ("DELETE", "/custom-roles/1/permissions/1", None),
    ("POST", "/resource-types", {"name": "Abc", "version": "v1", "schema": {}}),
    ("PUT", "/resource-types/1", {}),
    ("DELETE", "/resource-types/1", None),
    (
        "POST",
        "/admission-webhooks",
        {"name": "a", "webhook_url": "https://a.example/", "webhook_type": "validating", "operations": ["CREATE"]},
    ),
    ("PUT", "/admission-webhooks/1", {}),
    ("DELETE", "/admission-webhooks/1", None),
    ("GET", "/cluster/nodes", None),
]
MISSING = "Missing or invalid Authorization header"


@pytest.mark.parametrize(("method", "path"), KNOWN + [(method, path) for method, path, _ in ADMIN])
def test_without_a_token_nothing_is_answered(nobody: Api, method: str, path: str) -> None:
    nobody.refused(401, MISSING, method, path)


@pytest.mark.parametrize("header", ["Basic YTpi", "Token x", "Bearer", ""])
def test_another_scheme_is_no_token(nobody: Api, header: str) -> None:
    nobody.refused(401, MISSING, "GET", "/auth/me", headers={"Authorization": header})


def claims(**more: Any) -> dict[str, Any]:
    base = {"sub": "1", "username": "admin", "is_admin": True, "source": "manual", "custom_role_id": None}
    return {**base, "iat": int(time.time()), "exp": int(time.time()) + 3600, "pwd": "", **more}


@pytest.mark.parametrize(
    "bearer",
    ["garbage", "a.b.c", token(claims(), "another key"), token(claims(), "", "none"), "x" * 5000],
    ids=["garbage", "three parts", "another key", "no signature", "long"],
)
def test_a_token_that_is_not_ours_is_invalid(nobody: Api, bearer: str) -> None:
    detail = nobody.expect(401, "GET", "/auth/me", headers={"Authorization": f"Bearer {bearer}"})["detail"]
    assert detail.startswith("Invalid token: ")


def test_a_token_expires(nobody: Api) -> None:
    key = os.environ.get("JWT_SECRET_KEY")
    assert key, "JWT_SECRET_KEY must be the key of the server"
    bearer = token(claims(exp=int(time.time()) - 3600), key)
    nobody.refused(401, "Token has expired", "GET", "/auth/me", headers={"Authorization": f"Bearer {bearer}"})


def test_the_scheme_is_case_insensitive(admin: Api) -> None:
    admin.expect(200, "GET", "/auth/me", headers={"Authorization": f"bearer {admin.bearer}"})


@pytest.mark.parametrize(("method", "path", "body"), ADMIN)
def test_what_is_for_administrators(user: Callable[..., Somebody], method: str, path: str, body: Any) -> None:
    everything = user(["CREATE", "READ", "UPDATE", "DELETE"], system=["view_webhooks", "view_plugins"])
    everything.api.refused(403, "Admin role required", method, path, body)


@pytest.mark.parametrize("path", ["/plugins/actions", "/plugins/inputs", "/admission-webhooks"])
def test_what_needs_a_system_permission(user: Callable[..., Somebody], path: str) -> None:
    user(["READ"]).api.refused(403, "Insufficient permissions", "GET", path)
    right = "view_webhooks" if "webhooks" in path else "view_plugins"
    assert isinstance(user(system=[right]).api.expect(200, "GET", path), list)


@pytest.mark.parametrize(
    ("method", "what", "needed"),
    [
        ("GET", "", "READ"),
        ("GET", "/history", "READ"),
        ("GET", "/outputs", "READ"),
        ("GET", "/events", "READ"),
        ("PUT", "", "UPDATE"),
        ("PUT", "/finalizers", "UPDATE"),
        ("POST", "/reconcile", "UPDATE"),
        ("DELETE", "", "DELETE"),
    ],
)
def test_what_needs_a_permission_on_the_type(
    kind: Kind, user: Callable[..., Somebody], method: str, what: str, needed: str
) -> None:
    resource = kind.create()
    others = [it for it in ("CREATE", "READ", "UPDATE", "DELETE") if it != needed]
    body = {} if method == "PUT" else None
    path = f"/resources/{resource['id']}{what}"
    user().api.refused(403, "Insufficient permissions", method, path, body)
    user(others, kind.name).api.refused(403, "Insufficient permissions", method, path, body)
    user([needed], "SomethingElse").api.refused(403, "Insufficient permissions", method, path, body)
    if what != "/events":
        allowed = user([needed], kind.name, kind.version).api.ask(method, path, body)
        assert allowed.status_code < 300, allowed.text


def test_creating_needs_a_permission_on_the_type(kind: Kind, user: Callable[..., Somebody]) -> None:
    somebody = user(["READ", "UPDATE", "DELETE"])
    somebody.api.refused(403, "Insufficient permissions", "POST", "/resources", kind.body())
    other_version = user(["CREATE"], kind.name, "v9")
    other_version.api.refused(403, "Insufficient permissions", "POST", "/resources", kind.body())
    created = user(["CREATE"], kind.name).api.expect(201, "POST", "/resources", kind.body())
    kind.made.append(created["id"])


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/resources/abc", "resource_id"),
        ("/resources/abc/history", "resource_id"),
        ("/resource-types/abc", "resource_type_id"),
        ("/users/abc", "user_id"),
        ("/custom-roles/abc", "role_id"),
        ("/admission-webhooks/abc", "webhook_id"),
    ],
)
def test_a_number_in_a_path_must_be_one(admin: Api, path: str, place: str) -> None:
    entry = admin.invalid(["path", place], "GET", path)
    assert entry["type"] == "int_parsing"
    assert entry["input"] == "abc"


@pytest.mark.parametrize("path", ["/resources", "/resource-types", "/users"])
@pytest.mark.parametrize("limit", ["abc", "1.5"])
def test_a_limit_must_be_a_number(admin: Api, path: str, limit: str) -> None:
    assert admin.invalid(["query", "limit"], "GET", f"{path}?limit={limit}")["type"] == "int_parsing"


@pytest.mark.differs("answers 500")
@pytest.mark.parametrize("path", ["/resources", "/resource-types", "/users"])
def test_a_limit_below_zero_is_refused(admin: Api, path: str) -> None:
    admin.invalid(["query", "limit"], "GET", f"{path}?limit=-1")


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/auth/login"), ("POST", "/users"), ("POST", "/resources"), ("POST", "/resource-types")],
)
@pytest.mark.parametrize("body", ["{", "[]", '"text"', ""], ids=["cut", "list", "text", "empty"])
def test_a_body_must_be_an_object(admin: Api, method: str, path: str, body: str) -> None:
    entries = admin.expect(422, method, path, content=body.encode(), headers={"Content-Type": "application/json"})[
        "detail"
    ]
    assert entries[0]["loc"][0] == "body"


def test_a_path_that_does_not_exist(admin: Api) -> None:
    assert "detail" in admin.expect(404, "GET", "/resources/1/nothing-like-this")


def test_a_method_that_a_path_does_not_have(admin: Api) -> None:
    assert "detail" in admin.expect(405, "PATCH", "/auth/login", {})


def test_the_description_is_open_and_lists_the_routes(nobody: Api) -> None:
    paths = nobody.expect(200, "GET", "/openapi.json")["paths"]
    for path in ("/api/v1/resources", "/api/v1/resource-types", "/api/v1/users", "/api/v1/auth/login"):
        assert path in paths
    assert nobody.ask("GET", "/docs").headers["content-type"].startswith("text/html")


@pytest.mark.differs("passes them over")
@pytest.mark.parametrize(
    "path", ["/resources", "/resource-types", "/resource-types/1", "/users", "/custom-roles", "/workers"]
)
def test_a_parameter_that_is_not_known_is_refused(admin: Api, path: str) -> None:
    assert admin.invalid(["query", "colour"], "GET", path + "?colour=red")["type"] == "extra_forbidden"
