"""What can go wrong between a plugin and the server, by what the caller can do about it."""


class ServerError(RuntimeError):
    """The server refused a request, with its reason."""

    def __init__(self, status: int, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{detail} (HTTP {status})")
        self.status = status
        self.detail = detail
        # After how many seconds the server wishes to be asked again.
        self.retry_after = retry_after

    @property
    def is_busy(self) -> bool:
        """Whether the server has too much to do, and not whoever asks something wrong."""
        return self.status == 429 or (self.status == 503 and self.retry_after is not None)


class ServerUnreachableError(ConnectionError):
    """No answer from the server for as long as it made sense to ask."""


class StaleLeaseError(RuntimeError):
    """The resource is no longer this plugin's to write: its lease ended, or another host has it now.

    Stop working on the resource. It is handed out again when it is due.
    """

    def __init__(self, resource_id: int, reason: str) -> None:
        super().__init__(f"resource {resource_id}: {reason}")
        self.resource_id = resource_id
        self.reason = reason
