"""The built-in worker `actions`."""

import asyncio
from typing import Any

import pytest
from installed_plugins import Recording
from speaker import Speaker, resource

from no8s_operator.host.actions import ActionsReconciler
from no8s_operator.plugins.base import ActionPhase, ActionResult
from no8s_operator.plugins.reconcilers.base import ReconcilerContext

SEEN = "2026-01-02T03:04:05"
CHANGES = ActionResult(success=True, plan_output="1 to add", has_changes=True)
APPLIED = ActionResult(success=True, phase=ActionPhase.COMPLETED, apply_output="added", resources_created=1)


@pytest.fixture
def action(ctx: ReconcilerContext, monkeypatch: pytest.MonkeyPatch) -> type[Recording]:
    for name, value in (("calls", []), ("answers", {}), ("configs", [])):
        monkeypatch.setattr(Recording, name, value, raising=False)
    ctx.registry.register_action(Recording)
    return Recording


async def reconciled(ctx: ReconcilerContext, speaker: Speaker, until: Any, **more: Any) -> dict[str, Any]:
    """The result that the server was told for one resource."""
    speaker.offer(resource(1, action_plugin="recording", finalizers=["recording"], **more))
    task = asyncio.create_task(ActionsReconciler(["recording"], 5).start(ctx))
    await until(lambda: speaker.results(1))
    ctx.shutdown_event.set()
    await asyncio.wait_for(task, 10)
    assert "resource_types" not in speaker.claims[0]
    return speaker.results(1)[0]


def statuses(speaker: Speaker) -> list[tuple[str, str]]:
    return [(it["status"], it["message"]) for it in speaker.writes if it["op"] == "status"]


async def test_plan_and_apply(ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]) -> None:
    action.answers |= {"plan": CHANGES, "apply": APPLIED}
    result = await reconciled(ctx, speaker, until)
    assert action.calls == ["prepare", "plan", "apply", "cleanup"]
    assert speaker.ops(1) == ["status", "outputs", "status", "result"]
    assert statuses(speaker) == [("reconciling", "Running action plugin recording"), ("ready", "Applied")]
    assert result["success"] is True
    assert (result["plan_output"], result["apply_output"], result["resources_created"]) == ("1 to add", "added", 1)
    assert (result["phase"], result["trigger_reason"], result["drift_detected"]) == ("completed", "initial", False)


async def test_nothing_to_do(ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]) -> None:
    result = await reconciled(ctx, speaker, until, outputs={"from": "get_outputs"})
    assert action.calls == ["prepare", "plan", "cleanup"]
    assert speaker.ops(1) == ["status", "status", "result"], "outputs that are as they were are not written"
    assert (result["success"], statuses(speaker)[-1]) == (True, ("ready", "No changes"))


async def test_changes_at_a_scheduled_look_are_drift(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]
) -> None:
    action.answers |= {"plan": CHANGES, "apply": APPLIED}
    result = await reconciled(ctx, speaker, until, status="ready", observed_generation=1, last_reconcile_time=SEEN)
    assert (result["trigger_reason"], result["drift_detected"]) == ("scheduled", True)


@pytest.mark.parametrize(
    ("answers", "message", "calls"),
    [
        ({"prepare": RuntimeError("no disk")}, "prepare: no disk", ["prepare"]),
        ({"plan": ActionResult(error_message="bad plan")}, "bad plan", ["prepare", "plan", "cleanup"]),
        ({"plan": RuntimeError("boom")}, "boom", ["prepare", "plan", "cleanup"]),
        ({"prepare": asyncio.CancelledError()}, "prepare: CancelledError", ["prepare"]),
        ({"plan": asyncio.CancelledError()}, "CancelledError", ["prepare", "plan", "cleanup"]),
        ({"plan": SystemExit(3)}, "3", ["prepare", "plan", "cleanup"]),
        ({"plan": None}, "plan of action plugin 'recording' returned None", ["prepare", "plan", "cleanup"]),
        (
            {"plan": CHANGES, "apply": None},
            "apply of action plugin 'recording' returned None",
            ["prepare", "plan", "apply", "cleanup"],
        ),
        (
            {"plan": CHANGES, "apply": ActionResult(), "cleanup": RuntimeError("x")},
            "action plugin recording failed without saying why",
            ["prepare", "plan", "apply", "cleanup"],
        ),
        (
            {"plan": CHANGES, "apply": ActionResult(error_message="no"), "cleanup": asyncio.CancelledError()},
            "no",
            ["prepare", "plan", "apply", "cleanup"],
        ),
    ],
)
async def test_failures_say_what_failed_and_clean_up(
    ctx: ReconcilerContext,
    speaker: Speaker,
    until: Any,
    action: type[Recording],
    answers: dict[str, Any],
    message: str,
    calls: list[str],
) -> None:
    action.answers |= answers
    result = await reconciled(ctx, speaker, until)
    assert (result["success"], result["message"], result["phase"]) == (False, message, "failed")
    assert statuses(speaker)[-1] == ("failed", message)
    assert action.calls == calls


