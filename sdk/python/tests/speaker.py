"""A small server that speaks the worker protocol and can be made to misbehave.

It is for what a real server does not do on demand: vanish, lose an answer, take a lease away in the
middle. What writes mean is not here; `test_server.py` has the real server for that.
"""

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

NOW = "2026-01-02T03:04:05.678901"


def resource(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": f"record-{number}",
        "resource_type_name": "DnsRecord",
        "resource_type_version": "v1",
        "action_plugin": "",
        "spec": {"domain": "a.example.com"},
        "plugin_config": {},
        "metadata": {},
        "status": "pending",
        "status_message": None,
        "generation": 1,
        "observed_generation": 0,
        "conditions": [],
        "finalizers": ["dns_record"],
        "spec_hash": "00",
        "outputs": {},
        "created_at": NOW,
        "updated_at": NOW,
        "deleted_at": None,
        "last_reconcile_time": None,
        "next_reconcile_time": NOW,
        "retry_count": 0,
        **more,
    }


class Speaker:
    def __init__(self) -> None:
        self.due: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.registered: list[dict[str, Any]] = []
        self.claims: list[dict[str, Any]] = []
        self.history: dict[int, list[dict[str, Any]]] = {}
        self.batches: list[list[dict[str, Any]]] = []
        self.leases: dict[str, int] = {}
        self.fence = 0
        self.is_known = True
        self.serves: str | None = None
        self.conflict: str | None = None
        # What registrations of these names are answered with.
        self.refusals: dict[str, int] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.answers_to_lose = 0
        # What the next heartbeats are answered with, in place of an answer.
        self.garbage: list[str] = []
        self.claims_to_lose = 0
        self.claimed: dict[str, list[dict[str, Any]]] = {}
        self.marks: list[tuple[int, float]] = []
        # Paths of writes without a lease, as they came.
        self.without_lease: list[str] = []
        self.writes_may_end = asyncio.Event()
        self.writes_may_end.set()
        self.ended = asyncio.Event()
        app = web.Application()
        app.router.add_post("/api/v1/workers", self._register)
        app.router.add_post("/api/v1/workers/{name}/claim", self._claim)
        app.router.add_post("/api/v1/workers/{name}/heartbeat", self._heartbeat)
        app.router.add_post("/api/v1/workers/{name}/writes", self._writes)
        app.router.add_get("/api/v1/resources/{id}/history", self._history)
        app.router.add_post("/api/v1/resources/{id}/reconcile", self._mark)
        app.router.add_put("/api/v1/resources/{rest:.*}", self._put)
        self.server = TestServer(app)

    @property
    def url(self) -> str:
        return str(self.server.make_url("")).rstrip("/")

    @property
    def writes(self) -> list[dict[str, Any]]:
        return [write for batch in self.batches for write in batch]

    def ops(self, number: int) -> list[str]:
        return [it["op"] for it in self.writes if it["item"] == str(number)]

    def results(self, number: int) -> list[dict[str, Any]]:
        return [it for it in self.writes if it["item"] == str(number) and it["op"] == "result"]

    @property
    def released(self) -> list[str]:
        return [it["item"] for it in self.writes if it["op"] == "release"]

    def offer(self, *resources: dict[str, Any]) -> None:
        for it in resources:
            self.due.put_nowait(it)

    def take_away(self, number: int) -> None:
        self.leases.pop(str(number), None)

    async def _register(self, request: web.Request) -> web.Response:
        if self.conflict:
            return web.json_response({"detail": self.conflict}, status=409)
        body = await request.json()
        if body["name"] in self.refusals:
            return web.json_response({"detail": f"not {body['name']}"}, status=self.refusals[body["name"]])
        self.registered.append(body)
        self.is_known = True
        return web.json_response({}, status=201)

    async def _history(self, request: web.Request) -> web.Response:
        return web.json_response(self.history.get(int(request.match_info["id"]), []))

    async def _mark(self, request: web.Request) -> web.Response:
        self.marks.append((int(request.match_info["id"]), (await request.json())["delay_seconds"]))
        return web.json_response({}, status=202)

    async def _put(self, request: web.Request) -> web.Response:
        self.without_lease.append(request.raw_path)
        return web.json_response({})

    def _unknown(self) -> web.Response:
        return web.json_response({"detail": "Worker not found"}, status=404)

    async def _claim(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.claims.append(body)
        if not self.is_known:
            return self._unknown()
        found: list[dict[str, Any]] = []
        if self.claimed.get(body["claim_id"]):
            return web.json_response({"items": self.claimed[body["claim_id"]]})
        if self.serves not in (None, request.match_info["name"]):
            await asyncio.sleep(body["wait_seconds"])
            return web.json_response({"items": []})
        try:
            async with asyncio.timeout(body["wait_seconds"] or 0.01):
                found.append(await self.due.get())
        except TimeoutError:
            pass
        while found and len(found) < body["limit"] and not self.due.empty():
            found.append(self.due.get_nowait())
        items = self.claimed.setdefault(body["claim_id"], [self._lease(it) for it in found])
        if items and self.claims_to_lose:
            self.claims_to_lose -= 1
            assert request.transport
            request.transport.close()
        return web.json_response({"items": items})

    def _lease(self, it: dict[str, Any]) -> dict[str, Any]:
        self.fence += 1
        item = str(it["id"])
        self.leases[item] = self.fence
        lease = {"token": "t", "fence": self.fence, "expires_at": NOW}
        return {"item": item, "object": it, "lease": lease, "attempt": 1, "reasons": []}

    async def _heartbeat(self, request: web.Request) -> web.Response:
        if self.garbage:
            return web.Response(text=self.garbage.pop(0), content_type="text/html")
        if not self.is_known:
            return self._unknown()
        items = (await request.json())["items"]
        lost = [it for it in items if self.leases.get(it["item"]) != it["fence"]]
        return web.json_response(
            {
                "items": [{"item": it["item"], "expires_at": NOW} for it in items if it not in lost],
                "lost": [{"item": it["item"], "reason": "taken away"} for it in lost],
            }
        )

    async def _writes(self, request: web.Request) -> web.Response:
        if not self.is_known:
            return self._unknown()
        batch = (await request.json())["writes"]
        self.batches.append(batch)
        await self.writes_may_end.wait()
        results = [self._write(it) for it in batch]
        if self.answers_to_lose:
            self.answers_to_lose -= 1
            assert request.transport
            request.transport.close()
        return web.json_response({"results": results})

    def _write(self, write: dict[str, Any]) -> dict[str, Any]:
        if self.leases.get(write["item"]) != write["fence"]:
            return {"status": 409, "detail": "stale fence: somebody else has it"}
        if write["op"] in ("result", "release"):
            self.leases.pop(write["item"])
            self.ended.set()
        return self.answers.get(write["op"], {"status": 200})
