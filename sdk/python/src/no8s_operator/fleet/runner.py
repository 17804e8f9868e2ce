"""The life of a component reconciler: register, claim, reconcile, report, until it is told to stop."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import uuid
from typing import Any
from urllib.parse import quote

import aiohttp

from no8s_operator.errors import ServerError
from no8s_operator.fleet.answers import Busy, Failed
from no8s_operator.fleet.component import Component, Entry
from no8s_operator.fleet.inventory import Inventory, MovedError
from no8s_operator.fleet.outbox import Outbox
from no8s_operator.http import ANSWER_SECONDS, Server, unless

logger = logging.getLogger(__name__)

URL = "http://127.0.0.1:8000"
LEASE_SECONDS = 60
# Less than what idle connections survive on most ways.
WAIT_SECONDS = 30
# How long runs under way may go on after a stop; what is left is given back.
GRACE_SECONDS = 10.0
REGISTER_PAUSE = 1.0


class Lease:
    """One entry that was lent, and the task that works on it."""

    def __init__(self, item: dict[str, Any], expires: float) -> None:
        self.item = str(item["item"])
        self.fence = item["lease"]["fence"]
        self.expires = expires
        self.task: asyncio.Task[None] | None = None

    def lose(self, reason: str) -> None:
        logger.warning("%s: %s, so the work is dropped", self.item, reason)
        if self.task:
            self.task.cancel()


class Runner:
    """Runs one component on one host. Several hosts with the same component share its work."""

    def __init__(
        self,
        server: Server,
        component: Component,
        stop: asyncio.Event,
        *,
        host_id: str | None = None,
        lease_seconds: int = LEASE_SECONDS,
        resync_seconds: int | None = None,
    ) -> None:
        self.server = server
        self.component = component
        self.stop = stop
        self.host_id = host_id or f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}"
        self.lease_seconds = lease_seconds
        self.resync_seconds = resync_seconds
        self.grace_seconds = GRACE_SECONDS
        self._path = f"/api/v1/workers/{quote(component.name, safe='')}"
        self._leases: dict[str, Lease] = {}
        self._outbox = Outbox(server, f"{self._path}/results")
        self._freed = asyncio.Event()

    async def run(self) -> None:
        """Works until `stop` is set. Raises `ServerError` when the registration is refused."""
        await self._register()
        renewal = asyncio.create_task(self._renew(), name=f"renew {self.component.name}")
        try:
            while not self.stop.is_set():
                await self._claim()
            await self._drain()
        finally:
            renewal.cancel()
            await self._outbox.close()
            await self.component.close()

    async def _register(self) -> None:
        body = {**self.component.registration(), "host_id": self.host_id, "lease_seconds": self.lease_seconds}
        if self.resync_seconds is not None:
            body["resync_seconds"] = self.resync_seconds
        await unless(self.stop, self.server.ask_until("POST", "/api/v1/workers", body))
        logger.info("Registered component reconciler: %s", self.component.name)

    # Claims.

    async def _claim(self) -> None:
        free = self.component.concurrency - len(self._leases)
        if free <= 0:
            self._freed.clear()
            await unless(self.stop, self._freed.wait())
            return
        # Asked again under the same name, the server hands out again what was lost on the way.
        body = {"host_id": self.host_id, "limit": free, "wait_seconds": WAIT_SECONDS, "claim_id": uuid.uuid4().hex}
        seconds = WAIT_SECONDS + ANSWER_SECONDS
        try:
            answer = await unless(
                self.stop, self.server.ask_until("POST", f"{self._path}/claim", body, seconds=seconds)
            )
        except ServerError as error:
            if error.status != 404:
                raise
            await asyncio.sleep(REGISTER_PAUSE)
            await self._register()
            return
        for item in (answer or {}).get("items", []):
            self._begin(item)

    def _begin(self, item: dict[str, Any]) -> None:
        # How long the answer was on its way is not known: a third is left for that, and the first heartbeat,
        # which is measured from when it was sent, makes it exact.
        lease = Lease(item, asyncio.get_running_loop().time() + self.lease_seconds * 2 / 3)
        older = self._leases.pop(lease.item, None)
        if older:
            older.lose("it was lent again")
        self._leases[lease.item] = lease
        lease.task = asyncio.create_task(self._work(lease, item), name=lease.item)

    async def _work(self, lease: Lease, item: dict[str, Any]) -> None:
        try:
            result = await self._reconcile(item)
            await self._outbox.send({"item": lease.item, "fence": lease.fence, **result})
        finally:
            if self._leases.get(lease.item) is lease:
                del self._leases[lease.item]
            self._freed.set()

    async def _reconcile(self, item: dict[str, Any]) -> dict[str, Any]:
        access, entry = item["inventory"], Entry.of(item)
        async with self.server.at(access["url"], access["token"]) as server:
            inventory = Inventory(server, access.get("revision", 0))
            try:
                answer = await self.component.reconcile(entry, inventory)
                logger.info("%s: %s %s (%s)", entry.id, answer.outcome, answer.message, ",".join(entry.reasons))
                body = answer.to_json()
            except Failed as failed:
                logger.warning("%s: failed: %s", entry.id, failed)
                body = failed.to_json()
            except Busy as busy:
                logger.info("%s: %s", entry.id, busy)
                body = busy.to_json()
            except ServerError as error:
                logger.log(logging.INFO if error.is_busy else logging.WARNING, "%s: %s", entry.id, error)
                body = (Busy(str(error), error.retry_after) if error.is_busy else Failed(str(error))).to_json()
            except (MovedError, OSError, aiohttp.ClientError, TimeoutError) as error:
                logger.warning("%s: failed: %s", entry.id, error)
                body = Failed(str(error) or type(error).__name__).to_json()
            except Exception as error:
                # Its text may be anything, and what it is about may be secret.
                logger.error("%s: the reconciler raised %s", entry.id, type(error).__name__)
                body = Failed(f"the reconciler raised {type(error).__name__}").to_json()
            return {**body, "observed_revision": inventory.observed_revision}

    # Leases.

    async def _renew(self) -> None:
        while True:
            # Two beats may be lost before a lease is.
            await asyncio.sleep(self.lease_seconds / 3)
            try:
                await self._beat()
            except ServerError as error:
                logger.warning("Leases could not be renewed: %s", error)
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                self.server.is_silent(str(error) or type(error).__name__)
            now = asyncio.get_running_loop().time()
            for lease in [it for it in self._leases.values() if it.expires < now]:
                lease.lose("the lease ran out while the server could not be reached")

    async def _beat(self) -> None:
        held, sent = list(self._leases.values()), asyncio.get_running_loop().time()
        items = [{"item": it.item, "fence": it.fence} for it in held]
        body = {"host_id": self.host_id, "items": items}
        answer = await self.server.ask("POST", f"{self._path}/heartbeat", body, seconds=self.lease_seconds / 3)
        lost = {it["item"]: it.get("reason") or "the lease ended" for it in answer.get("lost", [])}
        for lease in held:
            if lease.item not in lost:
                lease.expires = sent + self.lease_seconds
            elif self._leases.get(lease.item) is lease:
                lease.lose(lost[lease.item])

    async def _drain(self) -> None:
        """What runs may finish; what is left is given back at no cost to it."""
        tasks = {it.task for it in self._leases.values() if it.task}
        if tasks:
            await asyncio.wait(tasks, timeout=self.grace_seconds)
        left = list(self._leases.values())
        for lease in left:
            if lease.task:
                lease.task.cancel()
        writes = [{"item": it.item, "fence": it.fence, "op": "release"} for it in left]
        if writes:
            with contextlib.suppress(Exception):
                await self.server.ask("POST", f"{self._path}/writes", {"writes": writes}, seconds=2)


def serve(component: Component) -> int:
    """Runs a component until SIGTERM or SIGINT. Where the server is comes from the environment:

    `CONCERT_URL`, `CONCERT_TOKEN` or `CONCERT_TOKEN_FILE` (read again when the token is refused), `CONCERT_CA`,
    `CONCERT_LEASE_SECONDS`, `CONCERT_RESYNC_SECONDS`, `LOG_LEVEL`.
    """
    level = os.environ.get("LOG_LEVEL", "INFO").upper()
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return asyncio.run(_serve(component))


async def _serve(component: Component) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    resync = os.environ.get("CONCERT_RESYNC_SECONDS")
    url, token, ca = os.environ.get("CONCERT_URL") or URL, os.environ.get("CONCERT_TOKEN"), os.environ.get("CONCERT_CA")
    async with Server(url, token, ca, token_file=os.environ.get("CONCERT_TOKEN_FILE")) as server:
        runner = Runner(
            server,
            component,
            stop,
            lease_seconds=int(os.environ.get("CONCERT_LEASE_SECONDS") or LEASE_SECONDS),
            resync_seconds=int(resync) if resync else None,
        )
        try:
            await runner.run()
        except ServerError as error:
            logger.error("The reconciler cannot work: %s", error)
            return 1
    return 0
