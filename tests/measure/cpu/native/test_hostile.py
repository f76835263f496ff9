"""Candidates that attack the processes which measure them, and servers that end."""

import threading
import time
from contextlib import suppress

import psutil
import pytest

from tests.measure.cpu.c_kernels import PRELUDE, candidate, good, measured
from tests.measure.sleepers import gone
from tilewright.measure.cpu import runner as cpu_runner
from tilewright.measure.records.measurement import ErrorKind, Status

SIGNALS = "#include <signal.h>\n#include <unistd.h>\n" + PRELUDE
HOSTILE = {
    "kills its parent": ("kill(getppid(), SIGKILL); pause();", ErrorKind.CRASH),
    "stops its parent": ("kill(getppid(), SIGSTOP); pause();", ErrorKind.CRASH),
    "kills itself": ("kill(getpid(), SIGKILL);", ErrorKind.MEMORY),
    "stops itself": ("kill(getpid(), SIGSTOP);", ErrorKind.TIMEOUT),
}


@pytest.mark.parametrize("act", HOSTILE)
def test_who_attacks_the_measuring_processes_stands_alone_in_the_end(act):
    body, kind = HOSTILE[act]
    names = [f"good{i}" for i in range(6)]
    candidates = [good(name) for name in names]
    candidates.insert(3, candidate("hostile", body, prelude=SIGNALS))
    found = measured(candidates)
    said = [m.error_text for m in found]
    assert [m.ok for m in found] == [True] * 3 + [False] + [True] * 3, said
    assert (found[3].status, found[3].error_kind) == (Status.ERROR, kind), found[3].error_text


FORGE = """
  static int calls;
  if (calls++ == CALL) {
    char junk[4096];
    memset(junk, BYTE, sizeof junk);
    for (int file = 3; file < 64; file++) write(file, junk, sizeof junk);
  }
"""


@pytest.mark.parametrize("byte", ["0", "0x41", "0xff"])
@pytest.mark.parametrize("call", ["0", "2"])
def test_who_writes_to_all_descriptors_forges_no_time(call, byte):
    body = FORGE.replace("CALL", call).replace("BYTE", byte)
    forger = candidate("forges", lambda p: body + p, prelude=SIGNALS)
    found = measured([good("a"), forger, good("b")])
    assert [m.ok for m in found] == [True, False, True]
    assert found[1].status is Status.ERROR
    assert found[1].error_text == "its process answered what nobody had asked"


def test_a_candidate_holds_no_channels_of_others():
    """Or it could give them orders."""
    count = 'DIR *d = opendir("/proc/self/fd"); int n = 0; while (readdir(d)) n++; exit(n);'
    includes = "#include <dirent.h>\n" + PRELUDE
    counts = candidate("counts", count, prelude=includes)
    alone = measured([counts])[0].error_text
    last = measured([*(good(f"g{i}") for i in range(6)), counts])[6].error_text
    assert alone.startswith("ended by itself with status ")
    assert last == alone


def servers_at_work() -> list[psutil.Process]:
    """The measuring servers of this process that have candidates' processes by now."""
    found = []
    for keeper in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            servers = [p for p in keeper.children() if p.name().startswith("server")]
            found += [server for server in servers if server.children()]
    return found


def test_a_process_that_hides_in_a_session_of_its_own_is_ended():
    hide = """
  static int hidden;
  if (!hidden++ && !fork()) {
    setsid();
    if (!fork()) execlp("sleep", "sleep", "4005", NULL);
    _exit(0);
  }
"""
    [found] = measured([candidate("hides", lambda p: hide + p, prelude=SIGNALS)])
    assert found.ok
    assert gone("4005")


def test_a_batch_loses_nothing_when_its_server_is_killed_from_outside():
    """As an out-of-memory killer does, time and again."""
    killed = 0

    def kill() -> None:
        nonlocal killed
        while killed < 3:
            time.sleep(0.05)
            for server in servers_at_work()[: 3 - killed]:
                with suppress(psutil.NoSuchProcess):
                    server.kill()
                    server.wait()
                    killed += 1

    thread = threading.Thread(target=kill)
    thread.start()
    while thread.is_alive():
        found = measured([good(f"g{i}") for i in range(16)], final=True)
        assert all(m.ok for m in found), [m.error_text for m in found]
    assert killed == 3


def test_a_server_that_cannot_run_loses_everything_to_the_machine(tmp_path, monkeypatch):
    """As a damaged file of the cache does."""
    broken = tmp_path / "server"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr(cpu_runner, "server_binary", lambda: broken)
    found = measured([good("a"), good("b")])
    assert [m.status for m in found] == [Status.LOST, Status.LOST]
    assert [m.error_kind for m in found] == [ErrorKind.DEVICE, ErrorKind.DEVICE]
    assert found[0].error_text == "the measuring process does not start"
