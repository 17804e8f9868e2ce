"""Starting a workflow and knowing which run it became.

GitHub says the run's id when it is asked for `return_run_details`. A server that does not know that
(an older GitHub Enterprise) only says that it will run something. Then the run is the one that shows
our correlation id in its title, if the workflow has an input for one; and otherwise the only run that
is new since the dispatch, of this event, branch and user. Two candidates are an error: following the
wrong run would report somebody else's result as ours.
"""

import asyncio
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from no8s_operator.plugins.actions.github.api import GitHub, GitHubError

FIND_SECONDS = 60.0
FIND_PAUSE = 1.0
# After the first candidate appears: time for a second one to show, since lists lag behind.
SETTLE_SECONDS = 3.0
# Clocks differ, ours and theirs. Runs known before the dispatch are excluded by id anyway.
CLOCK_SLACK = timedelta(minutes=2)


class Runs:
    """Runs of one workflow on one branch or tag."""

    def __init__(self, github: GitHub, actions: str, workflow: str, ref: str) -> None:
        self._github = github
        self._path = f"{actions}/workflows/{workflow}"
        self._ref = ref

    async def dispatch(self, inputs: dict[str, Any], correlation_input: str | None) -> int:
        """Starts a run and returns its id. The caller keeps other dispatches of its own away meanwhile."""
        correlation = None
        if correlation_input:
            correlation = str(uuid.uuid4())
            inputs = {**inputs, correlation_input: correlation}
        since = datetime.now(UTC) - CLOCK_SLACK
        known = {run["id"] for run in await self._listed(since)}
        run_id = await self._post({"ref": self._ref, "inputs": inputs})
        return run_id if run_id is not None else await self._find(known, since, correlation)

    async def _post(self, body: dict[str, Any]) -> int | None:
        path = f"{self._path}/dispatches"
        try:
            _, answer = await self._github.post(path, {**body, "return_run_details": True})
        except GitHubError as error:
            # A server that checks for unknown members refuses before it starts anything.
            if error.status != 422 or "return_run_details" not in str(error):
                raise
            _, answer = await self._github.post(path, body)
        run_id = answer.get("workflow_run_id")
        return run_id if isinstance(run_id, int) else None

    async def _find(self, known: set[int], since: datetime, correlation: str | None) -> int:
        loop = asyncio.get_running_loop()
        end = loop.time() + FIND_SECONDS
        actor = await self._login()
        while loop.time() < end:
            found = candidates(await self._listed(since), known, self._ref, actor, correlation)
            if found and correlation is None:
                await asyncio.sleep(SETTLE_SECONDS)
                found = candidates(await self._listed(since), known, self._ref, actor, correlation)
            if len(found) > 1:
                ids = ", ".join(str(it) for it in found)
                raise GitHubError(
                    409, f"runs {ids} started at the same time; give the workflow an input for `correlation_input`"
                )
            if found:
                return found[0]
            await asyncio.sleep(FIND_PAUSE)
        raise GitHubError(504, f"the dispatched run did not appear within {FIND_SECONDS:g} s")

    async def _listed(self, since: datetime) -> list[dict[str, Any]]:
        created = since.strftime(">=%Y-%m-%dT%H:%M:%SZ")
        body = await self._github.get(f"{self._path}/runs", event="workflow_dispatch", created=created, per_page=100)
        return body.get("workflow_runs") or []

    async def _login(self) -> str | None:
        """Who we are. A token of an app may not ask; then every user's runs are looked at."""
        try:
            return (await self._github.get("/user")).get("login")
        except GitHubError:
            return None


def candidates(
    runs: Iterable[dict[str, Any]], known: set[int], ref: str, actor: str | None, correlation: str | None
) -> list[int]:
    """Runs that can be ours, by id."""
    branch = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    found = []
    for run in runs:
        if run["id"] in known or run.get("event") != "workflow_dispatch":
            continue
        if correlation is not None:
            if correlation in f"{run.get('display_title') or ''} {run.get('name') or ''}":
                found.append(run["id"])
            continue
        login = (run.get("triggering_actor") or run.get("actor") or {}).get("login")
        if run.get("head_branch") == branch and (actor is None or login == actor):
            found.append(run["id"])
    return sorted(found)
