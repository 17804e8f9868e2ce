"""Secrets from environment variables."""

import os
from typing import Any

from no8s_operator.plugins.secrets.base import SecretStorePlugin


class EnvSecretStore(SecretStorePlugin):
    """A key is the name of a variable. An empty one counts as absent."""

    @property
    def name(self) -> str:
        return "env"

    @property
    def version(self) -> str:
        return "1.0.0"

    async def initialize(self, config: dict[str, Any]) -> None:
        """Needs nothing."""

    async def get_secret(self, key: str) -> str:
        value = os.environ.get(key)
        if not value:
            raise KeyError(key)
        return value
