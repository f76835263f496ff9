"""Faults injected for real: each costs one record of the right kind, and the next one runs."""

import re

import pytest

from measure.cpu.builder import CBuilder
from measure.cpu.runner import CRunner
from measure.measurement import ErrorKind
from tests.measure.cpu.c_kernels import candidate, good, product, target

GROW = """
  for (;;) {
    char *block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
    __asm__ volatile("" : : "r"(block) : "memory");
  }
"""
RECURSE = "static long dive(volatile long *x) { volatile long y = *x; return dive(&y) + y; }"
SIZE = product().output.size

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
    builder, runner = CBuilder(target()), CRunner(target())
    measured = runner.run(faulty.job, builder.build([good("before"), faulty, good("after")]))
    runner.close()
    builder.close()
    assert [m.ok for m in measured] == [True, False, True], [m.error_text for m in measured]
    assert measured[1].error_kind is kind, measured[1].error_text
    assert text in measured[1].error_text or re.search(text, measured[1].error_text)


def test_a_fault_of_a_pool_thread_costs_one_record():
    task = "static void task(void *c, int w) { if (w) *(volatile int *)16 = 1; }"
    call = "runtime->parallel(runtime->pool, 2, task, NULL);"
    on = target(min(2, target().cores))
    builder, runner = CBuilder(on), CRunner(on)
    faulty = candidate("faulty", call, on=on, outside=task)
    measured = runner.run(faulty.job, builder.build([good("a"), faulty, good("b")]))
    runner.close()
    builder.close()
    assert [m.error_kind for m in measured] == [None, ErrorKind.CRASH, None]


def test_a_fault_while_timing_costs_one_record():
    """Right in both checked calls, then it crashes."""
    late = candidate("late", lambda p: f"static int n; {p} if (n++ > 1) abort();")
    builder, runner = CBuilder(target()), CRunner(target())
    measured = runner.run(late.job, builder.build([good("before"), late, good("after")]))
    runner.close()
    builder.close()
    assert [m.error_kind for m in measured] == [None, ErrorKind.CRASH, None]
    assert measured[1].score is None
