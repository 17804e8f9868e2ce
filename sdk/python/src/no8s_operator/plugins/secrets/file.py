"""Secrets from files in one folder, as container engines mount them."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

from no8s_operator.plugins.secrets.base import SecretStorePlugin

# One file name. A key that could leave the folder is no key.
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}")


class FileSecretStore(SecretStorePlugin):
    """A key is a file in `SECRET_FILE_DIRECTORY`; its text without the last line end is the secret."""

    def __init__(self) -> None:
        self._folder = Path()

    @property
    def name(self) -> str:
        return "file"

    @property
    def version(self) -> str:
        return "1.0.0"

    @classmethod
    def load_config_from_env(cls) -> dict[str, Any]:
        return {"directory": os.environ.get("SECRET_FILE_DIRECTORY", "/run/secrets")}

    async def initialize(self, config: dict[str, Any]) -> None:
        self._folder = Path(config["directory"])
        if not self._folder.is_dir():
            raise ValueError(f"SECRET_FILE_DIRECTORY: {self._folder} is not a folder")

    async def get_secret(self, key: str) -> str:
        if not _KEY.fullmatch(key):
            raise KeyError(key)
        try:
            text = await asyncio.to_thread((self._folder / key).read_text, encoding="utf-8")
        except (FileNotFoundError, IsADirectoryError):
            raise KeyError(key) from None
        value = text.removesuffix("\n").removesuffix("\r")
        if not value:
            raise KeyError(key)
        return value
