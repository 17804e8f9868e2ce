"""The server under test, its administrator, and small things to work with."""

import os
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from api import DNS_SCHEMA, DNS_SPEC, PASSWORD, Api, unique, unique_type
from worker import Worker


def pytest_sessionstart(session: pytest.Session) -> None:
    missing = [it for it in ("BASE_URL", "ADMIN_USER", "ADMIN_PASSWORD") if not os.environ.get(it)]
    if missing and not session.config.option.collectonly:
        pytest.exit(f"set {', '.join(missing)}: the server to test and its administrator", returncode=2)


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    verify: ssl.SSLContext | bool = True
    if os.environ.get("CA_FILE"):
        verify = ssl.create_default_context(cafile=os.environ["CA_FILE"])
    with httpx.Client(base_url=os.environ["BASE_URL"], verify=verify, timeout=30) as it:
        yield it


@pytest.fixture(scope="session")
def nobody(client: httpx.Client) -> Api:
    """A caller without a token."""
    return Api(client, None)


def logged_in(nobody: Api, username: str, password: str) -> Api:
    answer = nobody.expect(200, "POST", "/auth/login", {"username": username, "password": password})
    return Api(nobody.client, answer["access_token"])


@pytest.fixture(scope="session")
def admin(nobody: Api) -> Api:
    return logged_in(nobody, os.environ["ADMIN_USER"], os.environ["ADMIN_PASSWORD"])


@dataclass
class Somebody:
    """A user, and requests in their name."""

    id: int
    username: str
    api: Api


@pytest.fixture
def user(nobody: Api, admin: Api) -> Iterator[Callable[..., Somebody]]:
    """Makes users: with a role if operations or system permissions are given."""
    made: list[tuple[str, int]] = []

    def make(
        operations: list[str] | None = None, resource_type: str = "*", version: str = "*", system: Any = ()
    ) -> Somebody:
        body: dict[str, Any] = {"username": unique("user"), "password": PASSWORD}
        if operations is not None or system:
            permission = {
                "resource_type_name": resource_type,
                "resource_type_version": version,
                "operations": operations or [],
            }
            role = {"name": unique("role"), "system_permissions": list(system)}
            role["permissions"] = [permission] if operations else []
            body["custom_role_id"] = admin.expect(201, "POST", "/custom-roles", role)["id"]
            made.append(("/custom-roles", body["custom_role_id"]))
        created = admin.expect(201, "POST", "/users", body)
        made.append(("/users", created["id"]))
        return Somebody(created["id"], body["username"], logged_in(nobody, body["username"], PASSWORD))

    yield make
    for path, number in reversed(made):
        admin.ask("DELETE", f"{path}/{number}")


@dataclass
class Kind:
    """A resource type with a worker that owns it."""

    admin: Api
    id: int
    name: str
    version: str
    worker: Worker
    made: list[int]

    def body(self, **more: Any) -> dict[str, Any]:
        return {
            "name": unique("record"),
            "resource_type_name": self.name,
            "resource_type_version": self.version,
            "spec": DNS_SPEC,
            **more,
        }

    def create(self, **more: Any) -> dict[str, Any]:
        created: dict[str, Any] = self.admin.expect(201, "POST", "/resources", self.body(**more))
        self.made.append(created["id"])
        return created

    def get(self, resource: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.expect(200, "GET", f"/resources/{resource['id']}")
        return found

    def ready(self, **more: Any) -> dict[str, Any]:
        """A resource that the worker has made ready."""
        created = self.create(**more)
        self.worker.one().make_ready()
        return self.get(created)

    def delete(self, resource: dict[str, Any]) -> None:
        self.admin.expect(202, "DELETE", f"/resources/{resource['id']}")


def tidy_up(admin: Api, kind: Kind) -> None:
    """Takes away what a case left, whatever state that is in."""
    for number in kind.made:
        found = admin.ask("GET", f"/resources/{number}")
        if found.status_code == 200:
            admin.ask("DELETE", f"/resources/{number}")
            admin.ask("PUT", f"/resources/{number}/finalizers", {"remove": found.json()["finalizers"]})
    kind.worker.close()
    admin.ask("DELETE", f"/resource-types/{kind.id}")


@pytest.fixture
def make_kind(admin: Api) -> Iterator[Callable[..., Kind]]:
    """Makes resource types, each with its own worker."""
    made: list[Kind] = []

    def make(schema: Any = DNS_SCHEMA, version: str = "v1", **worker: Any) -> Kind:
        body = {"name": unique_type(), "version": version, "schema": schema}
        created = admin.expect(201, "POST", "/resource-types", body)
        it = Worker(admin, [{"resource_type": body["name"]}], **worker)
        made.append(Kind(admin, created["id"], body["name"], version, it, []))
        return made[-1]

    yield make
    for kind in made:
        tidy_up(admin, kind)


@pytest.fixture
def kind(make_kind: Callable[..., Kind]) -> Kind:
    return make_kind()
