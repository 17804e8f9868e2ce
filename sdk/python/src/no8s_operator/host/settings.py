"""What the environment says about the host as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass

from no8s_operator.worker import LEASE_SECONDS

# The server's bound for what hosts ask for; longer is a mistake in units.
SECONDS_MAX = 24 * 3600
CONCURRENCY = 5
# Of one claim, and so of what a host could ever get at once.
CONCURRENCY_MAX = 1000


@dataclass(frozen=True)
class Settings:
    """How long a host may be silent, and how many actions it runs at once."""

    lease_seconds: int = LEASE_SECONDS
    concurrency: int = CONCURRENCY

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Settings":
        """Raises `ValueError` with the name of a variable that makes no sense."""
        return cls(
            lease_seconds=_whole(environ, "CONCERT_LEASE_SECONDS", LEASE_SECONDS, SECONDS_MAX),
            concurrency=_whole(environ, "MAX_CONCURRENT_RECONCILES", CONCURRENCY, CONCURRENCY_MAX),
        )


def _whole(environ: Mapping[str, str], name: str, usual: int, most: int) -> int:
    text = (environ.get(name) or "").strip()
    if not text:
        return usual
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise ValueError(f"{name} must be a whole number from 1 to {most}, not {text!r}")
    return int(text)
