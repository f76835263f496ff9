"""The folder of a cluster's sockets."""

from __future__ import annotations

import os
import stat
from types import SimpleNamespace

import pytest

from tilewright.measure.cluster.transport import sockets
from tilewright.measure.cluster.transport.sockets import is_short, set_short_folder
from tilewright.spaces.errors import InputError


@pytest.fixture
def registered(monkeypatch):
    """What is called at the end of this process."""
    calls = []

    def register(call, *arguments, **options):
        calls.append((call, arguments))

    monkeypatch.setattr(sockets, "atexit", SimpleNamespace(register=register))
    return calls


@pytest.mark.parametrize("name", ["TMPDIR", "RAY_TMPDIR"])
def test_a_folder_with_too_long_a_name_is_replaced_by_a_private_one(
    monkeypatch, registered, tmp_path, name
):
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv(name, str(tmp_path / ("x" * 107)))
    set_short_folder()
    made = os.environ["RAY_TMPDIR"]
    assert is_short(made)
    assert stat.S_IMODE(os.stat(made).st_mode) == 0o700
    [(remove, arguments)] = registered
    remove(*arguments)
    assert not os.path.exists(made)


def test_a_short_one_is_left_as_it_is(monkeypatch, registered):
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv("TMPDIR", "/short")
    set_short_folder()
    assert "RAY_TMPDIR" not in os.environ
    assert not registered


def test_where_no_folder_is_short_that_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(sockets, "SHORT_FOLDERS", (str(tmp_path / "missing"),))
    monkeypatch.setenv("RAY_TMPDIR", "/" + "x" * 107)
    with pytest.raises(InputError, match=r"too long for the sockets of Ray; allowed: up to 3\d"):
        set_short_folder()
