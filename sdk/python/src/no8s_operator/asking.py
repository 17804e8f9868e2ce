"""Who asks the server for something, and when it last did: a plugin that asks for nothing may be stuck."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary


class Asking:
    """The tasks that ask, and how often each has."""

    def __init__(self) -> None:
        self._under_way: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()
        self._counts: WeakKeyDictionary[asyncio.Task[Any], int] = WeakKeyDictionary()

    @contextmanager
    def asks(self) -> Iterator[None]:
        """For as long as the current task asks. A server that is away makes that long, and is no reason to worry."""
        task = asyncio.current_task()
        if task is None:
            yield
            return
        self._counts[task] = self._counts.get(task, 0) + 1
        self._under_way[task] = self._under_way.get(task, 0) + 1
        try:
            yield
        finally:
            self._under_way[task] -= 1

    def count(self, task: "asyncio.Task[Any]") -> int:
        """How often `task` has asked so far."""
        return self._counts.get(task, 0)

    def is_asking(self, task: "asyncio.Task[Any]") -> bool:
        return self._under_way.get(task, 0) > 0
