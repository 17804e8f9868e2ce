"""Several hosts and a thousand resources: shared, taken over, never done twice."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from concert import Concert
from conftest import StartHost
from test_host import install, search_path

RESOURCES = 1000
LEASE_SECONDS = 2


@pytest.fixture
def counted(concert_binary: str, tmp_path: Path) -> Iterator[Concert]:
    """A server that tries again after a second, so that a take-over can be waited for."""
    with Concert(concert_binary, tmp_path / "data", BACKOFF_BASE_DELAY="1") as server:
        kind = {"name": "Counted", "version": "v1", "schema": {}}
        assert server.ask("POST", "/api/v1/resource-types", kind)[0] == 201
        yield server


class Hosts:
    def __init__(self, start_host: StartHost, concert: Concert, folder: Path, seconds: float) -> None:
        self._start_host = start_host
        self.file = folder / "counted"
        self.file.touch()
        install(folder, counting="Counting")
        self._environment = {
            "CONCERT_URL": concert.url,
            "CONCERT_LEASE_SECONDS": str(LEASE_SECONDS),
            "COUNTING_FILE": str(self.file),
            "COUNTING_SECONDS": str(seconds),
            "PYTHONPATH": search_path(folder),
            "ENABLED_ACTION_PLUGINS": "none",
        }
        self.processes: list[asyncio.subprocess.Process] = []

    async def start(self, count: int) -> None:
        for _ in range(count):
            self.processes.append(await self._start_host(**self._environment))

    def lines(self) -> list[tuple[int, int, int]]:
        """(process, resource, generation) of every reconciliation that was begun."""
        return [tuple(map(int, it.split())) for it in self.file.read_text().splitlines()]  # type: ignore[misc]

    async def stop(self) -> None:
        for it in self.processes:
            if it.returncode is None:
                it.send_signal(signal.SIGCONT)
                it.terminate()
        await asyncio.wait_for(asyncio.gather(*(it.wait() for it in self.processes)), 30)


async def create_all(concert: Concert) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=20)) as session:

        async def create(number: int) -> None:
            body = {"name": f"r-{number}", "resource_type_name": "Counted", "resource_type_version": "v1"}
            async with session.post(f"{concert.url}/api/v1/resources", json={**body, "spec": {"a": 1}}) as answer:
                assert answer.status == 201, await answer.text()

        await asyncio.gather(*(create(number) for number in range(RESOURCES)))


async def all_ready(concert: Concert, seconds: float) -> list[dict[str, Any]]:
    path = "/api/v1/resources?resource_type_name=Counted&limit=10000"

    def is_done(_: int, body: Any) -> bool:
        return len(body) == RESOURCES and all(it["status"] == "ready" for it in body)

    found: list[dict[str, Any]] = await asyncio.to_thread(concert.wait_for, path, is_done, seconds)
    return found


async def test_each_is_reconciled_once_per_generation(
    counted: Concert, tmp_path: Path, start_host: StartHost, until: Any
) -> None:
    hosts = Hosts(start_host, counted, tmp_path, 0)
    await hosts.start(2)
    await until(lambda: counted.ask("GET", "/api/v1/workers/counting")[0] == 200, 30)
    await create_all(counted)
    await all_ready(counted, 120)
    counts = Counter((number, generation) for _, number, generation in hosts.lines())
    assert len(counts) == RESOURCES
    assert set(counts.values()) == {1}
    assert len({process for process, _, _ in hosts.lines()}) == 2, "both hosts had a part"
    await hosts.stop()


async def test_the_dead_and_the_frozen_are_replaced(
    counted: Concert, tmp_path: Path, start_host: StartHost, until: Any
) -> None:
    hosts = Hosts(start_host, counted, tmp_path, 0.2)
    await hosts.start(3)
    await until(lambda: counted.ask("GET", "/api/v1/workers/counting")[0] == 200, 30)
    creating = asyncio.create_task(create_all(counted))
    await until(lambda: len({process for process, _, _ in hosts.lines()}) == 3 and len(hosts.lines()) > 200, 60)
    killed, frozen, _ = hosts.processes
    killed.kill()
    frozen.send_signal(signal.SIGSTOP)
    await creating
    taken_over = []
    for number in [it["id"] for it in await all_ready(counted, 120)]:
        history = await asyncio.to_thread(counted.history, f"/api/v1/resources/{number}", 1)
        if "lease expired" in {it["error_message"] for it in history}:
            taken_over.append(number)
    assert taken_over, "the leases of both ended"
    resources = await all_ready(counted, 30)
    before = {it["id"]: it for it in resources}
    frozen.send_signal(signal.SIGCONT)
    # It wakes up in the middle of its runs: what it still writes of them is refused, unless it gives them up
    # before. When it claims again, that is behind it.
    begun = len(hosts.lines())
    counted.ask("POST", f"/api/v1/resources/{resources[0]['id']}/reconcile")
    await until(lambda: len(hosts.lines()) > begun, 30)
    await asyncio.to_thread(counted.history, f"/api/v1/resources/{resources[0]['id']}", 2)
    await hosts.stop()
    after = {it["id"]: it for it in await all_ready(counted, 30)}
    for number, resource in after.items():
        if number != resources[0]["id"]:
            assert resource == before[number], "a late write changed something"
    for number in after:
        history = counted.ask("GET", f"/api/v1/resources/{number}/history?limit=100")[1]
        successes = sum(it["success"] for it in history)
        assert successes == (2 if number == resources[0]["id"] else 1), history
