"""A2.5 and A7: plugins, cluster, health, and the stream of events."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Any

import pytest

from api import DNS_SPEC, ZULU, Api, unique
from conftest import Kind, Somebody
from worker import Worker


def test_action_plugins_are_listed(admin: Api) -> None:
    name = unique("action").replace("-", "_")
    worker = Worker(admin, [{"action": name}])
    found = admin.expect(200, "GET", "/plugins/actions")
    assert name in {it["name"] for it in found}
    for it in found:
        assert set(it) >= {"name", "version"}
    worker.close()
    assert name not in {it["name"] for it in admin.expect(200, "GET", "/plugins/actions")}


def test_input_plugins_are_listed(admin: Api) -> None:
    assert isinstance(admin.expect(200, "GET", "/plugins/inputs"), list)


@pytest.mark.differs("there is no such route")
def test_reconcilers_are_listed(admin: Api, kind: Kind) -> None:
    found = {it["name"]: it for it in admin.expect(200, "GET", "/plugins/reconcilers")}
    assert found[kind.worker.name]["resource_types"] == [kind.name]


def test_an_action_plugin_owns_the_resources_that_name_it(admin: Api, kind: Kind) -> None:
    action = unique("action").replace("-", "_")
    worker = Worker(admin, [{"action": action}])
    created = kind.create(action_plugin=action)
    assert (created["action_plugin"], created["finalizers"]) == (action, [action])
    kind.worker.nothing()
    lent = worker.one()
    assert lent.record["action_plugin"] == action
    lent.make_ready()
    found = admin.expect(200, "GET", f"/resources?action_plugin={action}")
    assert [it["id"] for it in found] == [created["id"]]
    worker.close()


def test_cluster_health_is_open(nobody: Api) -> None:
    assert nobody.expect(200, "GET", "/cluster/health") == {"status": "ok"}


@pytest.mark.differs("answers 404")
def test_health(nobody: Api) -> None:
    nobody.expect(200, "GET", "/health")


def test_cluster_nodes(admin: Api) -> None:
    found = admin.expect(200, "GET", "/cluster/nodes")
    assert set(found) >= {"this_instance_id", "this_instance_is_leader", "leader_lock", "nodes"}
    assert set(found["leader_lock"]) >= {"holder_id", "acquired_at", "expires_at", "is_valid"}
    own = [it for it in found["nodes"] if it["node_id"] == found["this_instance_id"]]
    fields = {"node_id", "hostname", "pid", "status", "role", "age", "first_seen", "last_heartbeat"}
    assert set(own[0]) >= fields
    assert (own[0]["status"], own[0]["role"]) == ("Ready", "leader")


class Stream:
    """Events as they arrive: (id, type, data)."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self._events: Queue[tuple[str, str, dict[str, Any]]] = Queue()

    def read(self, lines: Iterator[str]) -> None:
        fields: dict[str, str] = {}
        try:
            for line in lines:
                if line:
                    key, _, value = line.partition(":")
                    fields[key] = value.removeprefix(" ")
                    continue
                if "data" in fields:
                    data = json.loads(fields["data"])
                    self._events.put((fields.get("id", ""), fields["event"], data))
                fields = {}
        except Exception:  # the stream is closed under the reader, by the end of the case
            return

    def next(self, *types: str, seconds: float = 10) -> tuple[str, str, dict[str, Any]]:
        """The next event of one of these types."""
        while True:
            found = self._events.get(timeout=seconds)
            if found[1] in types:
                return found

    def is_quiet(self, seconds: float = 0.5) -> bool:
        try:
            self._events.get(timeout=seconds)
        except Empty:
            return True
        return False


@contextmanager
def listening(api: Api, path: str, **headers: str) -> Iterator[Stream]:
    it = Stream()
    more = {"Authorization": f"Bearer {api.bearer}", "Accept": "text/event-stream", **headers}
    with api.client.stream("GET", "/api/v1" + path, headers=more, timeout=30) as answer:
        assert answer.status_code == 200, answer.read()
        it.headers = dict(answer.headers)
        threading.Thread(target=it.read, args=(answer.iter_lines(),), daemon=True).start()
        yield it


