"""Bodies of answers that others give, which may be of any length."""

import aiohttp


async def whole(content: aiohttp.StreamReader, bytes_max: int) -> bytes | None:
    """All of a body; None if it is longer than `bytes_max`."""
    raw = await content.read(bytes_max + 1)
    # One `read` gives what has arrived, which is not all there is; an empty one is the end.
    while len(raw) <= bytes_max and (more := await content.read(bytes_max + 1)):
        raw += more
    return raw if len(raw) <= bytes_max else None
