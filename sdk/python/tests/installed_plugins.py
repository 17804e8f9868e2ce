"""Plugins as somebody else would install them, for tests of the host."""

import asyncio
import os
import sys
import time
from typing import Any

from no8s_operator.plugins.actions.base import ActionPlugin
from no8s_operator.plugins.base import ActionContext, ActionPhase, ActionResult
from no8s_operator.plugins.reconcilers.base import BaseReconciler, ReconcilerContext, ReconcileResult, ReconcilerPlugin


class Dns(BaseReconciler):
    @property
    def name(self) -> str:
        return "dns_record"

    @property
    def resource_types(self) -> list[str]:
        return ["DnsRecord"]

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        await ctx.update_status(resource["id"], "ready", "fine", observed_generation=resource["generation"])
        return ReconcileResult(True, "fine")


class Delegating(Dns):
    """Has the action that `plugin_config.through` names do the work."""

    @property
    def name(self) -> str:
        return "delegating"

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        number, config = resource["id"], resource["plugin_config"]
        action = await ctx.get_action_plugin(config["through"])
        action_ctx = ActionContext(
            resource_id=number,
            resource_name=resource["name"],
            generation=resource["generation"],
            spec=resource["spec"],
            spec_hash=resource["spec_hash"],
            plugin_config={key: it for key, it in config.items() if key != "through"},
            outputs=resource["outputs"],
        )
        workspace = await action.prepare(action_ctx)
        try:
            plan = await action.plan(action_ctx, workspace)
            if resource["status"] == "deleting":
                result = await action.destroy(action_ctx, workspace)
                await ctx.remove_finalizer(number, self.name)
                return ReconcileResult(result.success, result.error_message or "")
            result = await action.apply(action_ctx, workspace) if plan.has_changes else plan
            await ctx.update_outputs(number, result.outputs)
        finally:
            await action.cleanup(workspace)
        await ctx.update_status(number, "ready", observed_generation=resource["generation"])
        return ReconcileResult(result.success, result.error_message or "")


class Blocking(Dns):
    """Blocks the whole process in a resource called `record-1`."""

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        if resource["name"] == "record-1":
            time.sleep(3600)  # noqa: ASYNC251 - what this plugin is for
        return await super().reconcile(resource, ctx)


def count(line: str) -> None:
    with open(os.environ["COUNTING_FILE"], "a") as file:
        file.write(line + "\n")


class Counting(BaseReconciler):
    """Writes a line for every reconciliation into the file `COUNTING_FILE`, and takes its time."""

    max_concurrent_reconciles = 20

    @property
    def name(self) -> str:
        return "counting"

    @property
    def resource_types(self) -> list[str]:
        return ["Counted"]

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        count(f"{os.getpid()} {resource['id']} {resource['generation']}")
        await ctx.update_status(resource["id"], "reconciling")
        await asyncio.sleep(float(os.environ["COUNTING_SECONDS"]))
        await ctx.update_status(resource["id"], "ready", str(os.getpid()), observed_generation=resource["generation"])
        return ReconcileResult(True)


class OtherDns(Dns):
    @property
    def name(self) -> str:
        return "other_dns"


class Nameless(Dns):
    """Has no name, which says nothing before it is registered."""

    @property
    def name(self) -> str:
        return None  # type: ignore[return-value]

    @property
    def resource_types(self) -> list[str]:
        return ["Nameless"]


class CannotBeMade(Dns):
    def __init__(self) -> None:
        raise RuntimeError("no licence")


class Exits(Dns):
    """Ends its process for want of a setting, as a program would."""

    def __init__(self) -> None:
        sys.exit(2)


class Crashing(ReconcilerPlugin):
    """Crashes as often as told, then waits."""

    def __init__(self, crashes: int = 0, error: BaseException | None = None) -> None:
        self.crashes = crashes
        self.error = error or RuntimeError("boom")
        self.starts = 0
        self.stops = 0
        self.is_waiting = asyncio.Event()

    @property
    def name(self) -> str:
        return "crashing"

    @property
    def resource_types(self) -> list[str]:
        return ["DnsRecord"]

    async def start(self, ctx: ReconcilerContext) -> None:
        self.starts += 1
        if self.starts <= self.crashes:
            raise self.error
        self.is_waiting.set()
        await ctx.shutdown_event.wait()

    async def reconcile(self, resource: dict[str, Any], ctx: ReconcilerContext) -> ReconcileResult:
        return ReconcileResult(True)

    async def stop(self) -> None:
        self.stops += 1


class Recording(ActionPlugin):
    """An action whose steps answer what `answers` says; `calls` has what was asked of it."""

    calls: list[str]
    answers: dict[str, Any]
    configs: list[dict[str, Any]]

    @property
    def name(self) -> str:
        return "recording"

    @property
    def version(self) -> str:
        return "0.1.0"

    async def _answer(self, step: str) -> Any:
        self.calls.append(step)
        answer = self.answers.get(step, ActionResult(success=True, phase=ActionPhase.COMPLETED))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def initialize(self, config: dict[str, Any]) -> None:
        self.configs.append(config)

    async def validate_spec(self, spec: dict[str, Any]) -> tuple[bool, str | None]:
        is_valid = "bad" not in spec
        return is_valid, None if is_valid else "it is bad"

    async def prepare(self, ctx: ActionContext) -> Any:
        return await self._answer("prepare")

    async def plan(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        result: ActionResult = await self._answer("plan")
        return result

    async def apply(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        result: ActionResult = await self._answer("apply")
        return result

    async def destroy(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        result: ActionResult = await self._answer("destroy")
        return result

    async def get_outputs(self, ctx: ActionContext, workspace: Any) -> dict[str, Any]:
        return {"from": "get_outputs"}

    async def get_state(self, ctx: ActionContext, workspace: Any) -> dict[str, Any] | None:
        return None

    async def cleanup(self, workspace: Any) -> None:
        await self._answer("cleanup")
