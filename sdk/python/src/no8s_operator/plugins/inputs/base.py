"""The base class of input plugins."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from no8s_operator.plugins.base import ConfiguredPlugin, ResourceSpec

__all__ = ["InputPlugin", "OnResource"]

OnResource = Callable[[ResourceSpec], Awaitable[Any]]


class InputPlugin(ConfiguredPlugin):
    """Turns something outside, such as a queue or a repository, into resources."""

    @abstractmethod
    async def start(self, on_resource: OnResource) -> None:
        """Runs until `stop`, and calls `on_resource` for every resource it wants to exist."""

    @abstractmethod
    async def stop(self) -> None:
        """Ends `start`."""
