"""Whose failure a message tells of; the messages are those of real compilers."""

import pytest

from tilewright.measure.failures import compile_failure, diagnoses, status_of_old
from tilewright.measure.records.measurement import ErrorKind, Status

OF_THE_SOURCE = [
    "unit0.c:5:3: error: unknown type name 'this'",
    "unit12.c:7:1: internal compiler error: Segmentation fault",
    "unit0.c:(.text+0x9): undefined reference to `nowhere'",
    "/tmp/ccYpTz.s:12: Error: no such instruction: `vfoo %zmm0'",
    'kernel.cu(12): error: identifier "foo" is undefined',
    "ptxas error   : Entry function 'f' uses too much shared data",
    "there is no intrinsic tw::foo; see spaces/cuda/intrinsics",
]
OF_THE_MACHINE = [
    "",
    "No space left on device",
    "gcc: fatal error: Killed signal terminated program cc1",
    "unit0.c:1:1: fatal error: error writing to /tmp/ccX.s: No space left on device",
    "cc1: out of memory allocating 65536 bytes after a total of 1234 bytes",
    "virtual memory exhausted: Cannot allocate memory",
    "/usr/bin/ld: final link failed: No space left on device",
    "collect2: error: ld returned 1 exit status",
    "the compiler was killed by SIGKILL without a word",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "sh: 1: Cannot fork",
]


@pytest.mark.parametrize("text", OF_THE_SOURCE)
def test_a_diagnostic_points_into_the_source(text):
    assert diagnoses(text)
    assert compile_failure(f"{text}\ncompilation terminated.", False) is ErrorKind.COMPILE
    assert compile_failure(text, True) is ErrorKind.COMPILE_TIMEOUT


@pytest.mark.parametrize("text", OF_THE_MACHINE)
def test_all_else_is_the_machines(text):
    assert not diagnoses(text)
    assert compile_failure(text, False) is ErrorKind.COMPILER_LOST


@pytest.mark.parametrize(
    ("kind", "text", "status"),
    [
        *((ErrorKind.COMPILE, text, Status.ERROR) for text in OF_THE_SOURCE),
        *((ErrorKind.COMPILE, text, Status.LOST) for text in OF_THE_MACHINE),
        (ErrorKind.COMPILE_TIMEOUT, "compiled for too long", Status.LOST),
        (ErrorKind.DEVICE, "the measuring process ended early", Status.LOST),
        (ErrorKind.DEVICE, "malformed number of inputs", Status.LOST),
        (ErrorKind.TIMEOUT, "no end within 0.5 s", Status.LOST),
        (ErrorKind.MEMORY, "killed by the system", Status.LOST),
        (ErrorKind.MEMORY, "allocated more than the limit of 512 MiB", Status.ERROR),
        (ErrorKind.CRASH, "SIGSEGV", Status.ERROR),
        (ErrorKind.CRASH, "ended by itself with status 3", Status.ERROR),
        (ErrorKind.CRASH, "the measuring process ended by SIGKILL", Status.LOST),
        (ErrorKind.WRONG, "C[0, 0] is 1, expected 2", Status.ERROR),
        (ErrorKind.OUT_OF_BOUNDS, "wrote past the end", Status.ERROR),
        (ErrorKind.REJECTED, "the kernel spills 8 bytes of registers", Status.ERROR),
        (ErrorKind.DEADLOCK, "", Status.ERROR),
    ],
)
def test_old_failures_that_cannot_be_told_apart_are_tried_again(kind, text, status):
    assert status_of_old(kind, text) is status
