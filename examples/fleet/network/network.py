"""U1: a virtual network for every entry, on the simulated cloud of `providers/example`.

Run it beside the mothership: `CLOUD_URL=http://127.0.0.1:PORT python network.py`.
"""

import os
import sys
from typing import Any
from urllib.parse import quote

import aiohttp

from no8s_operator.fleet import Answer, Busy, Component, Entry, Failed, Inventory, Watch, ready, requeue, serve
from no8s_operator.http import seconds_of

KIND = "network"
POLL_SECONDS = 1.0


class Cloud:
    """Networks in the cloud, by name. Its faults are HTTP statuses."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    async def get(self, name: str) -> dict[str, Any] | None:
        return await self._ask("GET", f"/cloud/things/{quote(name)}?kind={KIND}")

    async def create(self, name: str, properties: dict[str, Any]) -> dict[str, Any] | None:
        return await self._ask("POST", "/cloud/things", {"kind": KIND, "name": name, "properties": properties})

    async def update(self, name: str, properties: dict[str, Any]) -> dict[str, Any] | None:
        return await self._ask("PUT", f"/cloud/things/{quote(name)}?kind={KIND}", {"properties": properties})

    async def delete(self, name: str) -> None:
        await self._ask("DELETE", f"/cloud/things/{quote(name)}?kind={KIND}")

    async def _ask(self, method: str, path: str, body: Any = None) -> dict[str, Any] | None:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20))
        async with self._session.request(method, self._url + path, json=body) as answer:
            if answer.status == 404:
                return None
            content = await answer.json() if answer.content_type == "application/json" else {}
            if answer.status == 409:
                # The name is taken: an earlier create is not visible yet.
                return {}
            if answer.status >= 400:
                # Also when it may have happened: the next run looks first, and the name is taken only once.
                wait = seconds_of(answer.headers.get("Retry-After"))
                message = f"the cloud says: {content.get('message')} (HTTP {answer.status})"
                if answer.status == 429:
                    raise Busy(message, wait)
                raise Failed(message, terminal=answer.status == 422, retry_after=wait)
            return content or {}


class Network(Component):
    """Makes the network, and tells the inventory what it is called."""

    name = "network"
    kinds = ("runtime",)
    watches = (Watch("settings", "/cidr"),)
    reads = ("settings", "network")
    writes = ("network",)

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def close(self) -> None:
        await self._cloud.close()

    async def reconcile(self, entry: Entry, inventory: Inventory) -> Answer:
        name = f"vnet-{entry.id}"
        if entry.is_deleting:
            return await self._delete(name, inventory)
        settings = (await inventory.read()).data("settings")
        wanted = {"region": settings.get("region", "westeurope"), "cidr": settings.get("cidr", "10.250.0.0/16")}
        network = await self._cloud.get(name) or await self._cloud.create(name, wanted) or {}
        if network.get("properties", {}).get("cidr") != wanted["cidr"]:
            network = await self._cloud.update(name, {"cidr": wanted["cidr"]}) or {}
        if network.get("state") != "ready":
            return requeue(POLL_SECONDS, f"the cloud is making {name}").with_condition(
                "NetworkCreated", "False", "Creating"
            )
        await inventory.write(
            "network", {"vnet_name": name, "vnet_id": network.get("id", name), "cidr": wanted["cidr"]}
        )
        return ready(f"{name} is there").with_condition("NetworkCreated", "True", "Created")

    async def _delete(self, name: str, inventory: Inventory) -> Answer:
        await self._cloud.delete(name)
        if await self._cloud.get(name) is not None:
            return requeue(POLL_SECONDS, f"{name} is being deleted")
        await inventory.remove("network")
        return ready("there is no network any more")


if __name__ == "__main__":
    sys.exit(serve(Network(Cloud(os.environ.get("CLOUD_URL", "http://127.0.0.1:50052")))))