async def test_a_spec_that_the_action_refuses(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]
) -> None:
    result = await reconciled(ctx, speaker, until, spec={"bad": 1})
    assert (result["message"], action.calls) == ("spec is not usable: it is bad", [])


async def test_what_was_only_ever_refused_can_be_deleted(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]
) -> None:
    speaker.answers["get_finalizers"] = {"status": 200, "finalizers": ["external"]}
    speaker.history[1] = [{"error_message": "spec is not usable: it is bad"}] * 2
    result = await reconciled(ctx, speaker, until, spec={"bad": 1}, status="deleting", deleted_at=SEEN)
    assert (result["success"], action.calls) == (True, [])
    assert speaker.ops(1) == ["status", "remove_finalizer", "get_finalizers", "result"]


@pytest.mark.parametrize(
    ("history", "more"),
    [
        ([{"error_message": "spec is not usable: it is bad"}, {"error_message": "lease expired"}], {}),
        ([], {"observed_generation": 1}),
        ([], {"outputs": {"run_id": 7}}),
    ],
)
async def test_what_may_have_been_made_is_not_let_go_for_a_spec_that_became_bad(
    ctx: ReconcilerContext,
    speaker: Speaker,
    until: Any,
    action: type[Recording],
    history: list[dict[str, Any]],
    more: dict[str, Any],
) -> None:
    speaker.history[1] = history
    result = await reconciled(ctx, speaker, until, spec={"bad": 1}, status="deleting", deleted_at=SEEN, **more)
    assert (result["success"], result["message"]) == (False, "spec is not usable: it is bad")
    assert "remove_finalizer" not in speaker.ops(1)


async def test_what_a_failure_leaves_is_added_to_the_outputs(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]
) -> None:
    action.answers |= {"plan": CHANGES, "apply": ActionResult(error_message="no", outputs={"run_id": 7})}
    await reconciled(ctx, speaker, until, outputs={"a": 1})
    assert [it["outputs"] for it in speaker.writes if it["op"] == "outputs"] == [{"a": 1, "run_id": 7}]


async def test_destroy_releases_the_resource(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]
) -> None:
    speaker.answers |= {
        "get_finalizers": {"status": 200, "finalizers": []},
        "hard_delete": {"status": 200, "deleted": True},
    }
    action.answers |= {"plan": CHANGES}
    result = await reconciled(ctx, speaker, until, status="deleting", deleted_at=SEEN)
    assert action.calls == ["prepare", "plan", "destroy", "cleanup"]
    assert speaker.ops(1) == ["status", "remove_finalizer", "get_finalizers", "hard_delete", "result"]
    assert (result["success"], result["trigger_reason"]) == (True, "deletion")


async def test_a_failed_destroy_keeps_the_finalizer(
    ctx: ReconcilerContext, speaker: Speaker, until: Any, action: type[Recording]
) -> None:
    action.answers |= {"destroy": ActionResult(error_message="in use")}
    result = await reconciled(ctx, speaker, until, status="deleting", deleted_at=SEEN)
    assert "remove_finalizer" not in speaker.ops(1)
    assert (result["success"], result["message"]) == (False, "in use")


async def test_an_action_that_is_not_installed(ctx: ReconcilerContext, speaker: Speaker, until: Any) -> None:
    result = await reconciled(ctx, speaker, until)
    assert result["message"] == "prepare: Unknown action plugin: recording. Available plugins: none"
