"""The short import path `plugins`, which some plugins use.

It names the same modules as `no8s_operator.plugins`, so that a class is one class whichever way it
was imported. Only inside the host: a package `plugins` of somebody else stays what it is elsewhere.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

SHORT = "plugins"
REAL = "no8s_operator.plugins"


class _Alias(Loader):
    def __init__(self, real: str) -> None:
        self._real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system put the alias here; the module keeps its own identity.
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != SHORT and not fullname.startswith(SHORT + "."):
            return None
        real = REAL + fullname[len(SHORT) :]
        try:
            is_package = hasattr(importlib.import_module(real), "__path__")
        except ModuleNotFoundError as error:
            if error.name == real:
                return None
            raise
        return ModuleSpec(fullname, _Alias(real), is_package=is_package)


def install() -> None:
    """Makes the short path work in this process."""
    if not any(isinstance(it, _Finder) for it in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
