"""`github_actions` against a server that speaks GitHub's API."""

import asyncio
from typing import Any

import pytest
from speakers_outside import GitHubSpeaker

from no8s_operator.plugins.actions.github import api, dispatch
from no8s_operator.plugins.actions.github.dispatch import candidates
from no8s_operator.plugins.actions.github_actions import GitHubActionsPlugin, target
from no8s_operator.plugins.base import ActionContext, ActionResult

SPEC = {"owner": "octo", "repo": "infra", "workflow": "deploy.yml", "inputs": {"region": "eu"}}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "SETTLE_SECONDS", 0.01)
    monkeypatch.setattr(dispatch, "FIND_PAUSE", 0.01)


async def plugin(speaker: GitHubSpeaker, **config: Any) -> GitHubActionsPlugin:
    it = GitHubActionsPlugin()
    await it.initialize({"api_url": speaker.url, "token": "gh-token", "poll_interval": 0.01, "timeout": 10, **config})
    return it


def context(spec: dict[str, Any] | None = None, **more: Any) -> ActionContext:
    return ActionContext(1, "net", 3, {**SPEC, **(spec or {})}, "00", **more)


async def applied(it: GitHubActionsPlugin, ctx: ActionContext) -> ActionResult:
    workspace = await it.prepare(ctx)
    try:
        return await it.apply(ctx, workspace)
    finally:
        await it.cleanup(workspace)


async def test_plan_reads_the_workflow_and_always_has_changes() -> None:
    async with GitHubSpeaker() as speaker:
        it = await plugin(speaker)
        plan = await it.plan(context(), await it.prepare(context()))
        assert plan.success
        assert plan.has_changes
        assert speaker.requests[0].headers["Accept"] == "application/vnd.github+json"
        assert speaker.requests[0].headers["X-GitHub-Api-Version"] == "2022-11-28"
        missing = context({"workflow": "other.yml"})
        assert "cannot read workflow other.yml" in str(
            (await it.plan(missing, await it.prepare(missing))).error_message
        )


async def test_apply_runs_the_workflow_and_shows_jobs_and_artifacts() -> None:
    async with GitHubSpeaker() as speaker:
        speaker.polls_to_end = 3
        result = await applied(await plugin(speaker), context())
        assert result.success
        assert speaker.dispatched == [{"ref": "main", "inputs": {"region": "eu"}, "return_run_details": True}]
        assert result.outputs["run_id"] == 101
        assert len(result.outputs["jobs"]) == 120
        assert set(result.outputs["jobs"][0]) == {"name", "status", "conclusion", "started_at", "completed_at"}
        assert result.outputs["artifacts"] == [
            {"name": "outputs", "size_in_bytes": 5, "archive_download_url": speaker.url + "/zip"}
        ]


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "timed_out", None])
async def test_any_other_conclusion_is_a_failure_that_keeps_the_run(conclusion: str | None) -> None:
    async with GitHubSpeaker() as speaker:
        speaker.conclusion = conclusion  # type: ignore[assignment]
        result = await applied(await plugin(speaker), context())
        assert not result.success
        assert result.error_message == f"run 101 ended with {conclusion}"
        assert result.outputs["run_id"] == 101


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_server_that_does_not_name_the_run(refuses: bool) -> None:
    async with GitHubSpeaker(knows_details=False) as speaker:
        speaker.refuses_unknown = refuses
        speaker.lists_to_lag = 3
        speaker.add_run()
        speaker.stranger_comes = "somebody-else"
        result = await applied(await plugin(speaker), context())
        assert result.outputs["run_id"] == 103, "not the one before, not the stranger's"


async def test_two_possible_runs_are_an_error_and_a_correlation_id_helps() -> None:
    async with GitHubSpeaker(knows_details=False) as speaker:
        speaker.stranger_comes = "concert-bot"
        it = await plugin(speaker)
        result = await applied(it, context())
        assert "runs 101, 102 started at the same time" in str(result.error_message)
        result = await applied(it, context({"correlation_input": "id"}))
        assert result.outputs["run_id"] == 104
        assert set(speaker.dispatched[-1]["inputs"]) == {"region", "id"}


async def test_dispatches_at_once_never_take_each_others_run() -> None:
    async with GitHubSpeaker(knows_details=False) as speaker:
        it = await plugin(speaker)
        results = await asyncio.gather(*(applied(it, context()) for _ in range(5)))
        assert sorted(it.outputs["run_id"] for it in results) == [101, 102, 103, 104, 105]
        assert speaker.most_dispatching == 1


async def test_an_answer_in_pieces_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with GitHubSpeaker() as speaker:
        speaker.description = "x" * 300_000
        it = await plugin(speaker)
        plan = await it.plan(context(), await it.prepare(context()))
        assert plan.success, plan.error_message
        monkeypatch.setattr(api, "BYTES_MAX", 200_000)
        plan = await it.plan(context(), await it.prepare(context()))
        assert "more than 200000 bytes" in str(plan.error_message)
        assert len([it for it in speaker.requests if it.path.endswith("deploy.yml")]) == 2, "asked again in vain"


