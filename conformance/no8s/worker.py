"""A worker over HTTP: what a plugin host does, one step at a time."""

from typing import Any

from api import Api, unique


class Lent:
    """One claimed item. Writes carry its fence and must be accepted unless a case says otherwise."""

    def __init__(self, worker: "Worker", item: dict[str, Any]) -> None:
        self.worker = worker
        self.item: str = item["item"]
        self.fence = item["lease"]["fence"]
        self.record: dict[str, Any] = item["object"]
        self.attempt = item["attempt"]
        self.reasons: list[str] = item["reasons"]

    @property
    def id(self) -> int:
        return int(self.record["id"])

    def raw(self, **op: Any) -> dict[str, Any]:
        return {"item": self.item, "fence": self.fence, **op}

    def write(self, expected: int = 200, /, **op: Any) -> dict[str, Any]:
        (answer,) = self.worker.writes(self.raw(**op))
        assert answer["status"] == expected, answer
        return answer

    def phase(self, status: str, message: str = "", observed: int | None = None) -> None:
        more = {} if observed is None else {"observed_generation": observed}
        self.write(op="status", status=status, message=message, **more)

    def result(self, success: bool | None = True, message: str = "", **more: Any) -> None:
        self.write(op="result", success=success, message=message, **more)

    def make_ready(self) -> None:
        """As the guide's plugin does it."""
        generation = self.record["generation"]
        self.phase("reconciling", "Syncing DNS record")
        self.write(
            op="condition",
            type="DnsRecordSynced",
            status="True",
            reason="RecordUpserted",
            message="A record for api.example.com synced",
            observed_generation=generation,
        )
        self.phase("ready", "DNS record api.example.com synced", generation)
        self.result(True, "Synced", trigger_reason="spec_change")

    def fail(self, message: str = "ProviderError") -> None:
        self.phase("reconciling")
        self.phase("failed", message)
        self.result(False, message)

    def delete(self) -> None:
        """As the guide's plugin does it."""
        self.write(op="remove_finalizer", finalizer=self.worker.name)
        if not self.write(op="get_finalizers")["finalizers"]:
            assert self.write(op="hard_delete")["deleted"] is True
        self.result(True, "Deleted")


class Worker:
    """A registered worker with one host."""

    def __init__(self, admin: Api, handles: list[dict[str, str]], **more: Any) -> None:
        self.admin = admin
        self.name = unique("worker").replace("-", "_")
        self.host_id = unique("host")
        self.body = {"name": self.name, "handles": handles, "host_id": self.host_id, "concurrency": 10, **more}
        admin.expect(201, "POST", "/workers", self.body)

    def claim(self, limit: int = 1, wait_seconds: float = 10, **more: Any) -> list[Lent]:
        body = {"limit": limit, "wait_seconds": wait_seconds, "host_id": self.host_id, **more}
        answer = self.admin.expect(200, "POST", f"/workers/{self.name}/claim", body)
        return [Lent(self, it) for it in answer["items"]]

    def one(self, **more: Any) -> Lent:
        """The next item, which must come at once."""
        items = self.claim(**more)
        assert len(items) == 1, "nothing was due"
        return items[0]

    def nothing(self) -> None:
        """Nothing is due, and nothing becomes due in a moment."""
        assert self.claim(wait_seconds=1) == []

    def writes(self, *writes: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.admin.expect(200, "POST", f"/workers/{self.name}/writes", {"writes": list(writes)})
        results: list[dict[str, Any]] = answer["results"]
        assert len(results) == len(writes)
        return results

    def results(self, *results: dict[str, Any]) -> list[dict[str, Any]]:
        answer = self.admin.expect(200, "POST", f"/workers/{self.name}/results", {"results": list(results)})
        answers: list[dict[str, Any]] = answer["results"]
        assert len(answers) == len(results)
        return answers

    def heartbeat(self, *lent: Lent) -> dict[str, Any]:
        items = [{"item": it.item, "fence": it.fence} for it in lent]
        body = {"host_id": self.host_id, "items": items}
        answer: dict[str, Any] = self.admin.expect(200, "POST", f"/workers/{self.name}/heartbeat", body)
        return answer

    def close(self) -> None:
        self.admin.ask("DELETE", f"/workers/{self.name}")
