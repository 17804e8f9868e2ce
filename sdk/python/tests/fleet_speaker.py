"""The speaker with an inventory: for answers that get lost, leases that are taken away, sections that move."""

import json
from typing import Any

from aiohttp import web
from speaker import NOW, Speaker


def entry(name: str, **more: Any) -> dict[str, Any]:
    return {"entry": name, "kind": "runtime", "tenant": None, "labels": {}, "deleting": False, **more}


class FleetSpeaker(Speaker):
    def __init__(self) -> None:
        super().__init__()
        self.sections: dict[str, dict[str, Any]] = {}
        self.revision = 7
        self.tokens: list[str] = []
        self.reported: list[dict[str, Any]] = []
        self.result_answers_to_lose = 0
        self.result_bytes_max: int | None = None
        self.busy_with: dict[str, int] = {}
        # Outcomes that are refused, with which status.
        self.refuses_outcomes: dict[str, int] = {}
        self.accepts: str | None = None
        self.refuses_reads: tuple[int, dict[str, str]] | None = None
        router = self.server.app.router
        router.add_post("/api/v1/workers/{name}/results", self._results)
        router.add_get("/inventory/v1/entries/{id}", self._entry)
        router.add_get("/inventory/v1/entries/{id}/sections/{section}", self._get)
        router.add_put("/inventory/v1/entries/{id}/sections/{section}", self._put)
        router.add_delete("/inventory/v1/entries/{id}/sections/{section}", self._delete)

    def _lease(self, it: dict[str, Any]) -> dict[str, Any]:
        self.fence += 1
        item = f"{it['entry']}/test"
        self.leases[item] = self.fence
        return {
            "item": item,
            "object": it,
            "lease": {"token": "t", "fence": self.fence, "expires_at": NOW},
            "attempt": 2,
            "reasons": ["section:network"],
            "inventory": {
                "url": f"{self.url}/inventory/v1/entries/{it['entry']}",
                "revision": 5,
                "token": f"token-of-{it['entry']}",
            },
        }

    async def _results(self, request: web.Request) -> web.Response:
        raw = await request.read()
        if self.result_bytes_max is not None and len(raw) > self.result_bytes_max:
            return web.json_response({"detail": "too much"}, status=413)
        batch = json.loads(raw)["results"]
        self.reported += batch
        answers: list[dict[str, Any]] = []
        for it in batch:
            if it["item"] in self.busy_with:
                answers.append({"status": self.busy_with.pop(it["item"]), "detail": "later"})
                continue
            if it["outcome"] in self.refuses_outcomes:
                answers.append({"status": self.refuses_outcomes[it["outcome"]], "detail": "no grant to read it"})
                continue
            is_held = self.leases.get(it["item"]) == it["fence"]
            if is_held:
                del self.leases[it["item"]]
            answers.append({"status": 200} if is_held else {"status": 409, "detail": "stale fence"})
        if self.result_answers_to_lose:
            self.result_answers_to_lose -= 1
            assert request.transport
            request.transport.close()
        return web.json_response({"results": answers})

    async def _entry(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers["Authorization"])
        if self.accepts not in (None, request.headers["Authorization"]):
            return web.json_response({"detail": "Token has expired"}, status=401)
        if self.refuses_reads:
            status, headers = self.refuses_reads
            return web.json_response({"detail": "later"}, status=status, headers=headers)
        return web.json_response({"id": "a", "kind": "runtime", "revision": self.revision, "sections": self.sections})

    async def _get(self, request: web.Request) -> web.Response:
        found = self.sections.get(request.match_info["section"])
        if found is None:
            return web.json_response({"detail": "Section not found"}, status=404)
        return web.json_response(found, headers={"ETag": f'"{found["version"]}"'})

    async def _put(self, request: web.Request) -> web.Response:
        name, data = request.match_info["section"], (await request.json())["data"]
        old = self.sections.get(name, {"version": 0, "data": None})
        wanted = request.headers.get("If-Match")
        if wanted is not None and wanted != f'"{old["version"]}"':
            return web.json_response({"detail": "the section has moved"}, status=412)
        is_same = old["data"] == data
        if not is_same:
            self.revision += 1
            self.sections[name] = {"version": old["version"] + 1, "data": data}
        version = self.sections[name]["version"]
        return web.json_response({"version": version, "revision": self.revision, "unchanged": is_same})

    async def _delete(self, request: web.Request) -> web.Response:
        if self.sections.pop(request.match_info["section"], None) is None:
            return web.json_response({"detail": "Section not found"}, status=404)
        return web.Response(status=204)
