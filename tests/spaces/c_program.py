"""Compiles and runs a small C program with the system compiler: generated text must work."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest


def run_c(source: str) -> list[str]:
    """The lines that the program prints."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program")
        Path(folder, "program.c").write_text(source)
        command = [compiler, "-O0", "-w", "-fsanitize=undefined", "-fno-sanitize-recover"]
        subprocess.run([*command, "-o", program, f"{program}.c"], check=True, timeout=120)
        result = subprocess.run([program], check=True, timeout=60, capture_output=True, text=True)
    return result.stdout.splitlines()
