"""Completion of command lines, in the shells themselves as far as they are installed."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.scheduler.cli.command import PATHS
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.tables.workload_texts import texts_of
from tilewright.scheduler.cli.app import run
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

QUIET = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "--interactive"],
}
SETUP = {
    "bash": 'eval "$(tilewright completion bash)"',
    "zsh": 'eval "$(tilewright completion zsh)"',
    "fish": "tilewright completion fish | source",
}
WAIT = 60.0  # seconds for a shell that does not answer


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of two workloads, and a command that notes its arguments."""
    with Database(tmp_path / "tuning.db") as database:
        for text in ("softmax r=4096 c=1000", "softmax r=4096 c=77"):
            made = Measurement(Schedule("rows", ()), Status.OK, 1e-3, started_at=1.0)
            database.record(Record(workload(text), detect_target("cpu"), "rows 1", made))
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin/tilewright"
    command.write_text(
        "#!/bin/sh\n"
        f'if [ -n "$_TILEWRIGHT_COMPLETE" ] || [ "$1" = completion ]; then\n'
        f'  exec {sys.executable} -m tilewright "$@"\n'
        f"fi\nprintf '%s\\n' \"$@\" > {tmp_path}/noted && mv {tmp_path}/noted {tmp_path}/ran\n"
    )
    command.chmod(0o755)
    return tmp_path


@pytest.fixture
def completed(folder, monkeypatch, capsys):
    """Gives the words that may stand at the end of a line. Shells, below, start the command."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("_TILEWRIGHT_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("COLUMNS", "9999")

    def words(line: str) -> list[str]:
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        with pytest.raises(SystemExit):
            run([])
        out, err = capsys.readouterr()
        assert err == ""
        return [word.partition("\t")[0] for word in out.splitlines() if word]

    return words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tilewright que", ["query"]),
        ("tilewright db st", ["stats"]),
        ("tilewright tune softm", ["softmax"]),
        ("tilewright tune softmax ", ["r=", "c=", "dtype="]),
        ("tilewright tune softmax r=8 ", ["c=", "dtype="]),
        ("tilewright query softmax c=", ["c=1000", "c=77"]),
        ("tilewright query softmax c=7", ["c=77"]),
        ("tilewright query softmax r=1 --db none.db c=", []),
        ("tilewright verify matmul b=", ["b=row", "b=col", "b=packed"]),
        ("tilewright tune nothing ", []),
        ("tilewright tune 'y[i] = x[i]' ", []),
        ("tilewright show softmax --target cuda:sm_9", ["cuda:sm_90a"]),
        ("tilewright tune --suite gpt", ["gpt-2"]),
        ("tilewright tune softmax --search iter", ["iterated-local"]),
        ("tilewright list --operator softm", ["softmax"]),
        ("tilewright completion z", ["zsh"]),
        ("tilewright export --sor", ["--sort"]),
    ],
)
def test_words_are_completed(completed, line, words):
    assert completed(line) == words


def test_a_database_that_cannot_be_read_at_once_is_passed_over(tmp_path):
    (tmp_path / "notes.txt").write_text("buy milk")
    for name in ("notes.txt", "none.db", "."):
        assert texts_of(tmp_path / name, "softmax") == []


@pytest.mark.parametrize("shell", sorted(QUIET))
def test_a_shell_completes_what_is_typed(folder, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    typed = "tilewright query softm\tr=4\tdt\tbf\t --targ\tcuda:sm_9\t\n"
    assert typed_in(shell, typed, folder) == [
        *("query", "softmax", "r=4096", "dtype=bfloat16", "--target", "cuda:sm_90a")
    ]


def typed_in(shell: str, keys: str, folder: Path) -> list[str]:
    """The arguments with which the command runs when these keys are pressed in a shell."""
    terminal, inside = pty.openpty()
    environment = os.environ | {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "PYTHONPATH": PATHS,
        "HOME": str(folder),
        "TERM": "xterm",
    }
    process = subprocess.Popen(
        QUIET[shell],
        env=environment,
        cwd=folder,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        preexec_fn=partial(os.login_tty, inside),  # a shell wants a terminal of its own
    )
    os.close(inside)
    os.set_blocking(terminal, False)
    shown = b""
    try:
        os.write(terminal, f"{SETUP[shell]}; touch ready\n".encode())
        for name, next_keys in (("ready", keys), ("ran", "")):
            until = time.monotonic() + WAIT
            while not (folder / name).exists():
                assert time.monotonic() < until, shown.decode(errors="replace")
                shown += drained(terminal)
                time.sleep(0.05)
            os.write(terminal, next_keys.encode())
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return (folder / "ran").read_text().splitlines()


def drained(terminal: int) -> bytes:
    """The output of a terminal so far, so that its writer never waits."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
