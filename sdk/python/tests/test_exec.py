"""`exec` with real processes."""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from no8s_operator.host import discovery
from no8s_operator.plugins.actions import processes
from no8s_operator.plugins.actions.exec import ExecPlugin, read_commands
from no8s_operator.plugins.base import ActionContext
from no8s_operator.plugins.registry import PluginRegistry


def python(code: str) -> list[str]:
    return [sys.executable, "-u", "-c", code]


async def plugin(tmp_path: Path, **steps: Any) -> ExecPlugin:
    file = tmp_path / "commands.json"
    file.write_text(json.dumps({"commands": {"net": {"apply": python("pass"), **steps}}}))
    it = ExecPlugin()
    await it.initialize({"commands_file": str(file)})
    return it


def context(**config: Any) -> ActionContext:
    return ActionContext(5, "net-a", 2, {"cidr": "10.0.0.0/8"}, "00", {"command": "net", **config})


async def test_a_life_with_spec_outputs_and_state(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    read = "import json,os; s=json.load(open(os.environ['NO8S_SPEC_FILE']));"
    state = "open(os.environ['NO8S_STATE_DIRECTORY']+'/state','a').write('x');"
    out = "json.dump({'net': s['cidr']}, open(os.environ['NO8S_OUTPUTS_FILE'],'w')); print('made', s['cidr'])"
    it = await plugin(
        tmp_path,
        plan=python("import sys; print('1 to add'); sys.exit(2)"),
        apply=python(read + state + out),
        destroy=python("print('gone')"),
        state_directory=str(tmp_path / "state"),
    )
    ctx = context()
    workspace = await it.prepare(ctx)
    plan = await it.plan(ctx, workspace)
    assert (plan.success, plan.has_changes, plan.plan_output) == (True, True, "1 to add")
    result = await it.apply(ctx, workspace)
    assert (result.success, result.apply_output, result.outputs) == (True, "made 10.0.0.0/8", {"net": "10.0.0.0/8"})
    assert "net-a (5) apply: made 10.0.0.0/8" in caplog.text
    assert (tmp_path / "state" / "5" / "state").exists()
    assert (await it.destroy(ctx, workspace)).apply_output == "gone"
    assert not (tmp_path / "state" / "5").exists()
    await it.cleanup(workspace)
    assert not workspace["folder"].exists()


@pytest.mark.parametrize(("code", "success", "has_changes"), [(0, True, False), (2, True, True), (1, False, False)])
async def test_the_plans_exit_code_says_it(tmp_path: Path, code: int, success: bool, has_changes: bool) -> None:
    it = await plugin(tmp_path, plan=python(f"import sys; print('why'); sys.exit({code})"))
    plan = await it.plan(context(), await it.prepare(context()))
    assert (plan.success, plan.has_changes) == (success, has_changes)
    assert plan.error_message == (None if success else "plan ended with 1: why")


async def test_without_a_plan_everything_is_applied(tmp_path: Path) -> None:
    it = await plugin(tmp_path)
    assert (await it.plan(context(), await it.prepare(context()))).has_changes


@pytest.mark.parametrize("command", [None, "other", ["sh"], "../net"])
async def test_only_configured_commands_run(tmp_path: Path, command: Any) -> None:
    it = await plugin(tmp_path)
    with pytest.raises(ValueError, match=r"is not configured\. Available commands: net"):
        await it.prepare(context(command=command, apply=["sh", "-c", "id"]))


async def test_the_hosts_token_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCERT_TOKEN", "t0ken")
    it = await plugin(tmp_path, apply=python("import os; print(dict(os.environ))"), environment={"A": "b"})
    result = await it.apply(context(), await it.prepare(context()))
    assert "t0ken" not in result.apply_output
    assert "'A': 'b'" in result.apply_output


def is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


FORK = "import subprocess,time; p=subprocess.Popen(['sleep','600']); print(p.pid);"


async def test_a_timeout_ends_the_whole_process_group(tmp_path: Path, until: Any) -> None:
    it = await plugin(tmp_path, apply=python(FORK + "time.sleep(600)"), timeout_seconds=1)
    result = await it.apply(context(), await it.prepare(context()))
    assert not result.success
    assert "apply was stopped after 1 s" in str(result.error_message)
    await until(lambda: not is_running(int(result.apply_output)))


async def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path, until: Any) -> None:
    it = await plugin(tmp_path, apply=python(FORK))
    result = await it.apply(context(), await it.prepare(context()))
    assert result.success
    await until(lambda: not is_running(int(result.apply_output)))


