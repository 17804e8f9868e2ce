"""Runs commands for a resource: Terraform, Ansible, scripts.

Commands come only from the file that `CONCERT_EXEC_COMMANDS` names, never from a resource: a resource
picks one by name (`plugin_config.command`) and hands it its spec as a file. Without that variable the
plugin is off. Each entry has `apply` and may have `prepare`, `plan` and `destroy`, all lists of
arguments; no shell reads them.

    {"commands": {"network": {"plan": ["…"], "apply": ["…"], "destroy": ["…"], "timeout_seconds": 900}}}

`plan` ends with 0 when nothing would change and with 2 when something would.
"""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from no8s_operator.plugins.actions.base import ActionPlugin, failed
from no8s_operator.plugins.actions.processes import Ended, run
from no8s_operator.plugins.base import ActionContext, ActionPhase, ActionResult

STEPS = ("prepare", "plan", "apply", "destroy")
TIMEOUT_SECONDS = 3600.0
PLAN_HAS_CHANGES = 2
OUTPUTS_BYTES_MAX = 1 << 20
# What a command sees of the host's environment. The host's own token is not among it.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True)
class Commands:
    """One entry of the commands file."""

    steps: dict[str, list[str]]
    timeout_seconds: float = TIMEOUT_SECONDS
    environment: dict[str, str] = field(default_factory=dict)
    state_directory: str | None = None


class ExecPlugin(ActionPlugin):
    """`exec`: the steps of an action are commands of the server's configuration."""

    def __init__(self) -> None:
        self._commands: dict[str, Commands] = {}

    @property
    def name(self) -> str:
        return "exec"

    @property
    def version(self) -> str:
        return "1.0.0"

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        return {"commands_file": os.environ.get("CONCERT_EXEC_COMMANDS", "")}

    async def initialize(self, config: dict[str, Any]) -> None:
        if not config.get("commands_file"):
            raise ValueError("exec is off: CONCERT_EXEC_COMMANDS names no file of commands")
        self._commands = read_commands(Path(config["commands_file"]))

    async def validate_spec(self, spec: dict[str, Any]) -> tuple[bool, str | None]:
        """Any spec will do: it is the command's to judge."""
        return True, None

    async def validate_resource(self, ctx: ActionContext) -> tuple[bool, str | None]:
        name = ctx.plugin_config.get("command")
        if isinstance(name, str) and name in self._commands:
            return True, None
        available = ", ".join(sorted(self._commands)) or "none"
        return False, f"plugin_config.command: {name!r} is not configured. Available commands: {available}"

    async def prepare(self, ctx: ActionContext) -> Any:
        is_known, reason = await self.validate_resource(ctx)
        if not is_known:
            raise ValueError(reason)
        commands = self._commands[ctx.plugin_config["command"]]
        folder = Path(tempfile.mkdtemp(prefix="no8s-exec-"))
        workspace = {"folder": folder, "commands": commands}
        try:
            (folder / "spec.json").write_text(json.dumps(ctx.spec), encoding="utf-8")
            ended = await self._step("prepare", ctx, workspace)
            if ended and not ended.is_success:
                raise RuntimeError(f"prepare {ended.how}: {ended.last_line}")
        except BaseException:
            await self.cleanup(workspace)
            raise
        return workspace

    async def plan(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        ended = await self._step("plan", ctx, workspace)
        if ended is None:
            text = "There is no plan command; apply always runs"
            return ActionResult(success=True, phase=ActionPhase.PLANNING, plan_output=text, has_changes=True)
        if ended.is_success or ended.code == PLAN_HAS_CHANGES:
            return ActionResult(
                success=True, phase=ActionPhase.PLANNING, plan_output=ended.output, has_changes=not ended.is_success
            )
        return failed(f"plan {ended.how}: {ended.last_line}", plan_output=ended.output)

    async def apply(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        return await self._act("apply", ctx, workspace)

    async def destroy(self, ctx: ActionContext, workspace: Any) -> ActionResult:
        result = await self._act("destroy", ctx, workspace)
        state = _state(workspace["commands"], ctx)
        if result.success and state:
            shutil.rmtree(state, ignore_errors=True)
        return result

    async def get_outputs(self, ctx: ActionContext, workspace: Any) -> dict[str, Any]:
        """What the command wrote, as a JSON object, into the file `NO8S_OUTPUTS_FILE`."""
        file = workspace["folder"] / "outputs.json"
        if not file.exists():
            return {}
        if file.stat().st_size > OUTPUTS_BYTES_MAX:
            raise ValueError(f"the command's outputs have more than {OUTPUTS_BYTES_MAX} bytes")
        outputs = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(outputs, dict):
            raise ValueError("the command's outputs are no JSON object")
        return outputs

    async def get_state(self, ctx: ActionContext, workspace: Any) -> dict[str, Any] | None:
        return None

    async def cleanup(self, workspace: Any) -> None:
        shutil.rmtree(workspace["folder"], ignore_errors=True)

    async def _act(self, step: str, ctx: ActionContext, workspace: Any) -> ActionResult:
        ended = await self._step(step, ctx, workspace)
        if ended is None:
            return ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output=f"There is no {step} command")
        if not ended.is_success:
            return failed(f"{step} {ended.how}: {ended.last_line}", apply_output=ended.output)
        outputs = await self.get_outputs(ctx, workspace)
        return ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output=ended.output, outputs=outputs)

    async def _step(self, step: str, ctx: ActionContext, workspace: Any) -> Ended | None:
        commands: Commands = workspace["commands"]
        if step not in commands.steps:
            return None
        folder: Path = workspace["folder"]
        environment = {key: os.environ[key] for key in PASSED_ON if key in os.environ}
        environment |= commands.environment | {
            "NO8S_RESOURCE_ID": str(ctx.resource_id),
            "NO8S_RESOURCE_NAME": ctx.resource_name,
            "NO8S_GENERATION": str(ctx.generation),
            "NO8S_SPEC_FILE": str(folder / "spec.json"),
            "NO8S_OUTPUTS_FILE": str(folder / "outputs.json"),
        }
        state = _state(commands, ctx)
        if state:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            environment["NO8S_STATE_DIRECTORY"] = str(state)
        label = f"{ctx.resource_name} ({ctx.resource_id}) {step}"
        return await run(commands.steps[step], folder, environment, commands.timeout_seconds, label)


