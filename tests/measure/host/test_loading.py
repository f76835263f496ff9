"""Libraries from memory: each its own, whatever becomes of the file they came from."""

import ctypes
import os
import subprocess

import pytest

from tilewright.measure.host.loading import sealed_file
from tilewright.spaces.cpu.compiler import find_compiler


def library(tmp_path, answer):
    source, made = tmp_path / f"{answer}.c", tmp_path / f"{answer}.so"
    source.write_text(f"int answer(void) {{ return {answer}; }}")
    command = [find_compiler().path, "-shared", "-fPIC", "-o", made, source]
    subprocess.run(command, check=True)
    return made.read_bytes()


def load(content):
    with sealed_file(content) as path:
        return ctypes.CDLL(path)


def test_libraries_that_are_loaded_one_after_another_are_told_apart(tmp_path):
    """The linker takes a path that it has met for what it loaded from there."""
    contents = [library(tmp_path, answer) for answer in range(5)]
    libraries = [load(content) for content in contents]
    assert [loaded.answer() for loaded in libraries] == list(range(5))


def test_no_descriptor_is_left(tmp_path):
    content = library(tmp_path, 7)
    before = set(os.listdir("/proc/self/fd"))
    load(content)
    assert set(os.listdir("/proc/self/fd")) == before


def test_nobody_can_change_what_is_loaded(tmp_path):
    with sealed_file(b"content") as path:
        with pytest.raises(PermissionError):
            os.truncate(path, 0)
        with pytest.raises(PermissionError), open(path, "r+b", buffering=0) as file:
            file.write(b"x")


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"text", b"\x7fELF" + bytes(5000)])
def test_what_is_no_library_raises_an_os_error(content):
    with pytest.raises(OSError, match="fd"):
        load(content)
