"""A process that has loaded large libraries, of which commands are forks, so that a test that runs
many commands loads them once.

Not for tests of how commands start or of what they load.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))
USUAL = ("scipy.sparse", "typer._adapters", "xgboost", "tilewright.measure.database")
"""What most commands load; the command line itself notes the time at which it is loaded."""
TORCH = (*USUAL, "torch._inductor.compile_fx")
"""Those, and PyTorch with its compiler."""
SERVER = "from tests.preloaded import serve; serve()"
CLIENT = """\
import array, json, os, signal, socket, sys
heard = signal.SIGHUP, signal.SIGINT, signal.SIGTERM
signal.pthread_sigmask(signal.SIG_BLOCK, heard)  # until there is who to pass them on to
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.environ["TESTS_PRELOADED"])
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    server.sendmsg([len(said).to_bytes(8, "little")], rights)
    server.sendall(said)
    worker = int.from_bytes(server.recv(4, socket.MSG_WAITALL), "little")
    for each in heard:
        signal.signal(each, lambda number, _: os.kill(worker, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, heard)
    code = int.from_bytes(server.recv(4, socket.MSG_WAITALL), "little", signed=True)
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""
"""Has the server run ``python`` with the same arguments, and ends as that ends."""


@contextlib.contextmanager
def preloaded(folder: Path, modules: Sequence[str]) -> Iterator[Path]:
    """A Python interpreter, an executable in ``folder``, that has loaded ``modules``. It takes
    ``-c TEXT`` or ``-m MODULE`` and words."""
    place, client, python = (folder / name for name in ("socket", "client.py", "python"))
    client.write_text(CLIENT)
    start = f'TESTS_PRELOADED="{place}" exec "{sys.executable}" -I -S "{client}" "$@"'
    python.write_text(f"#!/bin/sh\n{start}\n")
    python.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        command = [sys.executable, "-c", SERVER, str(listening.fileno()), *modules]
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": PATHS},
            pass_fds=[listening.fileno()],
            stdin=subprocess.PIPE,
        )
    try:
        yield python
    finally:
        server.communicate()


def serve() -> None:
    """Load what is asked for, and fork for each client until standard input ends."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1  # for a fork has only one of all threads
    pid = os.fork()
    if pid:
        sys.stdin.read()
        os.kill(pid, signal.SIGKILL)
        os._exit(0)
    while True:
        client, _ = listening.accept()
        if not os.fork():
            listening.close()
            _attend(client)
        client.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _attend(client: socket.socket) -> None:
    """Fork what the client wants; it is told the process's number, and how it ends."""
    size, rights, _, _ = client.recvmsg(8, socket.CMSG_SPACE(12))
    streams = array.array("i", rights[0][2])
    text = client.recv(int.from_bytes(size, "little"), socket.MSG_WAITALL)
    worker = os.fork()
    if not worker:
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        _run(*json.loads(text))
        sys.exit()
    for stream in streams:
        os.close(stream)
    client.sendall(worker.to_bytes(4, "little"))
    _, status = os.waitpid(worker, 0)
    with contextlib.suppress(BrokenPipeError):
        client.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
    os._exit(0)


def _run(words: list[str], folder: str, variables: dict[str, str]) -> None:
    """Be the interpreter that was started with these words."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    option, text, *more = words
    sys.argv, sys.path[0] = [option, *more], ""
    if option == "-m":  # which sets the name of the program
        runpy.run_module(text, run_name="__main__", alter_sys=True)
    else:
        exec(text, sys.modules["__main__"].__dict__)
