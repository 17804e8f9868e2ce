"""Actions in a host of their own, against the real server: as `action_plugin`, and asked for by a plugin."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from concert import Concert
from conftest import StartHost
from speakers_outside import GitHubSpeaker
from test_host import install, search_path
from test_http_api import Records
from test_server import SPEC, create, make_type, wait_for

WORKFLOW = {"owner": "octo", "repo": "infra", "workflow": "deploy.yml", "inputs": {"region": "eu"}}


@pytest_asyncio.fixture
async def records() -> AsyncIterator[Records]:
    it = Records()
    await it.server.start_server()
    yield it
    await it.server.close()


def record(records: Records, **more: Any) -> dict[str, Any]:
    """How `http_api` keeps a record."""
    url = records.url + "/v1/records/{domain}"
    return {"url": url, "body": {"name": "{domain}"}, "outputs": {"record": "id"}, **more}


def files(folder: Path) -> tuple[Path, Path]:
    """Commands that make, look for and remove a file: what is made, and the file that names the commands."""
    made = folder / "made"
    write = f"import json,os; open({str(made)!r},'w').write(open(os.environ['NO8S_SPEC_FILE']).read());"
    outputs = "json.dump({'file': 'made'}, open(os.environ['NO8S_OUTPUTS_FILE'],'w')); print('made it')"
    plan = f"import os,sys; print('look'); sys.exit(0 if os.path.exists({str(made)!r}) else 2)"
    commands = {
        "plan": [sys.executable, "-c", plan],
        "apply": [sys.executable, "-c", write + outputs],
        "destroy": [sys.executable, "-c", f"import os; os.remove({str(made)!r}); print('gone')"],
    }
    file = folder / "commands.json"
    file.write_text(json.dumps({"commands": {"files": commands}}))
    return made, file


async def has(concert: Concert, path: str, name: str) -> None:
    def look(_: int, body: Any) -> bool:
        return name in {it["name"] for it in body}

    await asyncio.to_thread(concert.wait_for, path, look)


async def has_action(concert: Concert, name: str) -> None:
    await has(concert, "/api/v1/plugins/actions", name)


async def deleted(concert: Concert, number: int) -> None:
    path = f"/api/v1/resources/{number}"
    await asyncio.to_thread(concert.ask, "DELETE", path)
    await is_gone(concert, number)


async def is_gone(concert: Concert, number: int) -> None:
    await asyncio.to_thread(concert.wait_for, f"/api/v1/resources/{number}", lambda status, _: status == 404)


async def ended(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 30) == 0


async def test_exec_as_action_plugin(concert: Concert, tmp_path: Path, start_host: StartHost) -> None:
    make_type(concert)
    made, commands = files(tmp_path)
    process = await start_host(CONCERT_URL=concert.url, CONCERT_EXEC_COMMANDS=str(commands))
    await has_action(concert, "exec")
    number = create(concert, action_plugin="exec", plugin_config={"command": "files"})
    resource = await wait_for(concert, number, lambda it: it["status"] == "ready")
    assert resource["outputs"] == {"file": "made"}
    assert resource["finalizers"] == ["exec"]
    assert json.loads(made.read_text()) == SPEC
    (entry,) = await asyncio.to_thread(concert.history, f"/api/v1/resources/{number}", 1)
    assert (entry["plan_output"], entry["apply_output"]) == ("look", "made it")
    bad = create(concert, "bad", action_plugin="exec", plugin_config={"command": "rm"})
    failed = await wait_for(concert, bad, lambda it: it["status"] == "failed")
    assert "'rm' is not configured" in failed["status_message"]
    await deleted(concert, number)
    assert not made.exists()
    await ended(process)


async def test_http_api_as_action_plugin(concert: Concert, records: Records, start_host: StartHost) -> None:
    make_type(concert)
    process = await start_host(CONCERT_URL=concert.url, HTTP_API_ALLOW=records.url + "/v1/")
    await has_action(concert, "http_api")
    number = await asyncio.to_thread(create, concert, action_plugin="http_api", plugin_config=record(records))
    resource = await wait_for(concert, number, lambda it: it["status"] == "ready")
    assert (resource["outputs"], resource["finalizers"]) == ({"record": 7}, ["http_api"])
    assert records.records == {"a.example.com": {"name": "a.example.com", "id": 7}}
    elsewhere = record(records, url=records.url + "/inside")
    bad = await asyncio.to_thread(create, concert, "bad", action_plugin="http_api", plugin_config=elsewhere)
    failed = await wait_for(concert, bad, lambda it: it["status"] == "failed")
    assert "/inside" in failed["status_message"]
    await deleted(concert, number)
    assert records.records == {}
    await ended(process)


async def test_github_actions_as_action_plugin(concert: Concert, start_host: StartHost) -> None:
    make_type(concert)
    async with GitHubSpeaker() as github:
        variables = {
            "CONCERT_URL": concert.url,
            "GITHUB_API_URL": github.url,
            "GITHUB_TOKEN": "gh-token",
            "GITHUB_ACTIONS_POLL_INTERVAL": "0.05",
        }
        process = await start_host(**variables)
        await has_action(concert, "github_actions")
        number = await asyncio.to_thread(create, concert, action_plugin="github_actions", spec=WORKFLOW)
        resource = await wait_for(concert, number, lambda it: it["status"] == "ready")
        assert (resource["outputs"]["run_id"], resource["outputs"]["run_conclusion"]) == (101, "success")
        assert github.dispatched == [{"ref": "main", "inputs": {"region": "eu"}, "return_run_details": True}]

        github.polls_to_end = sys.maxsize
        slow = await asyncio.to_thread(create, concert, "slow", action_plugin="github_actions", spec=WORKFLOW)
        running = await wait_for(concert, slow, lambda it: "run_id" in it["outputs"])
        assert (running["status"], running["outputs"]["run_id"]) == ("reconciling", 102)
        # What the host leaves behind is cancelled by the one that is there when the resource is to go.
        await ended(process)
        assert github.cancelled == []
        process = await start_host(**variables)
        await asyncio.to_thread(concert.ask, "DELETE", f"/api/v1/resources/{slow}")
        await is_gone(concert, slow)
        assert github.cancelled == [102]
        await deleted(concert, number)
        assert github.cancelled == [102], "the first run had ended"
        await ended(process)


@pytest.mark.parametrize("action", ["http_api", "exec"])
async def test_a_plugin_asks_for_an_action(
    concert: Concert, records: Records, tmp_path: Path, start_host: StartHost, action: str
) -> None:
    make_type(concert)
    install(tmp_path, delegating="Delegating")
    made, commands = files(tmp_path)
    process = await start_host(
        CONCERT_URL=concert.url,
        CONCERT_EXEC_COMMANDS=str(commands),
        HTTP_API_ALLOW=records.url + "/v1/",
        PYTHONPATH=search_path(tmp_path),
    )
    await has(concert, "/api/v1/workers", "delegating")
    config = {"through": action, "command": "files", **record(records)}
    number = await asyncio.to_thread(create, concert, plugin_config=config)
    resource = await wait_for(concert, number, lambda it: it["status"] == "ready")
    assert resource["finalizers"] == ["delegating"]
    assert resource["outputs"] == ({"record": 7} if action == "http_api" else {"file": "made"})
    assert (bool(records.records), made.exists()) == (action == "http_api", action == "exec")
    await deleted(concert, number)
    assert (records.records, made.exists()) == ({}, False)
    await ended(process)