async def test_a_cancelled_step_ends_its_command(tmp_path: Path, until: Any) -> None:
    mark = tmp_path / "pid"
    it = await plugin(
        tmp_path, apply=python(f"import os,time; open({str(mark)!r},'w').write(str(os.getpid())); time.sleep(600)")
    )
    task = asyncio.create_task(it.apply(context(), await it.prepare(context())))
    pid = int(await until(lambda: mark.exists() and mark.read_text()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(pid)


async def test_one_that_ignores_the_polite_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE_SECONDS", 0.2)
    code = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); time.sleep(600)"
    it = await plugin(tmp_path, apply=python(code), timeout_seconds=1)
    result = await it.apply(context(), await it.prepare(context()))
    assert result.apply_output == "up"
    assert not result.success


async def test_output_is_bounded_and_printable(tmp_path: Path) -> None:
    code = "print('\\x1b[2Jfirst'); [print('line', i, 'x' * 90) for i in range(3000)]; print('y' * 100000)"
    it = await plugin(tmp_path, apply=python(code))
    output = (await it.apply(context(), await it.prepare(context()))).apply_output
    assert len(output) < processes.KEPT_BYTES_MAX + 2 * processes.LINE_BYTES_MAX
    assert "earlier lines are in the log only" in output
    assert output.rstrip().endswith("y")
    it = await plugin(tmp_path, apply=python("print('\\x1b[2Jfirst')"))
    assert (await it.apply(context(), await it.prepare(context()))).apply_output == "\\x1b[2Jfirst"


async def test_a_failing_prepare_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    os.mkdir(tmp_path / "tmp")
    it = await plugin(tmp_path, prepare=python("import sys; print('no'); sys.exit(4)"))
    with pytest.raises(RuntimeError, match="prepare ended with 4: no"):
        await it.prepare(context())
    assert list((tmp_path / "tmp").iterdir()) == []


async def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    it = await plugin(tmp_path, apply=["/nowhere/program"])
    result = await it.apply(context(), await it.prepare(context()))
    assert "/nowhere/program cannot be started" in str(result.error_message)


@pytest.mark.parametrize("outputs", ["[1]", "{", "null"])
async def test_outputs_must_be_an_object(tmp_path: Path, outputs: str) -> None:
    it = await plugin(
        tmp_path, apply=python(f"import os; open(os.environ['NO8S_OUTPUTS_FILE'],'w').write({outputs!r})")
    )
    with pytest.raises(ValueError):
        await it.apply(context(), await it.prepare(context()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be used"),
        ("{}", "cannot be used"),
        ('{"commands": {"a": {"plan": ["x"]}}}', "a has no `apply`"),
        ('{"commands": {"a": {"apply": "rm -rf"}}}', "a.apply must be a list of arguments"),
        ('{"commands": {"a": {"apply": ["x"], "shell": true}}}', "a has unknown members: shell"),
    ],
)
def test_a_bad_file_of_commands_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "commands.json"
    file.write_text(text)
    with pytest.raises(ValueError, match="CONCERT_EXEC_COMMANDS") as raised:
        read_commands(file)
    assert message in str(raised.value)


def test_it_is_off_without_configuration() -> None:
    assert discovery.actions(PluginRegistry({}), {}, lambda _: []) == ["github_actions", "http_api"]
    names = discovery.actions(PluginRegistry({}), {"CONCERT_EXEC_COMMANDS": "x"}, lambda _: [])
    assert names == ["github_actions", "http_api", "exec"]
    assert discovery.actions(PluginRegistry({}), {"ENABLED_ACTION_PLUGINS": "http_api, x"}, lambda _: []) == [
        "http_api"
    ]
