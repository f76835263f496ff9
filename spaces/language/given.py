"""Tables of a user's own, which are kept by their digests: a program's text names them by these.

What kernels over ranges do depends on the table itself, so that its digest is part of a workload's
identity. The entries lie in the user's cache, in a file that the digest names, and are taken from
there only if they still have it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import whole_file
from tilewright.spaces.validation.user_cache import user_cache

DIGITS = 16
"""Hexadecimal digits of a table's digest; its name has an ``x`` before them."""
LARGEST_FILE = 1 << 32
"""Bytes of a file with a table, at most."""


def digest_of(entries: np.ndarray) -> str:
    """Return the name of a table: the same for the same entries in the same shape, in any dtype."""
    plain = np.ascontiguousarray(entries, "<i8")
    return "x" + hashlib.sha256(f"{plain.shape}".encode() + plain.tobytes()).hexdigest()[:DIGITS]


def keep(entries: np.ndarray) -> str:
    """Keep a table, and return its name."""
    name = digest_of(entries)
    place = _folder() / f"{name}.npy"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(place) as file:
            np.save(file, np.ascontiguousarray(entries, np.int64), allow_pickle=False)
    except OSError as error:
        raise InputError(f"cannot keep a table in {place.parent}: {error.strerror}") from None
    return name


def given_table(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return the entries of the table with a name; :class:`InputError` if they are not here, or of
    another shape."""
    entries = _kept(name, _folder())
    if entries.shape != shape:
        raise InputError(f"the table {name} has the shape {entries.shape}; allowed: {shape}")
    return entries


@lru_cache(maxsize=8)
def _kept(name: str, folder: Path) -> np.ndarray:
    try:
        entries = read_table(folder / f"{name}.npy")
    except InputError:
        entries = None
    if entries is None or entries.dtype != np.int64 or digest_of(entries) != name:
        raise InputError(f"the table {name} is not here; give it again, such as --table row=FILE")
    entries.setflags(write=False)
    return entries


def read_table(file: Path) -> np.ndarray:
    """Return the whole numbers in a file of NumPy's in int64, or its numbers of floating point in
    float64; :class:`InputError` if it holds others."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(f"{file} is no table: over {LARGEST_FILE} bytes")
        entries = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "it is no array of NumPy's (.npy)"
        raise InputError(f"cannot read the table {file}: {reason}") from None
    if not isinstance(entries, np.ndarray) or entries.dtype.kind not in "iuf" or not entries.size:
        found = getattr(entries, "dtype", "several arrays")
        raise InputError(f"{file} holds {found}; allowed: real numbers, one at least")
    return entries.astype(np.float64 if entries.dtype.kind == "f" else np.int64)


def _folder() -> Path:
    return user_cache() / "tables"
