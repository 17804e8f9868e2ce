"""The base class of secret stores."""

from abc import abstractmethod

from no8s_operator.plugins.base import ConfiguredPlugin

__all__ = ["SecretStorePlugin"]


class SecretStorePlugin(ConfiguredPlugin):
    """Reads secrets by key. One store, named by `SECRET_STORE_PLUGIN`, is active in a host."""

    @abstractmethod
    async def get_secret(self, key: str) -> str:
        """The secret of that key. Raises `KeyError` if there is none."""
