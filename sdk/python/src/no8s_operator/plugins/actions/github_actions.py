"""Runs a GitHub Actions workflow for a resource and waits for it.

The spec (or the resource's `plugin_config`) has `owner`, `repo`, `workflow` (file name or number),
`ref` (default `main`) and `inputs`. Where GitHub is, and with whose token, is the host's to say: a
resource that could name the API would be sent the token.
"""

import asyncio
import contextlib
import logging
import os
import re
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from no8s_operator.plugins.actions.base import ActionPlugin, failed
from no8s_operator.plugins.actions.github.api import GitHub, GitHubError
from no8s_operator.plugins.actions.github.dispatch import Runs
from no8s_operator.plugins.base import ActionContext, ActionPhase, ActionResult

logger = logging.getLogger(__name__)

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")
_REPO = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_WORKFLOW = re.compile(r"[0-9]{1,20}|[A-Za-z0-9_-][A-Za-z0-9._-]{0,200}\.ya?ml")
_REF = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._/+-]{0,243}")
_CHECKS = (("owner", _OWNER), ("repo", _REPO), ("workflow", _WORKFLOW), ("ref", _REF))


@dataclass
class Target:
    """What to run: every part checked, so that none can leave its place in a URL."""

    owner: str
    repo: str
    workflow: str
    ref: str
    inputs: dict[str, Any]
    correlation_input: str | None

    @property
    def actions(self) -> str:
        return f"/repos/{self.owner}/{self.repo}/actions"


def target(spec: dict[str, Any], plugin_config: dict[str, Any]) -> Target:
    """What a resource asks for. Raises `ValueError` naming the field and the rule."""
    wanted = {**plugin_config, **spec}
    fields = {"ref": "main"} | {key: str(wanted[key]) for key, _ in _CHECKS if wanted.get(key) not in (None, "")}
    for key, pattern in _CHECKS:
        if key not in fields:
            raise ValueError(f"spec.{key} is required by github_actions")
        if not pattern.fullmatch(fields[key]):
            raise ValueError(f"spec.{key}: {fields[key]!r} is no GitHub {key}")
    inputs = wanted.get("inputs") or {}
    if not isinstance(inputs, dict):
        raise ValueError("spec.inputs must be an object")
    return Target(**fields, inputs=inputs, correlation_input=wanted.get("correlation_input"))


