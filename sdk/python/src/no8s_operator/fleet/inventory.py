"""The inventory's entry of one claim, read and written with the token that came with it."""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from no8s_operator.errors import ServerError
from no8s_operator.http import Server


class MovedError(RuntimeError):
    """A section is no longer at the version that was read: read again and decide again."""

    def __init__(self, section: str) -> None:
        super().__init__(f"section {section} has changed since it was read")
        self.section = section


@dataclass(frozen=True)
class Section:
    """What is in a section. Not shown by `repr`: it may be secret."""

    version: int
    data: Any = field(default=None, repr=False)
    is_secret: bool = False


@dataclass(frozen=True)
class View:
    """The entry with the sections that the grants let us see; secret ones without their content."""

    revision: int
    sections: dict[str, Section]

    def data(self, section: str) -> dict[str, Any]:
        """What is in a section, or nothing."""
        found = self.sections.get(section)
        return found.data if found and isinstance(found.data, dict) else {}


@dataclass(frozen=True)
class Written:
    """What a write has led to; `is_unchanged` if it said the same before."""

    version: int
    revision: int
    is_unchanged: bool = False


class Inventory:
    """One entry, as far as the reconciler's grants reach. Its token is for this entry and this claim."""

    def __init__(self, server: Server, revision: int) -> None:
        self._server = server
        self._revision = revision
        self._is_read = False

    @property
    def observed_revision(self) -> int:
        """What everything read so far is at least as new as."""
        return self._revision

    async def read(self) -> View:
        """The entry and its sections."""
        body = await self._server.ask("GET", "")
        sections = {
            name: Section(it["version"], it.get("data"), bool(it.get("secret")))
            for name, it in (body.get("sections") or {}).items()
        }
        # The first read counts: what was written after it may be missing in what was decided from it.
        if not self._is_read:
            self._revision, self._is_read = body["revision"], True
        return View(body["revision"], sections)

    async def section(self, name: str) -> Section | None:
        """What is in one section, or None if it was never written."""
        try:
            body = await self._server.ask("GET", _path(name))
        except ServerError as error:
            if error.status == 404:
                return None
            raise
        return Section(body["version"], body.get("data"), bool(body.get("secret")))

    async def write(self, name: str, data: Any, *, version: int | None = None) -> Written:
        """Writes a section; with `version` only if it is still at that. Raises `MovedError` if it is not."""
        headers = {} if version is None else {"If-Match": f'"{version}"'}
        try:
            body = await self._server.ask("PUT", _path(name), {"data": data}, headers=headers)
        except ServerError as error:
            if error.status == 412:
                raise MovedError(name) from error
            raise
        return Written(body["version"], body["revision"], bool(body.get("unchanged")))

    async def remove(self, name: str) -> None:
        """Removes a section; one that is not there is fine."""
        try:
            await self._server.ask("DELETE", _path(name))
        except ServerError as error:
            if error.status != 404:
                raise


def _path(section: str) -> str:
    return f"/sections/{quote(section, safe='')}"
