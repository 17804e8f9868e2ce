"""The plugin host: finds installed plugins, registers them with the server and runs them."""

from no8s_operator.host.command import main

__all__ = ["main"]
