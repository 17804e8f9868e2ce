"""Small servers that speak as much of GitHub's and Vault's API as the plugins use."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer


class _Speaker:
    server: TestServer

    async def __aenter__(self) -> Any:
        await self.server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.close()

    @property
    def url(self) -> str:
        return str(self.server.make_url("")).rstrip("/")


class GitHubSpeaker(_Speaker):
    """One repository `octo/infra` with one workflow. `knows_details` is what github.com does today."""

    def __init__(self, knows_details: bool = True) -> None:
        self.knows_details = knows_details
        self.refuses_unknown = False
        self.runs: dict[int, dict[str, Any]] = {}
        self.dispatched: list[dict[str, Any]] = []
        self.cancelled: list[int] = []
        self.polls_to_end = 1
        self.lists_to_lag = 0
        self.conclusion = "success"
        self.failures = 0
        self.next_id = 100
        self.requests: list[web.Request] = []
        self.dispatching = 0
        self.most_dispatching = 0
        self.stranger_comes: str | None = None
        # Of each workflow, sent in pieces as they are ready.
        self.description = ""
        app = web.Application(middlewares=[self._gate])
        base = "/repos/octo/infra/actions"
        app.router.add_get("/user", self._user)
        app.router.add_get(base + "/workflows/deploy.yml", self._workflow)
        app.router.add_post(base + "/workflows/deploy.yml/dispatches", self._dispatch)
        app.router.add_get(base + "/workflows/deploy.yml/runs", self._list)
        app.router.add_get(base + "/runs/{id}", self._run)
        app.router.add_get(base + "/runs/{id}/jobs", self._jobs)
        app.router.add_get(base + "/runs/{id}/artifacts", self._artifacts)
        app.router.add_post(base + "/runs/{id}/cancel", self._cancel)
        self.server = TestServer(app)

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append(request)
        if request.headers.get("Authorization") != "Bearer gh-token":
            return web.json_response({"message": "Bad credentials"}, status=401)
        if self.failures and request.method == "GET":
            self.failures -= 1
            return web.json_response({"message": "oops"}, status=502, headers={"Retry-After": "0"})
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _user(self, _: web.Request) -> web.Response:
        return web.json_response({"login": "concert-bot"})

    async def _workflow(self, request: web.Request) -> web.StreamResponse:
        found = {"id": 1, "name": "Deploy", "state": "active", "path": ".github/workflows/deploy.yml"}
        body = json.dumps({**found, "description": self.description}).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        for start in range(0, len(body), 10_000):
            await response.write(body[start : start + 10_000])
        return response

    def add_run(self, login: str = "concert-bot", branch: str = "main", title: str = "Deploy") -> int:
        self.next_id += 1
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.runs[self.next_id] = {
            "id": self.next_id,
            "name": "Deploy",
            "display_title": title,
            "event": "workflow_dispatch",
            "head_branch": branch,
            "triggering_actor": {"login": login},
            "status": "queued",
            "conclusion": None,
            "created_at": now,
            "html_url": f"https://github.example/runs/{self.next_id}",
            "polls": 0,
        }
        return self.next_id

    async def _dispatch(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.refuses_unknown and "return_run_details" in body:
            return web.json_response({"message": '"return_run_details" is not a permitted key.'}, status=422)
        self.dispatching += 1
        self.most_dispatching = max(self.most_dispatching, self.dispatching)
        await asyncio.sleep(0)
        self.dispatching -= 1
        self.dispatched.append(body)
        if self.stranger_comes:
            self.add_run(login=self.stranger_comes)
        title = " ".join(["Deploy", *(str(it) for it in body["inputs"].values())])
        run_id = self.add_run(title=title, branch=body["ref"])
        if self.knows_details and body.get("return_run_details"):
            return web.json_response({"workflow_run_id": run_id, "run_url": "", "html_url": ""})
        return web.Response(status=204)

    async def _list(self, request: web.Request) -> web.Response:
        assert request.query["event"] == "workflow_dispatch"
        assert request.query["created"].startswith(">=")
        runs = list(self.runs.values())[::-1]
        if self.dispatched and self.lists_to_lag:
            self.lists_to_lag -= 1
            runs = []
        return web.json_response({"total_count": len(runs), "workflow_runs": runs})

    async def _run(self, request: web.Request) -> web.Response:
        run = self.runs.get(int(request.match_info["id"]))
        if run is None:
            return web.json_response({"message": "Not Found"}, status=404)
        run["polls"] += 1
        if run["polls"] >= self.polls_to_end and run["status"] != "completed":
            run |= {"status": "completed", "conclusion": self.conclusion}
        return web.json_response(run)

    async def _jobs(self, request: web.Request) -> web.Response:
        page = int(request.query["page"])
        jobs = [{"name": f"job-{it}", "status": "completed", "conclusion": "success", "extra": 1} for it in range(120)]
        return web.json_response({"total_count": 120, "jobs": jobs[(page - 1) * 100 : page * 100]})

    async def _artifacts(self, _: web.Request) -> web.Response:
        found = {"id": 9, "name": "outputs", "size_in_bytes": 5, "archive_download_url": self.url + "/zip"}
        return web.json_response({"total_count": 1, "artifacts": [found]})

    async def _cancel(self, request: web.Request) -> web.Response:
        run_id = int(request.match_info["id"])
        if run_id not in self.runs or self.runs[run_id]["status"] == "completed":
            return web.json_response({"message": "Cannot cancel a workflow run that is completed."}, status=409)
        self.cancelled.append(run_id)
        self.runs[run_id] |= {"status": "completed", "conclusion": "cancelled"}
        return web.json_response({}, status=202)


class VaultSpeaker(_Speaker):
    """Key-value engine version 2 at `secret` and `team/kv`."""

    def __init__(self) -> None:
        self.secrets = {"db/password": {"value": "s3cret"}, "odd": {"other": "x"}}
        self.namespaces: list[str | None] = []
        app = web.Application()
        app.router.add_get("/v1/{path:.*}", self._read)
        self.server = TestServer(app)

    async def _read(self, request: web.Request) -> web.Response:
        self.namespaces.append(request.headers.get("X-Vault-Namespace"))
        if request.headers.get("X-Vault-Token") != "vault-token":
            return web.json_response({"errors": ["permission denied"]}, status=403)
        path = request.match_info["path"]
        if path == "auth/token/lookup-self":
            return web.json_response({"data": {"ttl": 3600}})
        for mount in ("secret", "team/kv"):
            key = path.removeprefix(f"{mount}/data/")
            if key != path and key in self.secrets:
                return web.json_response({"data": {"data": self.secrets[key], "metadata": {"version": 1}}})
        if path == "secret/data/broken":
            return web.Response(status=500, text=json.dumps({"errors": ["sealed"]}))
        return web.json_response({"errors": []}, status=404)
