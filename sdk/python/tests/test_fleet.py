"""Component reconcilers: what they are lent, what they answer, and what happens when the way there is bad."""

import asyncio
import re
import runpy
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestServer
from fleet_speaker import FleetSpeaker, entry

from no8s_operator.errors import ServerError
from no8s_operator.fleet import (
    Answer,
    Busy,
    ClusterEvent,
    Component,
    Entry,
    Failed,
    Inventory,
    MovedError,
    Runner,
    WaitsFor,
    Watch,
    not_ready,
    ready,
    requeue,
)
from no8s_operator.http import Server, seconds_of

EXAMPLE = Path(__file__).parents[3] / "examples/fleet"

Until = Callable[..., Awaitable[Any]]
Reconcile = Callable[[Entry, Inventory], Awaitable[Answer]]


class Scripted(Component):
    """Does what the test says."""

    name = "test"
    kinds = ("runtime",)
    watches = (Watch("network", "/vnet_name"), Watch("settings"))
    cluster_events = (ClusterEvent("apps", "v1", "Deployment"),)
    reads = ("network",)
    writes = ("cluster",)

    def __init__(self, script: Reconcile) -> None:
        self._script = script
        self.is_closed = False

    async def reconcile(self, entry: Entry, inventory: Inventory) -> Answer:
        return await self._script(entry, inventory)

    async def close(self) -> None:
        self.is_closed = True


@pytest_asyncio.fixture
async def speaker() -> AsyncIterator[FleetSpeaker]:
    it = FleetSpeaker()
    await it.server.start_server()
    yield it
    await it.server.close()


class Running:
    """A runner with the server it works for."""

    def __init__(self, speaker: FleetSpeaker, script: Reconcile, lease_seconds: float = 60) -> None:
        self.stop = asyncio.Event()
        self.server = Server(speaker.url, "host-token")
        self.component = Scripted(script)
        self.runner = Runner(self.server, self.component, self.stop, lease_seconds=60)
        self.runner.lease_seconds = lease_seconds  # type: ignore[assignment]
        self.task = asyncio.create_task(self.runner.run())

    async def __aenter__(self) -> "Running":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await self.task
        await self.server.close()


