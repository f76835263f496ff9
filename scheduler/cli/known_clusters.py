"""The clusters that this user has named on the command line.

A cluster gets the user's token, and code of its head's choice runs here, so the address of one that
a database names is followed only if the user has been there.
"""

from __future__ import annotations

from pathlib import Path

from tilewright.measure.host.directories import cache_directory


def remember(address: str) -> None:
    """Remember that the user named the cluster at this address, and that it answered."""
    if not is_known(address):
        with _list().open("a") as file:
            file.write(address + "\n")


def is_known(address: str) -> bool:
    """Return True if the user has connected to this address before."""
    return _list().exists() and address in _list().read_text().splitlines()


def _list() -> Path:
    return cache_directory("cluster") / "known"
