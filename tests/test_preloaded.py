"""A preloaded interpreter is like a fresh one, but for what it has loaded."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.preloaded import preloaded

HERE = "import os, sys; print(os.getcwd(), os.environ['WORD'], sys.argv[1:], __name__)"
STREAMS = "import sys; print(sys.stdin.read(), sys.stdout.seekable()); print('!', file=sys.stderr)"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    with preloaded(tmp_path_factory.mktemp("python"), ["colorsys"]) as made:
        yield str(made)


@pytest.mark.parametrize("text", [HERE, STREAMS, "import sys; sys.exit(7)", "1 / 0"])
def test_it_answers_as_a_fresh_one(python, tmp_path, text):
    def told(interpreter: str) -> tuple[int, str, str]:
        command = [interpreter, "-c", text, "one word", "-x"]
        options = {"cwd": tmp_path, "env": {"WORD": "said"}, "input": "given"}
        done = subprocess.run(command, **options, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr.splitlines()[-1] if done.stderr else ""

    assert told(python) == told(sys.executable)


def test_modules_run_and_libraries_are_loaded(python):
    module = subprocess.run([python, "-m", "tilewright", "--version"], capture_output=True)
    assert module.returncode == 0
    assert module.stdout.startswith(b"tilewright ")
    loaded = "import sys; print('colorsys' in sys.modules)"
    assert subprocess.check_output([python, "-c", loaded]) == b"True\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_it_and_ends_both(python, number):
    waits = "import signal; print('waits', flush=True); signal.pause()"
    with subprocess.Popen([python, "-c", waits], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"waits\n"
        process.send_signal(number)
        assert process.stdout.read() == b""
    assert process.returncode == -number