async def test_a_registration_says_what_the_class_says(speaker: FleetSpeaker, until: Until) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return ready()

    async with Running(speaker, script):
        await until(lambda: speaker.registered)
    body = speaker.registered[0]
    assert body["name"] == "test"
    assert body["handles"] == [{"kind": "runtime"}]
    assert body["watches"] == [{"section": "network", "path": "/vnet_name"}, {"section": "settings"}]
    assert body["cluster_events"] == [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    assert body["grants"] == {"read": ["network"], "write": ["cluster"]}
    assert "concurrency" not in body, "what one host does at once is no bound for all of them"


async def test_a_missing_section_is_waited_for_and_the_revision_is_that_of_the_read(
    speaker: FleetSpeaker, until: Until
) -> None:
    async def script(it: Entry, inventory: Inventory) -> Answer:
        assert (it.id, it.kind, it.attempt, it.reasons) == ("a", "runtime", 2, ("section:network",))
        view = await inventory.read()
        assert "network" not in view.sections
        await inventory.write("cluster", {"x": 1})
        await inventory.read()
        return not_ready("no network", WaitsFor("network", "/vnet_name"))

    async with Running(speaker, script):
        speaker.offer(entry("a"))
        await until(lambda: speaker.reported)
    result = speaker.reported[0]
    assert result["outcome"] == "not_ready"
    assert result["waits_for"] == [{"section": "network", "path": "/vnet_name"}]
    assert (result["item"], result["fence"], result["observed_revision"]) == ("a/test", 1, 7)
    assert speaker.tokens[0] == "Bearer token-of-a"


async def test_every_end_has_its_own_word(speaker: FleetSpeaker, until: Until) -> None:
    async def script(it: Entry, _: Inventory) -> Answer:
        if it.id == "growing":
            return requeue(1.5, "growing").with_condition("Created", "False", "Growing")
        if it.id == "never":
            raise Failed("never", terminal=True)
        if it.id == "away":
            raise Failed("no answer", unreachable=True)
        if it.id == "odd":
            raise KeyError("canary-4711")
        return ready("fine").again_after(30)

    async with Running(speaker, script):
        speaker.offer(*(entry(it) for it in ("growing", "never", "away", "odd", "fine")))
        await until(lambda: len(speaker.reported) == 5)
    by_item = {it["item"].split("/")[0]: it for it in speaker.reported}
    assert (by_item["growing"]["outcome"], by_item["growing"]["retry_after"]) == ("requeue", 1.5)
    assert by_item["growing"]["conditions"][0]["type"] == "Created"
    assert (by_item["never"]["outcome"], by_item["never"]["error_class"]) == ("failed", "terminal")
    assert by_item["away"]["error_class"] == "unreachable"
    assert (by_item["odd"]["outcome"], by_item["odd"]["error_class"]) == ("failed", "transient")
    assert "canary" not in str(by_item["odd"])
    assert (by_item["fine"]["outcome"], by_item["fine"]["retry_after"]) == ("ready", 30)


async def test_r17_whoever_has_too_much_to_do_is_asked_again_and_nobody_has_failed(
    speaker: FleetSpeaker, until: Until
) -> None:
    async def script(it: Entry, inventory: Inventory) -> Answer:
        if it.id == "cloud":
            raise Busy("the cloud has too much to do")
        await inventory.read()
        return ready()

    speaker.refuses_reads = (429, {"Retry-After": "7"})
    async with Running(speaker, script):
        speaker.offer(entry("cloud"), entry("inventory"))
        await until(lambda: len(speaker.reported) == 2)
    by_item = {it["item"].split("/")[0]: it for it in speaker.reported}
    assert (by_item["inventory"]["outcome"], by_item["inventory"]["retry_after"]) == ("requeue", 7)
    assert (by_item["cloud"]["outcome"], by_item["cloud"]["retry_after"]) == ("requeue", 10)
    assert not any("error_class" in it for it in speaker.reported)


async def test_r17_the_network_of_the_example_takes_a_busy_cloud_for_no_failure() -> None:
    async def busy(_: web.Request) -> web.Response:
        return web.json_response({"message": "slow down"}, status=429, headers={"Retry-After": "3"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", busy)
    async with TestServer(app) as server:
        network = runpy.run_path(str(EXAMPLE / "network/network.py"))
        cloud = network["Cloud"](str(server.make_url("/")))
        with pytest.raises(Busy) as raised:
            await cloud.get("vnet-a")
        await cloud.close()
    assert raised.value.to_json()["retry_after"] == 3


def test_r17_a_time_that_nobody_understands_is_as_none() -> None:
    said = ["3", "0", "99999999", "-1", "x", "Wed, 21 Oct 2015 07:28:00 GMT", None]
    assert [seconds_of(it) for it in said] == [3, 0, 3600, None, None, None, None]


async def test_a_result_whose_answer_was_lost_is_sent_again(speaker: FleetSpeaker, until: Until) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return ready()

    speaker.result_answers_to_lose = 1
    async with Running(speaker, script):
        speaker.offer(entry("a"))
        await until(lambda: len(speaker.reported) == 2)
    assert speaker.reported[0] == speaker.reported[1]


async def test_a_result_that_the_server_cannot_take_right_now_is_sent_again(
    speaker: FleetSpeaker, until: Until
) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return ready()

    speaker.busy_with = {"a/test": 503}
    async with Running(speaker, script):
        speaker.offer(entry("a"))
        await until(lambda: len(speaker.reported) == 2)
        await until(lambda: not speaker.leases)
    assert speaker.reported[0] == speaker.reported[1]


async def test_a_result_that_is_refused_becomes_a_failure_that_says_so(speaker: FleetSpeaker, until: Until) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return not_ready("no network", WaitsFor("secret"))

    speaker.refuses_outcomes = {"not_ready": 403}
    async with Running(speaker, script):
        speaker.offer(entry("a"))
        await until(lambda: len(speaker.reported) == 2)
        await until(lambda: not speaker.leases)
    first, second = speaker.reported
    assert second == {
        "item": first["item"],
        "fence": first["fence"],
        "outcome": "failed",
        "message": "the result was refused: no grant to read it",
    }


async def test_a_failure_that_is_refused_as_well_is_the_end_of_it(speaker: FleetSpeaker, until: Until) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return ready()

    speaker.refuses_outcomes = {"ready": 422, "failed": 422}
    async with Running(speaker, script):
        speaker.offer(entry("a"))
        await until(lambda: len(speaker.reported) == 2)
        await asyncio.sleep(0.5)
    assert [it["outcome"] for it in speaker.reported] == ["ready", "failed"]


async def test_results_that_are_too_much_for_one_request_go_out_in_several(speaker: FleetSpeaker, until: Until) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return ready("ü" * 50_000)

    speaker.result_bytes_max = 400_000
    async with Running(speaker, script):
        speaker.offer(*(entry(f"e{it}") for it in range(10)))
        await until(lambda: len(speaker.reported) == 10)
        await until(lambda: not speaker.leases)
    assert all(len(it["message"].encode()) <= 32 * 1024 for it in speaker.reported)


def test_a_section_of_another_entry_is_waited_for_at_the_version_that_was_read() -> None:
    assert WaitsFor("a").to_json() == {"section": "a"}
    assert WaitsFor("a", entry="hub").to_json() == {"section": "a", "entry": "hub", "version": 0}
    assert WaitsFor("a", entry="hub", version=3).to_json() == {"section": "a", "entry": "hub", "version": 3}
    assert WaitsFor(condition="A", entry="hub").to_json() == {"condition": "A", "entry": "hub"}


def test_what_is_waited_for_is_a_section_or_a_condition() -> None:
    assert WaitsFor(condition="Ready", entry="b").to_json() == {"entry": "b", "condition": "Ready"}
    for wrong in ({}, {"section": "a", "condition": "b"}, {"condition": "b", "path": "/a"}):
        with pytest.raises(ValueError, match="a section"):
            WaitsFor(**wrong)


async def test_a_token_in_a_file_is_read_again_when_it_is_refused(speaker: FleetSpeaker, tmp_path: Path) -> None:
    speaker.accepts = "Bearer second"
    file = tmp_path / "token"
    file.write_text("first\n")
    async with Server(speaker.url, token_file=str(file)) as server:
        with pytest.raises(ServerError):
            await server.ask("GET", "/inventory/v1/entries/a")
        file.write_text("second\n")
        assert (await server.ask("GET", "/inventory/v1/entries/a"))["id"] == "a"


async def test_a_lost_lease_ends_the_run(speaker: FleetSpeaker, until: Until) -> None:
    ended: list[str] = []

    async def script(it: Entry, _: Inventory) -> Answer:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(it.id)
        return ready()

    async with Running(speaker, script, lease_seconds=0.3):
        speaker.offer(entry("a"))
        await until(lambda: "a/test" in speaker.leases)
        del speaker.leases["a/test"]
        await until(lambda: ended)
    assert speaker.reported == []


async def test_a_stop_lets_runs_finish_and_gives_back_the_rest(speaker: FleetSpeaker, until: Until) -> None:
    may_end, begun = asyncio.Event(), []

    async def script(it: Entry, _: Inventory) -> Answer:
        begun.append(it.id)
        await (may_end if it.id == "quick" else asyncio.Event()).wait()
        return ready()

    async with Running(speaker, script) as running:
        running.runner.grace_seconds = 0.5
        speaker.offer(entry("quick"), entry("slow"))
        await until(lambda: len(begun) == 2)
        running.stop.set()
        may_end.set()
    assert [it["item"] for it in speaker.reported] == ["quick/test"]
    assert speaker.released == ["slow/test"]
    assert running.component.is_closed


async def test_a_refused_registration_is_an_error(speaker: FleetSpeaker) -> None:
    async def script(_: Entry, __: Inventory) -> Answer:
        return ready()

    speaker.conflict = "section cluster is written by shoot"
    async with Server(speaker.url) as server:
        with pytest.raises(ServerError, match="written by shoot"):
            await Runner(server, Scripted(script), asyncio.Event()).run()


async def test_sections_are_read_written_at_a_version_and_removed(speaker: FleetSpeaker) -> None:
    async with Server(speaker.url) as server, server.at(f"{speaker.url}/inventory/v1/entries/a", "t") as own:
        inventory = Inventory(own, 1)
        assert await inventory.section("cluster") is None
        assert (await inventory.write("cluster", {"a": 1})).version == 1
        assert (await inventory.write("cluster", {"a": 1})).is_unchanged
        found = await inventory.section("cluster")
        assert found is not None
        assert (found.data, found.version) == ({"a": 1}, 1)
        assert "'a'" not in repr(found)
        await inventory.write("cluster", {"a": 2}, version=1)
        with pytest.raises(MovedError):
            await inventory.write("cluster", {"a": 3}, version=1)
        await inventory.remove("cluster")
        await inventory.remove("cluster")


async def test_the_reconciler_of_the_guide_does_what_the_guide_says(
    speaker: FleetSpeaker, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (EXAMPLE.parents[1] / "docs/guides/fleet.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    served: list[Component] = []
    monkeypatch.setattr("no8s_operator.fleet.serve", served.append)
    exec(compile(block, "fleet.md", "exec"), {"__name__": "guide"})
    (dns,) = served
    async with Running(speaker, dns.reconcile):
        speaker.offer(entry("a"))
        await until(lambda: len(speaker.reported) == 1)
        speaker.sections["cluster"] = {"version": 1, "data": {"api_server": "https://here"}}
        speaker.offer(entry("a"))
        await until(lambda: len(speaker.reported) == 2)
    assert speaker.reported[0]["waits_for"] == [{"section": "cluster", "path": "/api_server"}]
    assert speaker.reported[1]["outcome"] == "ready"
    assert speaker.sections["dns"]["data"] == {"name": "a.clusters.example.com"}
