"""One command: its output streamed, kept within bounds, and nothing of it left running."""

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

# What is kept of the output: its end, where errors are. The log has all of it.
KEPT_BYTES_MAX = 64 << 10
LINE_BYTES_MAX = 16 << 10
# Between the polite signal and the final one; Terraform needs a moment to save its state.
GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    output: str
    timed_out_after: float | None = None

    @property
    def is_success(self) -> bool:
        return self.code == 0 and self.timed_out_after is None

    @property
    def how(self) -> str:
        if self.timed_out_after is not None:
            return f"was stopped after {self.timed_out_after:g} s"
        return f"ended with {self.code}"

    @property
    def last_line(self) -> str:
        lines = self.output.strip().splitlines()
        return lines[-1] if lines else "no output"


class _Kept:
    """The last lines within the bound, and how many before them were dropped."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._size = 0
        self._dropped = 0

    def add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line)
        while self._size > KEPT_BYTES_MAX and len(self._lines) > 1:
            self._size -= len(self._lines.popleft())
            self._dropped += 1

    def text(self) -> str:
        note = f"({self._dropped} earlier lines are in the log only)\n" if self._dropped else ""
        return note + "\n".join(self._lines)


async def run(
    arguments: list[str], folder: Path, environment: dict[str, str], timeout_seconds: float, label: str
) -> Ended:
    """Runs a command to its end, its time limit, or our cancellation. Its process group ends with it."""
    kept = _Kept()
    # A pipe of our own: asyncio's would make `wait` wait for whoever else still holds its end.
    ours, theirs = os.pipe()
    output, pipe = await _reader(ours)
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    except OSError as error:
        pipe.close()
        return Ended(127, f"{arguments[0]} cannot be started: {error}")
    finally:
        os.close(theirs)
    reader = asyncio.ensure_future(_stream(output, kept, label))
    try:
        async with asyncio.timeout(timeout_seconds):
            code = await process.wait()
        # What it left in the background would hold the pipe open for as long as it likes.
        _signal(process, signal.SIGKILL)
        await reader
        return Ended(code, kept.text())
    except TimeoutError:
        await _end(process)
        await reader
        return Ended(process.returncode or -1, kept.text(), timed_out_after=timeout_seconds)
    except BaseException:
        await _end(process)
        raise
    finally:
        reader.cancel()
        pipe.close()


async def _reader(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    loop = asyncio.get_running_loop()
    output = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(output), os.fdopen(descriptor, "rb"))
    return output, pipe


async def _stream(output: asyncio.StreamReader, kept: _Kept, label: str) -> None:
    while True:
        try:
            raw = await output.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            raw = error.partial
        except asyncio.LimitOverrunError as error:
            # A line without end is cut where the buffer is full.
            raw = await output.read(max(error.consumed, 1))
        if not raw:
            return
        line = _printable(raw.decode(errors="replace").rstrip("\r\n"))
        kept.add(line)
        logger.info("%s: %s", label, line)


def _printable(line: str) -> str:
    """Without control characters: a command's output must not write over what others logged."""
    return "".join(char if char.isprintable() or char == "\t" else f"\\x{ord(char):02x}" for char in line)


async def _end(process: asyncio.subprocess.Process) -> None:
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    _signal(process, signal.SIGKILL)
    await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