async def test_passing_faults_are_waited_out() -> None:
    async with GitHubSpeaker() as speaker:
        speaker.failures = 2
        assert (await applied(await plugin(speaker), context())).success


async def test_a_run_that_takes_too_long_is_cancelled() -> None:
    async with GitHubSpeaker() as speaker:
        speaker.polls_to_end = 10_000
        result = await applied(await plugin(speaker, timeout=0.1), context())
        assert result.error_message == "run 101 did not end within 0.1 s"
        assert speaker.cancelled == [101]


async def test_destroy_cancels_the_run_that_the_outputs_name() -> None:
    async with GitHubSpeaker() as speaker:
        run_id = speaker.add_run()
        it = await plugin(speaker)
        ctx = context(outputs={"run_id": run_id})
        for _ in range(2):
            assert (await it.destroy(ctx, await it.prepare(ctx))).success
        assert speaker.cancelled == [run_id], "one that has ended is not cancelled again, and that is no failure"
        nothing = context()
        assert (await it.destroy(nothing, await it.prepare(nothing))).apply_output == "No run to cancel"


async def test_the_run_is_kept_at_once_and_followed_by_the_next_host(until: Any) -> None:
    async with GitHubSpeaker() as speaker:
        speaker.polls_to_end = 10_000
        kept: dict[str, Any] = {}

        async def save(outputs: dict[str, Any]) -> None:
            kept.update(outputs)

        first = asyncio.create_task(applied(await plugin(speaker), context(save_outputs=save)))
        await until(lambda: kept and speaker.runs[101]["polls"])
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert kept == {"run_id": 101, "run_generation": 3}
        assert speaker.cancelled == []
        speaker.polls_to_end = 1
        second = await applied(await plugin(speaker), context(outputs=kept, save_outputs=save))
        assert second.success
        assert second.outputs["run_id"] == 101
        third = await applied(await plugin(speaker), context(outputs=second.outputs, save_outputs=save))
        assert third.outputs["run_id"] == 102, "one that has ended is done; a new attempt is a new run"


async def test_a_run_that_nobody_kept_is_cancelled_with_its_caller(until: Any) -> None:
    async with GitHubSpeaker() as speaker:
        speaker.polls_to_end = 10_000
        task = asyncio.create_task(applied(await plugin(speaker), context()))
        await until(lambda: speaker.runs and speaker.runs[101]["polls"])
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert speaker.cancelled == [101]


async def test_a_wrong_token_says_so() -> None:
    async with GitHubSpeaker() as speaker:
        it = await plugin(speaker, token="wrong")
        plan = await it.plan(context(), await it.prepare(context()))
        assert "GitHub answered 401: Bad credentials" in str(plan.error_message)


@pytest.mark.parametrize(
    "change",
    [
        {"owner": "octo/../x"},
        {"owner": "-octo"},
        {"owner": ""},
        {"repo": ".."},
        {"repo": "a/b"},
        {"repo": "a?b"},
        {"workflow": "../../x.yml"},
        {"workflow": "x.sh"},
        {"workflow": "a%2fb.yml"},
        {"ref": "a..b"},
        {"ref": "a b"},
        {"inputs": ["x"]},
    ],
)
async def test_names_cannot_leave_their_place_in_the_address(change: dict[str, Any]) -> None:
    is_valid, reason = await GitHubActionsPlugin().validate_spec({**SPEC, **change})
    assert not is_valid
    assert next(iter(change)) in str(reason)


async def test_a_part_of_the_target_may_be_in_the_plugin_config() -> None:
    plugin = GitHubActionsPlugin()
    spec = {"inputs": {"size": "2"}}
    ctx = ActionContext(1, "a", 1, spec, "", plugin_config={key: it for key, it in SPEC.items() if key != "inputs"})
    assert await plugin.validate_resource(ctx) == (True, None)
    assert (await plugin.prepare(ctx))["target"].inputs == {"size": "2"}
    is_valid, reason = await plugin.validate_resource(ActionContext(1, "a", 1, spec, ""))
    assert (is_valid, reason) == (False, "spec.owner is required by github_actions")


def test_a_number_is_a_workflow_and_main_the_default() -> None:
    it = target({"owner": "o", "workflow": 42}, {"repo": "r", "api_url": "http://evil"})
    assert (it.workflow, it.repo, it.ref) == ("42", "r", "main")


def test_candidates_are_new_runs_of_our_event_branch_and_user() -> None:
    def run(number: int, **more: Any) -> dict[str, Any]:
        mine = {"id": number, "event": "workflow_dispatch", "head_branch": "main", "actor": {"login": "me"}}
        return {**mine, **more}

    runs = [run(1), run(2), run(3, event="push"), run(4, head_branch="dev"), run(5, actor={"login": "you"})]
    assert candidates(runs, {1}, "refs/heads/main", "me", None) == [2]
    assert candidates(runs, {1}, "main", None, None) == [2, 5]
    assert candidates([run(6), run(7, display_title="x abc y")], set(), "main", "me", "abc") == [7]
