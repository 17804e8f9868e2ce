"""The base class of secret stores."""

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["SecretStorePlugin"]


class SecretStorePlugin(ABC):
    """Reads secrets by key. One store is active in a host."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The store's name, as in `SECRET_STORE_PLUGIN`."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The store's version."""

    @abstractmethod
    async def initialize(self, config: dict[str, Any]) -> None:
        """Takes its configuration and proves that the store can be used."""

    @abstractmethod
    async def get_secret(self, key: str) -> str:
        """The secret of that key. Raises `KeyError` if there is none."""

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        """The configuration this store takes from the environment."""
        return {}
