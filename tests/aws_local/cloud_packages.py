"""A function's package as this machine can run it: the very zip unpacked, or for an image the repository's own code."""

from __future__ import annotations

import io
import shutil
import sysconfig
import zipfile
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Final

from tests.aws_local.function import Code

_SITE_PACKAGES: Final = Path(sysconfig.get_paths()["platlib"])
_COMPILED: Final = ".so"


def entry(function: Any) -> str:
    """Which handler a function is created with: an image's is its command."""
    if function.package_type == "Image":
        command = function.image_config.cmd
        return str(command[0]) if command else ""
    return str(function.handler).replace("/", ".")


def code_of(function: Any, folder: Path, say: Callable[[str], None]) -> tuple[str, Code]:
    """The handler's module, and where its code is; `folder` is for what is unpacked."""
    module, _, name = entry(function).rpartition(".")
    if function.package_type == "Image":
        return module, Code(name)
    home = folder / function.code_digest[:16]
    if not home.is_dir():
        _unpack(function.code_bytes, home)
    return module, Code(name, _paths(home, function.function_name, say))


def _unpack(content: bytes, home: Path) -> None:
    draft = home.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        packed.extractall(draft)
    draft.replace(home)


def _paths(home: Path, name: str, say: Callable[[str], None]) -> tuple[Path, ...]:
    """The unpacked zip; packages in it that were compiled for another Python are taken from this one's.

    They are removed, because half of such a package would be found before the whole one.
    """
    unfit = {file.relative_to(home).parts[0] for file in home.rglob(f"*{_COMPILED}") if not _fits(file)}
    for package in unfit:
        shutil.rmtree(home / package) if (home / package).is_dir() else (home / package).unlink()
    marker = home / ".taken-from-site-packages"
    if unfit:
        marker.write_text("\n".join(sorted(unfit)), encoding="utf-8")
        say(f"{name}: the zip's {', '.join(sorted(unfit))} is compiled for another Python; taken from {_SITE_PACKAGES}")
    return (home, _SITE_PACKAGES) if marker.is_file() else (home,)


def _fits(file: Path) -> bool:
    """Whether this Python would load a compiled module."""
    suffix = f".{file.name.partition('.')[2]}"
    return suffix in EXTENSION_SUFFIXES
