"""The built-in worker `actions`: resources whose `action_plugin` does the work.

Prepare, plan, then apply or destroy; keep the outputs; clean up whatever happened.
"""

import asyncio
import logging
from typing import Any

from no8s_operator.cancellation import is_cancelled
from no8s_operator.plugins.actions.base import ActionPlugin, failed
from no8s_operator.plugins.base import ActionContext, ActionPhase, ActionResult
from no8s_operator.plugins.reconcilers.base import (
    WAIT_SECONDS,
    BaseReconciler,
    DetailedResult,
    ReconcilerContext,
    ReconcileResult,
)
from no8s_operator.records import trigger_reason

logger = logging.getLogger(__name__)

NAME = "actions"
# Of plan and apply output, kept in history.
OUTPUT_CHARS_MAX = 64 << 10
# How the message of a reconciliation begins that ended before the action was asked to do anything.
REFUSED = "spec is not usable: "
# Of its history, to tell whether a resource was ever more than refused. At the longest back-off, six weeks.
HISTORY_MAX = 1000
# What an action may let out at the price of this one run. A cancellation that somebody asked for goes through.
CONTAINED = (Exception, SystemExit, asyncio.CancelledError)


class ActionsReconciler(BaseReconciler):
    """Runs action plugins for the resources that name one."""

    def __init__(self, action_names: list[str], concurrency: int) -> None:
        self.action_names = action_names
        self.max_concurrent_reconciles = concurrency

    @property
    def name(self) -> str:
        return NAME

    @property
    def resource_types(self) -> list[str]:
        """None: resources come here by their action, whatever their type."""
        return []

    async def _due(self, ctx: ReconcilerContext, limit: int) -> list[dict[str, Any]]:
        claimed: list[dict[str, Any]] = await ctx.db.claim(None, limit, WAIT_SECONDS)
        return claimed

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        resource_id, action = resource["id"], resource["action_plugin"]
        is_deleting = resource["status"] == "deleting"
        await ctx.update_status(resource_id, "reconciling", f"Running action plugin {action}")
        plan, result = await self._run_action(resource, ctx, is_deleting)
        await self._keep_outputs(resource, ctx, result, is_deleting)
        message = result.error_message or ""
        if not result.success:
            message = message or f"action plugin {action} failed without saying why"
            await ctx.update_status(resource_id, "failed", message)
        elif is_deleting:
            message = "Destroyed"
            await self._release(resource, ctx)
        else:
            message = "Applied" if plan.has_changes else "No changes"
            await ctx.update_status(resource_id, "ready", message, observed_generation=resource["generation"])
        return DetailedResult(
            success=result.success,
            message=message,
            drift_detected=plan.has_changes and trigger_reason(resource) == "scheduled",
            details=_details(plan, result),
        )

    async def _run_action(
        self, resource: dict[str, Any], ctx: ReconcilerContext, is_deleting: bool
    ) -> tuple[ActionResult, ActionResult]:
        """The plan, and what became of it."""
        action, plan = resource["action_plugin"], ActionResult()
        try:
            plugin = await ctx.get_action_plugin(action)
            action_ctx = _action_context(resource, ctx)
            is_valid, reason = await plugin.validate_resource(action_ctx)
            if not is_valid:
                if is_deleting and await _was_only_refused(resource, ctx):
                    return plan, ActionResult(success=True, phase=ActionPhase.COMPLETED)
                return plan, failed(f"{REFUSED}{reason}")
            workspace = await plugin.prepare(action_ctx)
        except CONTAINED as error:
            if _is_for_us(error):
                raise
            logger.exception("Action plugin %s could not prepare %s (%s)", action, resource["name"], resource["id"])
            return plan, failed(f"prepare: {_reason(error)}")
        try:
            plan = _answered(await plugin.plan(action_ctx, workspace), action, "plan")
            if not plan.success:
                return plan, plan
            return plan, await self._carry_out(plugin, action_ctx, workspace, plan, is_deleting)
        except CONTAINED as error:
            if _is_for_us(error):
                raise
            logger.exception("Action plugin %s failed on %s (%s)", action, resource["name"], resource["id"])
            return plan, failed(_reason(error))
        finally:
            await _clean_up(plugin, workspace)

    async def _carry_out(
        self, plugin: ActionPlugin, ctx: ActionContext, workspace: Any, plan: ActionResult, is_deleting: bool
    ) -> ActionResult:
        if is_deleting:
            return _answered(await plugin.destroy(ctx, workspace), plugin.name, "destroy")
        if plan.has_changes:
            result = _answered(await plugin.apply(ctx, workspace), plugin.name, "apply")
        else:
            result = ActionResult(success=True, phase=ActionPhase.COMPLETED)
        if result.success and not result.outputs:
            result.outputs = await plugin.get_outputs(ctx, workspace) or {}
        return result

    async def _keep_outputs(
        self, resource: dict[str, Any], ctx: ReconcilerContext, result: ActionResult, is_deleting: bool
    ) -> None:
        """What a success offers replaces the old. A failure only adds, such as the run to cancel later."""
        old = resource["outputs"]
        new = result.outputs if result.success else {**old, **result.outputs}
        if not is_deleting and new != old:
            await ctx.update_outputs(resource["id"], new)

    async def _release(self, resource: dict[str, Any], ctx: ReconcilerContext) -> None:
        await ctx.remove_finalizer(resource["id"], resource["action_plugin"])
        if not await ctx.get_finalizers(resource["id"]):
            await ctx.hard_delete_resource(resource["id"])


async def _was_only_refused(resource: dict[str, Any], ctx: ReconcilerContext) -> bool:
    """Whether the action never got to do anything, so that there is nothing to destroy.

    The generation does not tell: an earlier one may have been usable and left something half made.
    """
    if resource["observed_generation"] or resource["outputs"]:
        return False
    history = await ctx.db.get_history(resource["id"], HISTORY_MAX)
    return len(history) < HISTORY_MAX and all((it["error_message"] or "").startswith(REFUSED) for it in history)


def _action_context(resource: dict[str, Any], ctx: ReconcilerContext) -> ActionContext:
    async def save(outputs: dict[str, Any]) -> None:
        await ctx.update_outputs(resource["id"], outputs)
        resource["outputs"] = outputs

    return ActionContext(
        resource_id=resource["id"],
        resource_name=resource["name"],
        generation=resource["generation"],
        spec=resource["spec"],
        spec_hash=resource["spec_hash"],
        plugin_config=resource["plugin_config"],
        outputs=resource["outputs"],
        save_outputs=save,
    )


def _answered(result: ActionResult | None, action: str, step: str) -> ActionResult:
    if result is None:
        return failed(f"{step} of action plugin '{action}' returned None")
    return result


async def _clean_up(plugin: ActionPlugin, workspace: Any) -> None:
    try:
        await plugin.cleanup(workspace)
    except CONTAINED as error:
        if _is_for_us(error):
            raise
        logger.exception("Action plugin %s could not clean up", plugin.name)


def _is_for_us(error: BaseException) -> bool:
    return isinstance(error, asyncio.CancelledError) and is_cancelled()


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _details(plan: ActionResult, result: ActionResult) -> dict[str, Any]:
    return {
        "phase": "completed" if result.success else "failed",
        "plan_output": (plan.plan_output or result.plan_output)[-OUTPUT_CHARS_MAX:],
        "apply_output": result.apply_output[-OUTPUT_CHARS_MAX:],
        "resources_created": result.resources_created,
        "resources_updated": result.resources_updated,
        "resources_deleted": result.resources_deleted,
    }
