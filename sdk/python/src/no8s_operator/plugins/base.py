"""What all plugins but reconcilers are, and what action and input plugins exchange with whoever runs them."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["ActionContext", "ActionPhase", "ActionResult", "ConfiguredPlugin", "DriftResult", "ResourceSpec"]


class ConfiguredPlugin(ABC):
    """A plugin with a name and a version that is configured once, before anything else."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name it is asked for by."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Its version."""

    @abstractmethod
    async def initialize(self, config: dict[str, Any]) -> None:
        """Takes its configuration, and raises if it cannot work with it."""

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        """The configuration it takes from the host's environment."""
        return {}


class ActionPhase(StrEnum):
    """How far an action came."""

    PENDING = "pending"
    INITIALIZING = "initializing"
    PLANNING = "planning"
    APPLYING = "applying"
    DESTROYING = "destroying"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass
class ActionContext:
    """The resource an action is for."""

    resource_id: int
    resource_name: str
    generation: int
    spec: dict[str, Any]
    spec_hash: str
    plugin_config: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    """What earlier actions left; a later destroy finds here what to undo."""
    save_outputs: Callable[[dict[str, Any]], Awaitable[None]] | None = None
    """Keeps outputs at once, for what must not be forgotten if the host dies in the next line."""


@dataclass
class ActionResult:
    """What one step of an action did."""

    success: bool = False
    phase: ActionPhase = ActionPhase.PENDING
    plan_output: str = ""
    apply_output: str = ""
    error_message: str | None = None
    resources_created: int = 0
    resources_updated: int = 0
    resources_deleted: int = 0
    outputs: dict[str, Any] = field(default_factory=dict)
    has_changes: bool = False


@dataclass
class DriftResult:
    """Whether the world still is as the last apply left it."""

    has_drift: bool = False
    drift_details: str = ""
    resources_drifted: int = 0
    error_message: str | None = None


@dataclass
class ResourceSpec:
    """A resource as an input plugin asks for it."""

    name: str
    action_plugin: str
    spec: dict[str, Any]
    plugin_config: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
