"""The system's C compiler: it is found, identified, and asked for its macros on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from tilewright.spaces.errors import InputError, shown

CANDIDATES = ("gcc", "clang", "cc")
NATIVE = ("-march=native", "-mcpu=native", "")
ARCHITECTURE = "TILEWRIGHT_ARCH"


@dataclass(frozen=True)
class Compiler:
    """A C compiler.

    ``macros`` are predefined when it compiles for this machine, or for the architecture that was
    asked for; ``native`` is the flag that makes it do so.
    """

    path: str
    name: str
    version: str
    native: str
    macros: frozenset[str]


def find_compiler() -> Compiler:
    """Return the compiler that the environment variable ``CC`` names, else gcc, clang or cc.

    ``TILEWRIGHT_ARCH`` names an architecture to compile for, such as ``haswell``, instead of this
    machine. Raises :class:`InputError` if there is no compiler, or if it does not work.
    """
    return _identify(os.environ.get("CC", ""), os.environ.get(ARCHITECTURE, ""))


@cache
def _identify(choice: str, architecture: str) -> Compiler:
    names = (choice,) if choice else CANDIDATES
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        looked = f"CC={choice!r}" if choice else ", ".join(CANDIDATES)
        raise InputError(f"no C compiler found (looked for {looked}); install gcc or clang")
    for native in (f"-march={architecture}",) if architecture else NATIVE:
        listing = _macros(path, native)
        if listing is not None:
            if "__GNUC__" not in listing:
                raise InputError(
                    f"the C compiler {path} does not say what it is: it predefines no __GNUC__; "
                    "kernels need gcc or clang"
                )
            return Compiler(path, *_name_and_version(listing), native, frozenset(listing))
    if architecture:
        raise InputError(
            f"{ARCHITECTURE}={shown(architecture)} is none that the C compiler {path} knows; "
            "allowed: names for its option -march, such as haswell"
        )
    raise InputError(f"the C compiler {path} does not compile an empty file")


def _macros(path: str, native: str) -> dict[str, str] | None:
    command = [path, *filter(None, [native]), "-dM", "-E", "-x", "c", os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"the C compiler {path} does not run: {error}") from None
    if done.returncode:
        return None
    text = done.stdout.decode(errors="replace")
    return dict(re.findall(r"^#define (\w+) ?(.*)$", text, flags=re.MULTILINE))


_VERSION_MACROS = {
    "clang": ("__clang_major__", "__clang_minor__", "__clang_patchlevel__"),
    "gcc": ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"),
}


def _name_and_version(macros: dict[str, str]) -> tuple[str, str]:
    name = "clang" if "__clang__" in macros else "gcc"
    return name, ".".join(macros.get(part, "0") for part in _VERSION_MACROS[name])
