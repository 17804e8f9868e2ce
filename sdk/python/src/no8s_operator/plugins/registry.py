"""What is installed in this host: reconcilers, actions, and the secret store."""

import asyncio
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from no8s_operator.plugins.actions.base import ActionPlugin
from no8s_operator.plugins.reconcilers.base import ReconcilerPlugin
from no8s_operator.plugins.secrets.base import SecretStorePlugin

__all__ = ["PluginRegistry", "get_registry", "get_secret_store"]

logger = logging.getLogger(__name__)


class PluginRegistry:
    """Plugins by name. A resource type has one reconciler."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._reconcilers: dict[str, ReconcilerPlugin] = {}
        self._owners: dict[str, str] = {}
        self._actions: dict[str, type[ActionPlugin]] = {}
        self._versions: dict[str, str] = {}
        self._ready: dict[str, asyncio.Task[ActionPlugin]] = {}
        self.secret_store: SecretStorePlugin | None = None

    def register_reconciler(self, plugin: ReconcilerPlugin) -> None:
        """Takes a reconciler in. Raises `ValueError` if another one has one of its types."""
        for resource_type in plugin.resource_types:
            owner = self._owners.get(resource_type, plugin.name)
            if owner != plugin.name:
                raise ValueError(
                    f"Resource type '{resource_type}' is already claimed by reconciler '{owner}'. "
                    f"Cannot register '{plugin.name}'."
                )
        if plugin.name in self._reconcilers:
            logger.warning("Reconciler plugin %s is registered twice; the later one is used", plugin.name)
            self.remove_reconciler(plugin.name)
        self._reconcilers[plugin.name] = plugin
        self._owners.update(dict.fromkeys(plugin.resource_types, plugin.name))

    def remove_reconciler(self, name: str) -> None:
        self._reconcilers.pop(name, None)
        self._owners = {key: owner for key, owner in self._owners.items() if owner != name}

    def get_reconciler(self, name: str) -> ReconcilerPlugin | None:
        return self._reconcilers.get(name)

    def get_reconciler_for_resource_type(self, resource_type: str) -> ReconcilerPlugin | None:
        return self._reconcilers.get(self._owners.get(resource_type, ""))

    def list_reconcilers(self) -> list[dict[str, Any]]:
        return [{"name": it.name, "resource_types": list(it.resource_types)} for it in self._reconcilers.values()]

    def register_action(self, plugin: type[ActionPlugin]) -> str:
        """Takes an action plugin in and returns its name."""
        sample = plugin()
        if sample.name in self._actions:
            logger.warning("Action plugin %s is registered twice; the later one is used", sample.name)
        self._actions[sample.name] = plugin
        self._versions[sample.name] = sample.version
        self._ready.pop(sample.name, None)
        return sample.name

    def list_action_plugins(self) -> list[dict[str, str]]:
        return [{"name": name, "version": self._versions[name]} for name in sorted(self._actions)]

    async def get_action_plugin(self, name: str, config: dict[str, Any] | None = None) -> ActionPlugin:
        """The one instance of an action plugin, made on first use.

        Its configuration is the host's alone. `config` is accepted and not used: what one resource
        brings must not become what every other resource gets.
        """
        if name not in self._actions:
            available = ", ".join(sorted(self._actions)) or "none"
            raise ValueError(f"Unknown action plugin: {name}. Available plugins: {available}")
        # One task for all who ask meanwhile; a failed one is not kept, so the next caller tries again.
        task = self._ready.get(name)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._ready[name] = asyncio.create_task(self._initialized(name))
        return await asyncio.shield(task)

    async def _initialized(self, name: str) -> ActionPlugin:
        cls = self._actions[name]
        plugin = cls()
        try:
            await plugin.initialize({**cls.load_config_from_env(), **self.plugin_config(name)})
        # In a task of its own it would not only fail, but end the host.
        except SystemExit as error:
            raise RuntimeError(f"it called sys.exit({error.code})") from error
        return plugin

    def plugin_config(self, name: str) -> dict[str, Any]:
        """What `PLUGIN_CONFIGS` has for a plugin: a JSON object by plugin name."""
        try:
            config = json.loads(self._environ.get("PLUGIN_CONFIGS") or "{}").get(name, {})
            return dict(config)
        except (ValueError, AttributeError, TypeError) as error:
            logger.warning("PLUGIN_CONFIGS is not used, it is no JSON object by plugin name: %s", error)
            return {}


_registry = PluginRegistry()


def get_registry() -> PluginRegistry:
    """The registry of this process."""
    return _registry


def get_secret_store() -> SecretStorePlugin:
    """The active secret store."""
    store = get_registry().secret_store
    if store is None:
        raise RuntimeError("no secret store is active: this works inside the plugin host")
    return store
