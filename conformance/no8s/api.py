"""HTTP to the server under test, and names that nobody else uses."""

import base64
import hashlib
import hmac
import json
import re
import secrets
import string
import time
from typing import Any

import httpx

NAIVE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?")
ZULU = re.compile(NAIVE.pattern + "Z")
OFFSET = re.compile(NAIVE.pattern + r"\+00:00")
PASSWORD = "correct horse battery"

DNS_SCHEMA = {
    "type": "object",
    "required": ["domain", "type", "value"],
    "properties": {
        "domain": {"type": "string"},
        "type": {"type": "string", "enum": ["A", "AAAA", "CNAME", "TXT"]},
        "value": {"type": "string"},
        "ttl": {"type": "integer", "minimum": 60, "default": 300},
    },
}
DNS_SPEC = {"domain": "api.example.com", "type": "A", "value": "203.0.113.50", "ttl": 300}


def unique(prefix: str) -> str:
    """A name for a resource, user or role."""
    return f"{prefix}-{secrets.token_hex(5)}"


def unique_type(prefix: str = "Dns") -> str:
    """A name for a resource type."""
    return prefix + "".join(secrets.choice(string.ascii_lowercase) for _ in range(10))


def token(claims: dict[str, Any], key: str, algorithm: str = "HS256") -> str:
    """A JSON web token, as good or bad as the case needs it."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    signed = f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(claims)}"
    if algorithm == "none":
        return signed + "."
    mac = hmac.new(key.encode(), signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


class Api:
    """One caller: requests below `/api/v1`, each with the status it must have."""

    def __init__(self, client: httpx.Client, bearer: str | None) -> None:
        self.client = client
        self.bearer = bearer

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        headers = dict(more.pop("headers", {}))
        if self.bearer:
            headers.setdefault("Authorization", f"Bearer {self.bearer}")
        if body is not None:
            more["json"] = body
        url = path if path.startswith("/health") or path in ("/openapi.json", "/docs") else "/api/v1" + path
        return self.client.request(method, url, headers=headers, **more)

    def expect(self, status: int, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = self.ask(method, path, body, **more)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def refused(self, status: int, detail: str, method: str, path: str, body: Any = None, **more: Any) -> None:
        """A refusal in this door's shape, with exactly this text."""
        assert self.expect(status, method, path, body, **more) == {"detail": detail}

    def invalid(self, place: list[Any], method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        """A 422 that names the place; returns that entry."""
        entries = self.expect(422, method, path, body, **more)["detail"]
        assert isinstance(entries, list), entries
        for entry in entries:
            assert {"type", "loc", "msg"} <= set(entry), entry
        found = [it for it in entries if it["loc"] == place]
        assert found, f"no entry for {place} in {entries}"
        return found[0]

    def wait(self, path: str, condition: Any, seconds: float = 15) -> Any:
        """The body at `path` once `condition` holds for it."""
        end = time.monotonic() + seconds
        while True:
            answer = self.ask("GET", path)
            if condition(answer.json() if answer.status_code == 200 else None):
                return answer.json()
            assert time.monotonic() < end, f"{path} still is {answer.status_code} {answer.text}"
            time.sleep(0.02)
