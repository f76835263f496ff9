"""Extension modules in C or C++, one file each and its headers: built once, kept on disk, and done
without where they cannot be built."""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from tilewright.measure.cpu.binaries import Build
from tilewright.spaces.errors import InputError

FLAGS = ("-O3", "-shared", "-fPIC", "-Wall", "-Wextra")
CPP_FLAGS = ("-std=c++17", "-Wl,--no-as-needed", "-lstdc++")


def extension(
    source: Path, headers: Sequence[str] = (), abi: str = "", beside: Sequence[Path] = ()
) -> Any:
    """Return the module of a C or C++ file, which includes the header of its own name, if there is
    one, those ``beside`` it, Python's and those of folders ``headers``; ``abi`` says what else its
    binary depends on. None where it cannot be built, for want of a compiler or of Python's headers.
    """
    include = sysconfig.get_path("include")
    if not Path(include, "Python.h").exists():
        return None
    language = CPP_FLAGS if source.suffix == ".cpp" else ()
    flags = (*FLAGS, *language, *(f"-I{folder}" for folder in (include, *headers)))
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    own = (source, source.with_suffix(".h"), *beside)
    files = (file for file in own if file.exists())
    texts = {file.name: file.read_text() for file in files}
    build = Build(source.stem, texts, flags, suffix + abi)
    try:
        return build.load(lambda path: _module_at(source.stem, path))
    except InputError:
        return None


def _module_at(name: str, path: str) -> Any:
    """Return the extension module of a shared object."""
    loader = ExtensionFileLoader(name, path)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
