"""Which plugins are installed, by their entry points."""

import logging
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from no8s_operator.plugins.actions.exec import ExecPlugin
from no8s_operator.plugins.actions.github_actions import GitHubActionsPlugin
from no8s_operator.plugins.actions.http_api import HttpApiPlugin
from no8s_operator.plugins.reconcilers.base import ReconcilerPlugin
from no8s_operator.plugins.registry import PluginRegistry
from no8s_operator.plugins.secrets.base import SecretStorePlugin
from no8s_operator.plugins.secrets.env import EnvSecretStore
from no8s_operator.plugins.secrets.file import FileSecretStore
from no8s_operator.plugins.secrets.vault import VaultSecretStore

logger = logging.getLogger(__name__)

Find = Callable[[str], list[EntryPoint]]


def installed(group: str) -> list[EntryPoint]:
    """The entry points of a group, in an order that does not depend on the file system."""
    return sorted(entry_points(group=group), key=lambda it: (it.name, it.value))


def reconcilers(find: Find = installed) -> list[tuple[EntryPoint, ReconcilerPlugin]]:
    """An instance of every reconciler that can be loaded; the others are logged and left out.

    Of two with one name, which would claim under it side by side, the later one.
    """
    found: dict[str, tuple[EntryPoint, ReconcilerPlugin]] = {}
    for point in find("no8s.reconcilers"):
        try:
            plugin: ReconcilerPlugin = point.load()()
            name, _ = plugin.name, list(plugin.resource_types)
            earlier = found.pop(name, None)
        # One that calls sys.exit would end all others with the host, again after every restart.
        except (Exception, SystemExit) as error:
            could_not_load("reconciler", point, error)
            continue
        warn_if_renamed(point, name)
        if earlier:
            said = "Reconciler plugin %s is installed twice; that of entry point %s is used (%s), not that of %s (%s)"
            logger.warning(said, name, point.name, point.value, earlier[0].name, earlier[0].value)
        found[name] = (point, plugin)
    return list(found.values())


def could_not_load(what: str, point: EntryPoint, error: BaseException) -> None:
    reason = f"it called sys.exit({error.code})" if isinstance(error, SystemExit) else error
    logger.error("Could not load %s plugin %s: %s", what, point.name, reason)


def warn_if_renamed(point: EntryPoint, name: str) -> None:
    if point.name != name:
        logger.warning("Entry point %s and plugin name %s differ; the plugin is known as %s", point.name, name, name)


def actions(registry: PluginRegistry, environ: Mapping[str, str], find: Find = installed) -> list[str]:
    """Registers the built-in and the installed action plugins that are enabled; returns their names.

    `exec` is off unless the server's configuration names its commands.
    """
    enabled = {it.strip() for it in environ.get("ENABLED_ACTION_PLUGINS", "").split(",") if it.strip()}
    classes: list[type[Any]] = [GitHubActionsPlugin, HttpApiPlugin]
    if environ.get("CONCERT_EXEC_COMMANDS"):
        classes.append(ExecPlugin)
    for point in find("no8s.actions"):
        try:
            plugin = point.load()
            warn_if_renamed(point, plugin().name)
            classes.append(plugin)
        except (Exception, SystemExit) as error:
            could_not_load("action", point, error)
    return [registry.register_action(cls) for cls in classes if not enabled or cls().name in enabled]


async def secret_store(
    registry: PluginRegistry, environ: Mapping[str, str], find: Find = installed
) -> SecretStorePlugin:
    """The store that `SECRET_STORE_PLUGIN` names, ready to use. Raises if it is not: nothing may start without."""
    wanted = environ.get("SECRET_STORE_PLUGIN") or "env"
    classes: dict[str, type[SecretStorePlugin]] = {
        "env": EnvSecretStore,
        "file": FileSecretStore,
        "vault": VaultSecretStore,
    }
    for point in find("no8s.secret_stores"):
        if point.name == wanted:
            classes[wanted] = point.load()
    if wanted not in classes:
        raise ValueError(f"SECRET_STORE_PLUGIN: {wanted!r} is not installed; known: {', '.join(sorted(classes))}")
    store = classes[wanted]()
    await store.initialize({**classes[wanted].load_config_from_env(), **registry.plugin_config(wanted)})
    registry.secret_store = store
    return store