class GitHubActionsPlugin(ActionPlugin):
    """`github_actions`: plan looks at the workflow, apply runs it, destroy cancels what still runs."""

    def __init__(self) -> None:
        self._github = GitHub("", None)
        self._timeout = 3600.0
        self._poll_interval = 10.0
        # Held while a dispatch looks for its run, so that two of ours never look for each other's.
        self._turns: WeakValueDictionary[tuple[str, ...], asyncio.Lock] = WeakValueDictionary()

    @property
    def name(self) -> str:
        return "github_actions"

    @property
    def version(self) -> str:
        return "1.0.0"

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        return {
            "token": os.environ.get("GITHUB_TOKEN", ""),
            "api_url": os.environ.get("GITHUB_API_URL") or "https://api.github.com",
            "timeout": float(os.environ.get("GITHUB_ACTIONS_TIMEOUT") or 3600),
            "poll_interval": float(os.environ.get("GITHUB_ACTIONS_POLL_INTERVAL") or 10),
        }

    async def initialize(self, config: dict[str, Any]) -> None:
        self._github = GitHub(str(config["api_url"]), config.get("token") or None)
        self._timeout = float(config.get("timeout", self._timeout))
        self._poll_interval = float(config.get("poll_interval", self._poll_interval))

    async def validate_spec(self, spec: dict[str, Any]) -> tuple[bool, str | None]:
        try:
            target(spec, {})
        except ValueError as error:
            return False, str(error)
        return True, None

    async def validate_resource(self, ctx: ActionContext) -> tuple[bool, str | None]:
        return await self.validate_spec({**ctx.plugin_config, **ctx.spec})

    async def prepare(self, ctx: ActionContext) -> Any:
        return {"target": target(ctx.spec, ctx.plugin_config), "run_id": None}

    async def plan(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        it: Target = workspace["target"]
        try:
            workflow = await self._github.get(f"{it.actions}/workflows/{it.workflow}")
        except GitHubError as error:
            return failed(f"cannot read workflow {it.workflow} of {it.owner}/{it.repo}: {error}")
        text = (
            f"Workflow {workflow.get('name') or it.workflow} ({workflow.get('state', 'unknown')}) would run on {it.ref}"
        )
        return ActionResult(success=True, phase=ActionPhase.PLANNING, plan_output=text, has_changes=True)

    async def apply(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        it: Target = workspace["target"]
        runs = Runs(self._github, it.actions, it.workflow, it.ref)
        try:
            run_id = workspace["run_id"] = await self._unfinished(it, ctx)
            if run_id is None:
                async with self._turn(it):
                    run_id = workspace["run_id"] = await runs.dispatch(it.inputs, it.correlation_input)
                if ctx.save_outputs:
                    rest = {key: value for key, value in ctx.outputs.items() if key != "run_conclusion"}
                    await ctx.save_outputs({**rest, **_run(run_id), "run_generation": ctx.generation})
            result = await self._follow(it, run_id)
            result.outputs["run_generation"] = ctx.generation
            return result
        except GitHubError as error:
            return failed(str(error), outputs=_run(workspace["run_id"]))
        except BaseException:
            # The lease is lost or the host stops. A run whose id was kept is followed by whoever comes
            # next; nobody would know of any other.
            if ctx.save_outputs is None:
                await self._cancel_quietly(it, workspace["run_id"])
            raise

    async def destroy(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        it: Target = workspace["target"]
        run_id = workspace["run_id"] or ctx.outputs.get("run_id")
        if not isinstance(run_id, int):
            return ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output="No run to cancel")
        try:
            was_running = await self._cancel(it, run_id)
        except GitHubError as error:
            return failed(f"cannot cancel run {run_id}: {error}")
        text = f"Run {run_id} was cancelled" if was_running else f"Run {run_id} had ended"
        return ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output=text)

    async def get_outputs(self, ctx: ActionContext, workspace: Any) -> dict[str, Any]:
        run_id = workspace["run_id"] or ctx.outputs.get("run_id")
        return await self._outputs(workspace["target"], run_id) if isinstance(run_id, int) else {}

    async def get_state(self, ctx: ActionContext, workspace: Any) -> dict[str, Any] | None:
        run_id = workspace["run_id"] or ctx.outputs.get("run_id")
        if not isinstance(run_id, int):
            return None
        return await self._github.get(f"{workspace['target'].actions}/runs/{run_id}")

    async def cleanup(self, workspace: Any) -> None:
        """Nothing is kept outside the workspace."""

    def _turn(self, it: Target) -> asyncio.Lock:
        key = (it.owner.lower(), it.repo.lower(), it.workflow, it.ref)
        lock = self._turns.get(key)
        if lock is None:
            lock = self._turns[key] = asyncio.Lock()
        return lock

    async def _unfinished(self, it: Target, ctx: ActionContext) -> int | None:
        """The run that an earlier attempt for this generation started and did not see end."""
        run_id = ctx.outputs.get("run_id")
        is_ours = ctx.outputs.get("run_generation") == ctx.generation and "run_conclusion" not in ctx.outputs
        if not isinstance(run_id, int) or not is_ours:
            return None
        try:
            await self._github.get(f"{it.actions}/runs/{run_id}")
        except GitHubError as error:
            if error.status == 404:
                return None
            raise
        return run_id

    async def _follow(self, it: Target, run_id: int) -> ActionResult:
        try:
            async with asyncio.timeout(self._timeout):
                run = await self._completed(it, run_id)
        except TimeoutError:
            await self._cancel_quietly(it, run_id)
            return failed(
                f"run {run_id} did not end within {self._timeout:g} s",
                outputs={**_run(run_id), "run_conclusion": "timed_out"},
            )
        conclusion, url = run.get("conclusion"), run.get("html_url", "")
        outputs = {**await self._outputs(it, run_id), "html_url": url, "run_conclusion": conclusion}
        text = f"Run {run_id} ended with {conclusion} {url}".rstrip()
        if conclusion == "success":
            return ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output=text, outputs=outputs)
        return failed(f"run {run_id} ended with {conclusion}", apply_output=text, outputs=outputs)

    async def _completed(self, it: Target, run_id: int) -> dict[str, Any]:
        while True:
            run = await self._github.get(f"{it.actions}/runs/{run_id}")
            if run.get("status") == "completed":
                return run
            await asyncio.sleep(self._poll_interval)

    async def _outputs(self, it: Target, run_id: int) -> dict[str, Any]:
        """Jobs and artifacts. The artifact URLs need a token, so they are no secret."""
        base = f"{it.actions}/runs/{run_id}"
        jobs = await self._github.pages(f"{base}/jobs", "jobs")
        artifacts = await self._github.pages(f"{base}/artifacts", "artifacts")
        return {
            **_run(run_id),
            "jobs": [_pick(job, "name", "status", "conclusion", "started_at", "completed_at") for job in jobs],
            "artifacts": [_pick(each, "name", "size_in_bytes", "archive_download_url") for each in artifacts],
        }

    async def _cancel(self, it: Target, run_id: int) -> bool:
        """Whether the run was still going. One that has ended, or is gone, needs no cancelling."""
        try:
            await self._github.post(f"{it.actions}/runs/{run_id}/cancel")
        except GitHubError as error:
            if error.status in (404, 409):
                return False
            raise
        return True

    async def _cancel_quietly(self, it: Target, run_id: int | None) -> None:
        if run_id is not None:
            with contextlib.suppress(GitHubError, asyncio.CancelledError):
                await asyncio.shield(self._cancel(it, run_id))


def _run(run_id: int | None) -> dict[str, Any]:
    return {} if run_id is None else {"run_id": run_id}


def _pick(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item.get(key) for key in keys}
