"""Environments as somebody has them who installs packages with pip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from concert import Concert

ROOT = Path(__file__).parents[3]
SDK = ROOT / "sdk" / "python"


class Venv:
    """A fresh environment, as somebody who follows the guide has it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)

    def pip(self, *arguments: str, cwd: Path = ROOT) -> None:
        done = subprocess.run([self.bin / "pip", *arguments], cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def concert(self, binary: str, data: Path, *, dev: bool = True, **environment: str) -> Concert:
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        # What is installed is what runs, and not the sources that the tests may be run with.
        return Concert(binary, data, plugins=None, dev=dev, PATH=path, PYTHONPATH="", **environment)


def with_package(folder: Path) -> Venv:
    """A fresh environment with our package, below `folder`."""
    # pip builds where the source is; a copy leaves the repository as it was.
    source = folder / "sdk"
    shutil.copytree(SDK, source, ignore=shutil.ignore_patterns("*.egg-info", "build", "__pycache__", "tests"))
    it = Venv(folder / "venv")
    it.pip("install", str(source))
    return it
