"""Fixtures: a speaker of the worker protocol, and the real server if there is one."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from concert import Concert
from speaker import Speaker
from venvs import Venv, with_package

from no8s_operator.http import Server
from no8s_operator.plugins.reconcilers.base import ReconcilerContext
from no8s_operator.plugins.registry import PluginRegistry
from no8s_operator.worker import Worker


@pytest.fixture(scope="session")
def concert_binary() -> str:
    """The server's binary. Where it is required, its absence is a failure."""
    found = os.environ.get("CONCERT_BIN")
    if not found:
        if os.environ.get("CONCERT_REQUIRE") == "1":
            pytest.fail("CONCERT_REQUIRE=1, but CONCERT_BIN names no binary")
        pytest.skip("CONCERT_BIN names no binary")
    return found


@pytest.fixture
def concert(concert_binary: str, tmp_path: Path) -> Iterator[Concert]:
    """A fresh server without authentication and without a plugin host."""
    with Concert(concert_binary, tmp_path / "data") as server:
        yield server


@pytest.fixture(scope="session")
def venv(tmp_path_factory: pytest.TempPathFactory, concert_binary: str) -> Venv:
    """An environment with our package, for tests that install plugins and have the server start the host."""
    return with_package(tmp_path_factory.mktemp("installed"))


@pytest_asyncio.fixture
async def speaker() -> AsyncIterator[Speaker]:
    it = Speaker()
    await it.server.start_server()
    yield it
    it.writes_may_end.set()
    await it.server.close()


@pytest.fixture
def shutdown() -> asyncio.Event:
    return asyncio.Event()


@pytest_asyncio.fixture
async def worker(speaker: Speaker, shutdown: asyncio.Event) -> AsyncIterator[Worker]:
    """A registered worker whose leases are renewed every 0.1 s."""
    async with Server(speaker.url) as server:
        it = Worker(server, "dns_record", [{"resource_type": "DnsRecord"}], "host-1", shutdown, lease_seconds=60)
        it.renew_seconds = 0.1
        await it.open()
        yield it
        await it.close()


@pytest.fixture
def ctx(worker: Worker, shutdown: asyncio.Event) -> ReconcilerContext:
    return ReconcilerContext(worker, PluginRegistry({}), shutdown)


StartHost = Callable[..., Awaitable[asyncio.subprocess.Process]]


@pytest_asyncio.fixture
async def start_host() -> AsyncIterator[StartHost]:
    """Starts plugin hosts with these variables. None of them outlives its test, however that ends."""
    started: list[asyncio.subprocess.Process] = []

    async def start(pipes: dict[str, int] | None = None, **environment: str) -> asyncio.subprocess.Process:
        arguments = [sys.executable, "-m", "no8s_operator.host"]
        process = await asyncio.create_subprocess_exec(*arguments, env={**os.environ, **environment}, **(pipes or {}))
        started.append(process)
        return process

    yield start
    for it in started:
        if it.returncode is None:
            it.kill()
        await it.wait()


@pytest.fixture
def until() -> Callable[..., Awaitable[Any]]:
    """Waits for something to become true, with a deadline; looks often, since nobody announces it."""

    async def wait(condition: Callable[[], Any], seconds: float = 10) -> Any:
        async with asyncio.timeout(seconds):
            while not (found := condition()):
                await asyncio.sleep(0.005)
            return found

    return wait
