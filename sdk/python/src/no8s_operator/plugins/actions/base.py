"""The base class of action plugins."""

from abc import abstractmethod
from typing import Any

from no8s_operator.plugins.base import ActionContext, ActionPhase, ActionResult, ConfiguredPlugin, DriftResult

__all__ = ["ActionContext", "ActionPhase", "ActionPlugin", "ActionResult", "DriftResult", "failed"]


class ActionPlugin(ConfiguredPlugin):
    """Prepare, plan, apply or destroy, clean up. One instance serves every resource, at the same time."""

    @abstractmethod
    async def validate_spec(self, spec: dict[str, Any]) -> tuple[bool, str | None]:
        """Whether the plugin can work with `spec`, and if not, why."""

    async def validate_resource(self, ctx: ActionContext) -> tuple[bool, str | None]:
        """Whether the plugin can work with a whole resource: a part of what it needs may be in `plugin_config`."""
        return await self.validate_spec(ctx.spec)

    @abstractmethod
    async def prepare(self, ctx: ActionContext) -> Any:
        """A workspace for the following steps; only the plugin knows what is in it."""

    @abstractmethod
    async def plan(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        """What `apply` would do, without doing it."""

    @abstractmethod
    async def apply(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        """Makes the world match the spec."""

    @abstractmethod
    async def destroy(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        """Undoes what `apply` did."""

    @abstractmethod
    async def get_outputs(self, ctx: ActionContext, workspace: Any) -> dict[str, Any]:
        """What the resource offers to others after `apply`."""

    @abstractmethod
    async def get_state(self, ctx: ActionContext, workspace: Any) -> dict[str, Any] | None:
        """What the plugin knows of the resource's state, if it can tell."""

    @abstractmethod
    async def cleanup(self, workspace: Any) -> None:
        """Removes the workspace. Called whatever happened before."""

    async def detect_drift(self, ctx: ActionContext, workspace: Any) -> DriftResult:
        """Whether the world still matches, judged by `plan` unless a plugin knows better."""
        plan = await self.plan(ctx, workspace)
        return DriftResult(
            has_drift=plan.success and plan.has_changes,
            drift_details=plan.plan_output,
            error_message=plan.error_message,
        )


def failed(message: str, **more: Any) -> ActionResult:
    """A step that did not succeed, with the reason."""
    return ActionResult(success=False, phase=ActionPhase.FAILED, error_message=message, **more)
