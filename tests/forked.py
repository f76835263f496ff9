"""Commands and programs as forks of a process that has loaded what they take seconds to load.

``python -m tests.forked PATH MODULES`` is that process, which has loaded these modules, too. It
listens at a socket of that path and ends with its standard input. :mod:`tests.forked_client` is
what stands in for a command: it has the arguments, the folder, the environment, the standard
streams and the signals of one.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))
CLIENT = Path(__file__).with_name("forked_client.py")
LOADED = (
    "alembic.command",
    "pydantic.types",
    "scipy.special",
    "tilewright.costmodel.model",
    "tilewright.costmodel.stacked",
    "tilewright.measure.database",
    "tilewright.measure.cpu.builder",
    "tilewright.measure.cpu.runner",
    "tilewright.measure.drawing.further_draws",
    "tilewright.measure.executor",
    "tilewright.scheduler.best",
    "tilewright.scheduler.cli.display.choice",
    "tilewright.scheduler.strategies.second_opinion",
    "tilewright.scheduler.tuning.tuner",
    "typer._adapters",
    "xgboost",
)
"""Modules that are loaded beside all commands. None of them starts a thread."""
PYTORCH = (
    "torch._inductor.compile_fx",
    "torch.export._trace",
    "tilewright.scheduler.torch.backend",
)
"""Modules that take seconds to load, which programs of PyTorch need."""

Program = Callable[[], None]


@cache
def client(*modules: str) -> str:
    """The shell's words that run a fork which has loaded ``modules``, to which arguments are added:
    ``-c`` and a text that is executed with further ones, or those of the command line."""
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "socket"
    command = [sys.executable, "-m", "tests.forked", str(path), *modules]
    server = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": PATHS},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin
    assert server.stdout
    for end in (folder.cleanup, server.wait, server.stdin.close):  # the last one first
        atexit.register(end)
    assert server.stdout.read() == b"ready\n"
    return f'"{sys.executable}" -I -S "{CLIENT}" "{path}"'


def serve(path: str, *modules: str) -> Program:
    """Fork for each client until standard input ends; return what a fork is to run, in it."""
    load(modules)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(64)
    print("ready", flush=True)
    os.dup2(2, 1)  # whoever waits for it reads no more
    threading.Thread(target=end_with_input, daemon=True).start()
    threading.Thread(target=reap, daemon=True).start()
    while True:
        asking, _ = listening.accept()
        if not os.fork():
            listening.close()
            return supervised(asking)
        asking.close()


def load(modules: Sequence[str]) -> None:
    """Import what programs have in common, and these modules."""
    from tilewright.scheduler.cli.app import app

    app([])
    for name in (*LOADED, *modules):
        importlib.import_module(name)
    from tilewright.spaces.cpu.templates import TEMPLATES

    list(TEMPLATES.values())
    gc.freeze()  # no fork looks for garbage in what it shares with this process


def reap() -> None:
    """Take leave of forks as they end, so that none stays as a zombie."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.05)


def end_with_input() -> None:
    """End this process as soon as nobody holds its standard input."""
    os.read(0, 1)
    os._exit(0)


def supervised(asking: socket.socket) -> Program:
    """Fork once more, and tell the client how that ended; return what is to run, in the fork."""
    message, streams, *_ = socket.recv_fds(asking, 1 << 20, 3)
    while not message.endswith(b"\n"):
        message += asking.recv(1 << 20)
    request = json.loads(message)
    fork = os.fork()
    if not fork:
        asking.close()
        return prepared(request, streams)
    for stream in streams:
        os.close(stream)
    threading.Thread(target=end_with_client, args=(asking, fork), daemon=True).start()
    with suppress(OSError):  # the client is gone
        asking.sendall(b"%d\n" % fork)
    _, status = os.waitpid(fork, 0)
    with suppress(OSError):
        asking.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def end_with_client(asking: socket.socket, fork: int) -> None:
    """Kill a fork whose client is gone."""
    with suppress(OSError):
        asking.recv(1)
    with suppress(ProcessLookupError):
        os.kill(fork, signal.SIGKILL)


def prepared(request: dict, streams: list[int]) -> Program:
    """Make this fork what a new process would be, and return what it runs."""
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    os.closerange(3, 1 << 10)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["variables"])
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115
        2, "w", 1, errors="backslashreplace", closefd=False
    )
    words = request["arguments"]
    if words[:1] == ["-c"]:
        sys.argv, sys.path[0] = ["-c", *words[2:]], ""
        return lambda: execute(words[1])
    sys.argv, sys.path[0] = ["tilewright", *words], os.getcwd()
    return command


def command() -> None:
    """Run the command line."""
    import time

    from tilewright.scheduler import cli

    cli.BEGAN = time.monotonic()
    cli.main()


def execute(text: str) -> None:
    """Run a program's text as the main module."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(text, "<string>", "exec"), main.__dict__)


def run_and_end(program: Program) -> None:
    """Run a program, and end as a process does that need not take its modules apart: a fork would
    copy them for that, which takes longer than many a command."""
    code = 0
    try:
        program()
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):  # it is to be printed
            raise
        code = ended.code or 0
    threading._shutdown()
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # Python says what is wrong with a stream
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)
    sys.exit(code)


if __name__ == "__main__":
    run_and_end(serve(*sys.argv[1:]))