def test_events_of_a_life(admin: Api, kind: Kind) -> None:
    with listening(admin, f"/events?resource_type={kind.name}") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-cache"
        assert stream.headers["x-accel-buffering"] == "no"
        created = kind.create()
        _, name, event = stream.next("CREATED")
        assert event["event_type"] == name
        assert (event["resource_id"], event["resource_name"]) == (created["id"], created["name"])
        assert (event["resource_type_name"], event["resource_type_version"]) == (kind.name, "v1")
        assert event["resource_data"]["spec"] == DNS_SPEC
        assert ZULU.fullmatch(event["timestamp"])
        kind.worker.one().make_ready()
        assert stream.next("RECONCILED")[2]["resource_id"] == created["id"]
        admin.expect(200, "PUT", f"/resources/{created['id']}", {"spec": {**DNS_SPEC, "value": "203.0.113.51"}})
        assert stream.next("MODIFIED")[2]["resource_id"] == created["id"]
        kind.delete(created)
        kind.worker.one().delete()
        assert stream.next("DELETED")[2]["resource_id"] == created["id"]


def test_events_of_one_resource(admin: Api, kind: Kind) -> None:
    wanted, other = kind.create(), kind.create()
    path = f"/resources/{other['id']}"
    with listening(admin, f"/resources/{wanted['id']}/events") as stream:
        admin.expect(200, "PUT", path, {"spec": {**DNS_SPEC, "value": "203.0.113.51"}})
        admin.expect(200, "PUT", f"/resources/{wanted['id']}", {"spec": {**DNS_SPEC, "value": "203.0.113.52"}})
        assert stream.next("MODIFIED")[2]["resource_id"] == wanted["id"]
        assert stream.is_quiet()


@pytest.mark.differs("has no ids and no memory")
def test_events_go_on_after_a_cut(admin: Api, kind: Kind) -> None:
    path = f"/events?resource_type={kind.name}"
    with listening(admin, path) as stream:
        kind.create()
        position, _, _ = stream.next("CREATED")
    assert position
    missed = kind.create()
    with listening(admin, path, **{"Last-Event-ID": position}) as stream:
        assert stream.next("CREATED")[2]["resource_id"] == missed["id"]


@pytest.mark.differs("filters by name only, and shows plugin_config")
def test_events_are_for_those_who_may_read(
    admin: Api, make_kind: Callable[..., Kind], user: Callable[..., Somebody]
) -> None:
    mine, theirs = make_kind(), make_kind()
    with (
        listening(user(["READ"], mine.name, "v1").api, "/events") as stream,
        listening(user(["READ"], mine.name, "v9").api, "/events") as other_version,
    ):
        theirs.create()
        created = mine.create(plugin_config={"password": "s3cret"})
        _, _, event = stream.next("CREATED")
        assert event["resource_id"] == created["id"]
        assert "s3cret" not in json.dumps(event)
        assert other_version.is_quiet()


@pytest.mark.differs("shows the whole spec")
def test_events_have_no_secrets(admin: Api, make_kind: Callable[..., Kind]) -> None:
    schema = {"properties": {"key": {"type": "string", "writeOnly": True}, "name": {"type": "string"}}}
    kind = make_kind(schema)
    with listening(admin, f"/events?resource_type={kind.name}") as stream:
        kind.create(spec={"key": "s3cret", "name": "n"})
        _, _, event = stream.next("CREATED")
        assert event["resource_data"]["spec"]["name"] == "n"
        assert "s3cret" not in json.dumps(event)


@pytest.mark.differs("sends TRIGGER to everybody")
def test_a_trigger_is_not_for_clients(admin: Api, kind: Kind) -> None:
    resource = kind.ready()
    with listening(admin, f"/events?resource_type={kind.name}") as stream:
        admin.expect(202, "POST", f"/resources/{resource['id']}/reconcile")
        kind.worker.one().make_ready()
        while True:
            _, name, event = stream.next("TRIGGER", "RECONCILED")
            assert name != "TRIGGER", event
            if event["resource_id"] == resource["id"]:
                break


def test_events_for_kubernetes_are_something_else(admin: Api) -> None:
    answer = admin.ask("GET", "/events", headers={"Accept": "application/json"})
    assert answer.json()["kind"] == "EventList", os.environ["BASE_URL"]
