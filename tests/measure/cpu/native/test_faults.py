"""Faults injected for real: each costs one record of the right kind, and the next one runs."""

import re

import pytest

from tests.measure.cpu.c_kernels import candidate, good, measured, naive, product, target
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.spaces.epilogue.expression import MAX_OPERANDS

GROW = """
  for (;;) {
    char *block = malloc(1 << 20);
    *(volatile char *)block = 1;
  }
"""
RECURSE = "static long dive(volatile long *x) { volatile long y = *x; return dive(&y) + y; }"
SIZE = product().outputs[0].size
FAULTS = {
    "segfault": (candidate("f", "*(volatile int *)16 = 1;"), ErrorKind.CRASH, "SIGSEGV"),
    "abort": (candidate("f", "abort();"), ErrorKind.CRASH, "SIGABRT"),
    "trap": (candidate("f", "__builtin_trap();"), ErrorKind.CRASH, "SIGILL"),
    "exit": (candidate("f", "exit(3);"), ErrorKind.CRASH, "ended by itself with status 3"),
    "endless recursion": (
        candidate("f", "volatile long x = 1; x = dive(&x);", outside=RECURSE),
        ErrorKind.CRASH,
        "SIGSEGV",
    ),
    "endless loop": (
        candidate("f", 'for (;;) __asm__ volatile("");'),
        ErrorKind.TIMEOUT,
        "no end within",
    ),
    "memory": (candidate("f", GROW), ErrorKind.MEMORY, "more than the limit of 512 MiB"),
    "write past the output": (
        candidate("f", lambda product: f"{product} C[{SIZE}] = 1;"),
        ErrorKind.OUT_OF_BOUNDS,
        "C 1 bytes past its end",
    ),
    "write far past the output": (
        candidate("f", "for (long i = 0;; i++) ((volatile float *)buffers[2])[i] = 1;"),
        ErrorKind.OUT_OF_BOUNDS,
        "C 1 bytes past its end",
    ),
    "write before the output": (
        candidate("f", lambda product: f"{product} C[-1] = 1;"),
        ErrorKind.OUT_OF_BOUNDS,
        "C 4 bytes before its start",
    ),
    "write far before the output": (
        candidate("f", "for (long i = 0;; i--) ((volatile float *)buffers[2])[i] = 1;"),
        ErrorKind.OUT_OF_BOUNDS,
        "before its start",
    ),
    "write past the workspace": (
        candidate("f", lambda p: f"{p} ((char *)workspace)[100] = 1;", workspace_bytes=100),
        ErrorKind.OUT_OF_BOUNDS,
        "the workspace 1 bytes past its end",
    ),
    "read far past an input": (
        candidate("f", "volatile float x = ((float *)buffers[0])[1 << 17];"),
        ErrorKind.OUT_OF_BOUNDS,
        "A 51",
    ),
    "read of slack": (
        candidate("f", lambda p: f"{p} C[1] += ((float *)buffers[0])[-1];"),
        ErrorKind.WRONG,
        "C[0, 1] is nan",
    ),
    "write to an input": (
        candidate("f", lambda p: f"{p} ((volatile float *)buffers[1])[3] = 1;"),
        ErrorKind.OUT_OF_BOUNDS,
        "wrote to B, which is read-only, at byte 12",
    ),
    "wrong result": (
        candidate("f", lambda product: f"{product} C[45] += 1;"),
        ErrorKind.WRONG,
        r"C\[1, 5\] is .*, expected .* \(1 of 1920 elements wrong, call 1\)",
    ),
    "not a number": (
        candidate("f", lambda product: f"{product} C[45] = 0.0f / (C[45] - C[45]);"),
        ErrorKind.WRONG,
        "is nan",
    ),
    "unwritten output": (
        candidate("f", lambda p: p.replace("C[m", "if (m != 7) C[m")),
        ErrorKind.WRONG,
        r"C\[7, 0\] left unwritten, or read \(40 of 1920",
    ),
    "adds to the output": (
        candidate("f", lambda p: p.replace("= sum", "+= sum")),
        ErrorKind.WRONG,
        "left unwritten",
    ),
    "right only once": (
        candidate("f", lambda p: f"static int calls; {p} if (calls++) C[3] = 9;"),
        ErrorKind.WRONG,
        "call 2",
    ),
    "writes on its first call only": (
        candidate("f", lambda p: f"static int calls; if (calls++) return; {p}"),
        ErrorKind.WRONG,
        r"left unwritten, or read \(1920 of 1920 elements wrong, call 2\)",
    ),
    "writes twice only": (
        candidate("f", lambda p: f"static int calls; if (calls++ > 1) return; {p}"),
        ErrorKind.WRONG,
        r"left unwritten, or read \(\d+ of 1920 elements wrong, last call\)",
    ),
    "wrong from its fifth call on": (
        candidate("f", lambda p: f"static int calls; {p} if (calls++ > 3) C[7] += 1;"),
        ErrorKind.WRONG,
        r"C\[0, 7\] is .*\(1 of 1920 elements wrong, last call\)",
    ),
    "relies on clean workspace": (
        candidate("f", lambda p: f"{p} C[0] += ((float *)workspace)[5];", workspace_bytes=64),
        ErrorKind.WRONG,
        "is nan",
    ),
    "undefined function": (
        candidate("f", "extern void nowhere(void); nowhere();"),
        ErrorKind.COMPILE,
        "nowhere",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_costs_one_record_and_the_next_candidate_runs(fault):
    faulty, kind, text = FAULTS[fault]
    found = measured([good("before"), faulty, good("after")])
    assert [m.ok for m in found] == [True, False, True], [m.error_text for m in found]
    assert found[1].status is Status.ERROR
    assert found[1].error_kind is kind, found[1].error_text
    assert text in found[1].error_text or re.search(text, found[1].error_text)


def bytes_of(m: int, n: int):
    """A product of int8 elements, of which an output's last byte may stand alone."""
    return product(m, n, 1, dtype="int8", out="int8")


SMALL = {
    "a byte before the output": (
        candidate("f", lambda p: f"{p} C[-1] = 1;", bytes_of(3, 5)),
        "C 1 bytes before its start",
    ),
    "a byte before the workspace": (
        candidate("f", lambda p: f"{p} ((char *)workspace)[-1] = 1;", workspace_bytes=64),
        "the workspace 1 bytes before its start",
    ),
    "the last byte before the rear guard": (
        candidate("f", lambda p: f"{p} C[63] = 1;", bytes_of(1, 3)),
        "C 61 bytes past its end",
    ),
    "the first byte after the front guard": (
        candidate("f", lambda p: f"{p} C[64 - 65536] = 1;", bytes_of(8, 8)),
        "C 65472 bytes before its start",
    ),
}


@pytest.mark.parametrize("fault", SMALL)
def test_a_single_byte_outside_is_seen(fault):
    faulty, text = SMALL[fault]
    [found] = measured([faulty])
    assert found.error_kind is ErrorKind.OUT_OF_BOUNDS
    assert text in found.error_text


@pytest.mark.parametrize(("m", "n"), [(1, 3), (5, 7), (1, 1)])
def test_a_last_element_left_unwritten_is_seen_whatever_the_size(m, n):
    work = bytes_of(m, n)
    leave = f"signed char last = C[{m * n - 1}]; %s C[{m * n - 1}] = last;"
    whole = "signed char *C = buffers[2];"

    def body(naive: str) -> str:
        inner = naive.replace("signed char *C = buffers[2];", "")
        return f"{whole} {leave.replace('%s', inner)}"

    [found] = measured([candidate("f", body, work)])
    assert found.error_kind is ErrorKind.WRONG, found
    assert "left unwritten" in found.error_text


def test_a_finalist_is_checked_once_more_too():
    late = candidate("late", lambda p: f"static int n; {p} if (n++ > 6) C[3] += 1;")
    [found] = measured([late], final=True)
    assert found.error_kind is ErrorKind.WRONG
    assert "last call" in found.error_text


def test_as_many_operands_as_an_epilogue_may_have_are_taken():
    names = [f"a{i}[]" for i in range(MAX_OPERANDS)]
    sums = [" + ".join(names[i : i + 16]) for i in range(0, MAX_OPERANDS, 16)]
    work = product(5, 7, 9, epilogue=" + ".join(["x", *(f"({s})" for s in sums)]))
    adding = "".join(f" + *(float *)buffers[{i + 2}]" for i in range(MAX_OPERANDS))
    body = naive(product(5, 7, 9)).replace("buffers[2]", f"buffers[{MAX_OPERANDS + 2}]")
    [found] = measured([candidate("f", body.replace("= sum;", f"= sum{adding};"), work)])
    assert found.ok, found.error_text


def test_a_fault_of_a_pool_thread_costs_one_record():
    task = "static void task(void *c, int w) { if (w) *(volatile int *)16 = 1; }"
    call = "runtime->parallel(runtime->pool, 2, task, NULL);"
    on = target(min(2, target().cores))
    faulty = candidate("faulty", call, on=on, outside=task)
    found = measured([faulty, good("a"), good("b")])
    assert [m.error_kind for m in found] == [ErrorKind.CRASH, None, None]


def test_a_fault_while_timing_costs_one_record():
    """Right in both checked calls, then it crashes."""
    late = candidate("late", lambda p: f"static int n; {p} if (n++ > 1) abort();")
    found = measured([good("before"), late, good("after")])
    assert [m.error_kind for m in found] == [None, ErrorKind.CRASH, None]
    assert found[1].score is None
