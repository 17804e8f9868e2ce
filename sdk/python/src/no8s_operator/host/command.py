"""The command `no8s-plugin-host`."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import Mapping
from importlib.metadata import EntryPoint

from no8s_operator import __version__
from no8s_operator.errors import ServerError
from no8s_operator.events import EventBus
from no8s_operator.host import aliases, discovery
from no8s_operator.host.actions import NAME as ACTIONS
from no8s_operator.host.actions import ActionsReconciler
from no8s_operator.host.settings import Settings
from no8s_operator.host.supervisor import Supervisor
from no8s_operator.host.watchdog import Watchdog
from no8s_operator.http import Server
from no8s_operator.plugins.reconcilers.base import ReconcilerContext, ReconcilerPlugin
from no8s_operator.plugins.registry import PluginRegistry, get_registry
from no8s_operator.worker import Worker

logger = logging.getLogger(__name__)

URL = "http://127.0.0.1:8000"
# Longer than the longest action; a workflow may run for an hour.
ACTION_DEADLINE_SECONDS = 2 * 3600


def main() -> int:
    """Runs until told to stop. Ends with 1 when it cannot work, 0 when it was stopped."""
    parser = argparse.ArgumentParser(
        prog="no8s-plugin-host",
        description="Runs the installed plugins against a Concert server.",
        epilog="Environment: CONCERT_URL, CONCERT_TOKEN, CONCERT_CA (a PEM file), CONCERT_HOST_ID, LOG_LEVEL.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.parse_args()
    level = os.environ.get("LOG_LEVEL", "INFO").upper()
    logging.basicConfig(
        level=level if level in logging.getLevelNamesMapping() else "INFO",
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    aliases.install()
    try:
        return asyncio.run(Host(os.environ, get_registry()).run())
    except KeyboardInterrupt:
        return 0


class Host:
    """One process with plugins, and the server it works for."""

    def __init__(self, environ: Mapping[str, str], registry: PluginRegistry) -> None:
        self._environ = environ
        self._registry = registry
        self._shutdown = asyncio.Event()
        self._server = Server(
            environ.get("CONCERT_URL") or URL, environ.get("CONCERT_TOKEN"), environ.get("CONCERT_CA")
        )
        self._host_id = environ.get("CONCERT_HOST_ID") or f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}"
        self._events = EventBus(self._server)
        self._supervisor = Supervisor(self._shutdown)
        self._settings = Settings()
        self._watchdog: Watchdog | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._shutdown.set)
        if self._environ.get("CONCERT_SUPERVISED"):
            loop.add_reader(sys.stdin.fileno(), self._read_stdin)
        try:
            self._settings = Settings.of(self._environ)
            # Whose leases have ended has nothing to lose any more.
            self._watchdog = Watchdog(self._settings.lease_seconds)
            self._watchdog.start()
            await discovery.secret_store(self._registry, self._environ)
            await self._start_all()
            await self._shutdown.wait()
        except (ServerError, ValueError, OSError) as error:
            logger.error("The plugin host cannot work: %s", error)
            return 1
        finally:
            self._shutdown.set()
            try:
                await self._supervisor.stop()
                await self._events.close()
                await self._server.close()
            finally:
                if self._watchdog:
                    self._watchdog.stop()
        return 0

    def _read_stdin(self) -> None:
        """Whoever started us holds the other end for as long as it lives, even if it cannot say goodbye."""
        if not os.read(sys.stdin.fileno(), 4096):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            logger.info("The server is gone; stopping")
            self._shutdown.set()

    async def _start_all(self) -> None:
        for point, plugin in discovery.reconcilers():
            await self._start_reconciler(point, plugin)
        actions = discovery.actions(self._registry, self._environ)
        if actions:
            await self._start_actions(ActionsReconciler(actions, self._settings.concurrency))

    async def _start_reconciler(self, point: EntryPoint, plugin: ReconcilerPlugin) -> None:
        try:
            handles = [{"resource_type": it} for it in plugin.resource_types]
            if plugin.name == ACTIONS:
                raise ValueError(f"the name '{ACTIONS}' is the host's own")
            self._registry.register_reconciler(plugin)
        except Exception as error:
            discovery.could_not_load("reconciler", point, error)
            return
        try:
            await self._start(plugin, handles, getattr(plugin, "deadline_seconds", None))
        except Exception as error:
            if _is_about_the_host(error):
                raise
            self._registry.remove_reconciler(plugin.name)
            discovery.could_not_load("reconciler", point, error)

    async def _start_actions(self, plugin: ActionsReconciler) -> None:
        handles = [{"action": it["name"], "version": it["version"]} for it in self._registry.list_action_plugins()]
        try:
            await self._start(plugin, handles, ACTION_DEADLINE_SECONDS)
        except Exception as error:
            if _is_about_the_host(error):
                raise
            logger.error("Could not start the action plugins %s: %s", ", ".join(plugin.action_names), error)

    async def _start(
        self, plugin: ReconcilerPlugin, handles: list[dict[str, str]], deadline_seconds: int | None
    ) -> None:
        worker = Worker(
            self._server,
            plugin.name,
            handles,
            self._host_id,
            self._shutdown,
            lease_seconds=self._settings.lease_seconds,
            deadline_seconds=deadline_seconds,
        )
        what = "resource types" if plugin.resource_types else "actions"
        names = ", ".join(plugin.resource_types or [it["action"] for it in handles])
        await worker.open()
        if self._shutdown.is_set():
            await worker.close()
            return
        logger.info("Registered reconciler plugin: %s (%s: %s)", plugin.name, what, names)
        ctx = ReconcilerContext(worker, self._registry, self._shutdown, self._events)
        await self._supervisor.start(plugin, ctx, worker)


def _is_about_the_host(error: Exception) -> bool:
    """Whether no other plugin could be registered either: who does not know us refuses all of them."""
    return isinstance(error, ServerError) and error.status == 401
