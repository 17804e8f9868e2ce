"""The base class of input plugins."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from no8s_operator.plugins.base import ResourceSpec

__all__ = ["InputPlugin", "OnResource"]

OnResource = Callable[[ResourceSpec], Awaitable[Any]]


class InputPlugin(ABC):
    """Turns something outside, such as a queue or a repository, into resources."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The plugin's name."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The plugin's version."""

    @abstractmethod
    async def initialize(self, config: dict[str, Any]) -> None:
        """Takes its configuration, once, before anything else."""

    @abstractmethod
    async def start(self, on_resource: OnResource) -> None:
        """Runs until `stop`, and calls `on_resource` for every resource it wants to exist."""

    @abstractmethod
    async def stop(self) -> None:
        """Ends `start`."""

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        """The configuration this plugin takes from the environment."""
        return {}
