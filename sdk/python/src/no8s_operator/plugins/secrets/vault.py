"""Secrets from HashiCorp Vault, key-value engine version 2."""

import os
import re
from typing import Any
from urllib.parse import quote

import aiohttp

from no8s_operator.plugins.secrets.base import SecretStorePlugin

# Segments of a path below the mount; none may be `.` or `..`.
_KEY = re.compile(r"(?!\.{1,2}(/|$))[\w.\- ]+(/(?!\.{1,2}(/|$))[\w.\- ]+)*")
_SECONDS = aiohttp.ClientTimeout(total=15)


class VaultSecretStore(SecretStorePlugin):
    """A key is a path below the mount; the secret is the field `value` of what is there."""

    def __init__(self) -> None:
        self._address = ""
        self._mount = ""
        self._headers: dict[str, str] = {}

    @property
    def name(self) -> str:
        return "vault"

    @property
    def version(self) -> str:
        return "1.0.0"

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        return {
            "address": os.environ.get("VAULT_ADDR", "http://127.0.0.1:8200"),
            "token": os.environ.get("VAULT_TOKEN", ""),
            "mount": os.environ.get("VAULT_MOUNT", "secret"),
            "namespace": os.environ.get("VAULT_NAMESPACE", ""),
        }

    async def initialize(self, config: dict[str, Any]) -> None:
        if not config.get("token"):
            raise ValueError("VAULT_TOKEN is required by the secret store `vault`")
        self._address = str(config["address"]).rstrip("/")
        self._mount = quote(str(config["mount"]).strip("/"))
        self._headers = {"X-Vault-Token": config["token"]}
        if config.get("namespace"):
            self._headers["X-Vault-Namespace"] = config["namespace"]
        status, _ = await self._get("auth/token/lookup-self")
        if status != 200:
            raise ValueError(f"Vault at {self._address} refused VAULT_TOKEN (HTTP {status})")

    async def get_secret(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise KeyError(key)
        status, body = await self._get(f"{self._mount}/data/{quote(key)}")
        if status == 404:
            raise KeyError(key)
        if status != 200:
            raise RuntimeError(f"Vault answered HTTP {status} for secret {key!r}")
        value = ((body.get("data") or {}).get("data") or {}).get("value")
        if not isinstance(value, str) or not value:
            raise KeyError(key)
        return value

    async def _get(self, path: str) -> tuple[int, dict[str, Any]]:
        # A session for each read: secrets are read rarely, and a store has no moment to close one.
        async with (
            aiohttp.ClientSession(headers=self._headers, timeout=_SECONDS) as session,
            session.get(f"{self._address}/v1/{path}", allow_redirects=False) as answer,
        ):
            is_json = answer.content_type == "application/json"
            body = await answer.json() if is_json else {}
            return answer.status, body if isinstance(body, dict) else {}
