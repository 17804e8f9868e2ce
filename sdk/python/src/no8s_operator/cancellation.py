"""Whether somebody asked for a cancellation, or a plugin only let one out."""

import asyncio


def is_cancelled() -> bool:
    """Whether the current task was asked to end.

    A `CancelledError` without that comes from within: from something else that was cancelled and awaited here.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