def read_commands(file: Path) -> dict[str, Commands]:
    """The commands of a file. Raises `ValueError` naming the entry and the rule."""
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))["commands"]
        return {name: _commands(name, entry) for name, entry in entries.items()}
    except (OSError, KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"CONCERT_EXEC_COMMANDS: {file} cannot be used: {error!r}") from error


def _commands(name: str, entry: dict[str, Any]) -> Commands:
    unknown = set(entry) - {*STEPS, "timeout_seconds", "environment", "state_directory"}
    if unknown:
        raise ValueError(f"CONCERT_EXEC_COMMANDS: {name} has unknown members: {', '.join(sorted(unknown))}")
    steps = {step: entry[step] for step in STEPS if step in entry}
    for step, arguments in steps.items():
        if not isinstance(arguments, list) or not arguments or not all(isinstance(it, str) for it in arguments):
            raise ValueError(f"CONCERT_EXEC_COMMANDS: {name}.{step} must be a list of arguments")
    if "apply" not in steps:
        raise ValueError(f"CONCERT_EXEC_COMMANDS: {name} has no `apply`")
    return Commands(
        steps=steps,
        timeout_seconds=float(entry.get("timeout_seconds", TIMEOUT_SECONDS)),
        environment={str(key): str(it) for key, it in entry.get("environment", {}).items()},
        state_directory=entry.get("state_directory"),
    )


def _state(commands: Commands, ctx: ActionContext) -> Path | None:
    return Path(commands.state_directory) / str(int(ctx.resource_id)) if commands.state_directory else None
