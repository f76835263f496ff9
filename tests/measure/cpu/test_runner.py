import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import numpy as np
import pytest

from tests.measure.cpu import c_kernels
from tests.measure.cpu.c_kernels import candidate, product, target
from tilewright.measure.cpu import runner as cpu_runner
from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.cores import one_cpu_per_core, pinned_to
from tilewright.measure.cpu.problem import index_of
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.records.measurement import ErrorKind, Status
from tilewright.measure.testing.runner import RunnerContract
from tilewright.spaces.workloads.matmul import Operand


class TestCRunner(RunnerContract):
    clock = "cpu"
    threads = 1

    def make(self):
        return CRunner(target(self.threads))

    def make_builder(self):
        return CBuilder(target(self.threads))

    def good(self, name):
        return c_kernels.good(name)

    def wrong(self, name):
        return c_kernels.wrong(name)

    def crashing(self, name):
        return c_kernels.crashing(name)

    def broken(self, name):
        return c_kernels.broken(name)

    def slow(self, name):
        return c_kernels.slow(name)


@pytest.mark.skipif(c_kernels.target().cores < 2, reason="needs two cores")
class TestCRunnerOfTwoThreads(TestCRunner):
    clock = "wall"
    threads = 2


def measure(candidates, threads=1, **options):
    builder, runner = CBuilder(target(threads)), CRunner(target(threads))
    try:
        job = replace(candidates[0].job, **options)
        return runner.run(job, builder.build(candidates))
    finally:
        runner.close()
        builder.close()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8"])
@pytest.mark.parametrize("layout", [{}, {"a": "col", "b": "col", "c": "col"}])
def test_every_dtype_and_layout_is_compared(dtype, layout):
    work = product(33, 17, 21, dtype=dtype, **layout)
    off = {"int8": "1"}.get(dtype, "0.25")
    right, wrong = measure(
        [
            c_kernels.good("right", work),
            candidate("wrong", lambda product: f"{product} C[19] += {off};", work),
        ]
    )
    assert right.ok, right.error_text
    assert wrong.error_kind is ErrorKind.WRONG
    row, column = (19, 0) if layout else (1, 2)
    assert f"C[{row}, {column}]" in wrong.error_text
    assert "(1 of 561 elements wrong, call 1)" in wrong.error_text


def test_bfloat16_is_compared():
    work = product(33, 17, 21, out="bfloat16")
    rounded = """
static unsigned short rounded(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
"""

    def kernel(name: str, then: str = ""):
        return candidate(
            name, lambda p: p.replace("= sum", "= rounded(sum)") + then, work, outside=rounded
        )

    right, wrong = measure([kernel("right"), kernel("wrong", "C[19] ^= 0x4000;")])
    assert right.ok, right.error_text
    assert wrong.error_kind is ErrorKind.WRONG
    assert "C[1, 2]" in wrong.error_text


def test_a_position_in_memory_is_turned_into_the_index():
    operand = Operand("T", "float32", (2, 3, 5), (2, 0, 1), axes=("a", "b", "c"))
    values = np.arange(30.0).reshape(2, 3, 5)
    flat = values.transpose(operand.order).reshape(-1)
    for position, value in enumerate(flat):
        assert values[index_of(position, operand)] == value


def test_threads_of_the_pool_share_the_work():
    rows = c_kernels.naive(product()).replace("m = 0; m < 48;", "m = w * 12; m < w * 12 + 12;")
    unpack = "void *const *buffers = c;"
    task = f"static void task(void *c, int w) {{ {unpack} {rows} }}"
    call = "runtime->parallel(runtime->pool, 4, task, (void *)buffers);"
    on = target(min(2, target().cores))
    [measured] = measure([candidate("threaded", call, on=on, outside=task)], on.threads)
    assert measured.ok, measured.error_text


@pytest.mark.skipif(target().cores < 2, reason="needs two cores")
def test_timed_threads_have_a_core_each():
    task = """
static int cpu[2];
static _Atomic int begun;
static void task(void *c, int w) { /* each waits for the other, so that no thread runs both */
  cpu_set_t set;
  for (int mine = ++begun; begun < (mine + 1) / 2 * 2;) continue;
  sched_getaffinity(0, sizeof set, &set);
  if (CPU_COUNT(&set) != 1) abort();
  cpu[w] = sched_getcpu();
}
"""
    call = "runtime->parallel(runtime->pool, 2, task, 0); if (cpu[0] == cpu[1]) abort();"
    includes = "#define _GNU_SOURCE\n#include <sched.h>\n" + c_kernels.PRELUDE
    on = target(2)
    pinned = candidate("pinned", lambda p: call + p, on=on, outside=task, prelude=includes)
    [measured] = measure([pinned], threads=2)
    assert measured.ok, measured.error_text


def test_pinning_ends_with_its_block():
    before = os.sched_getaffinity(0)
    cpus = one_cpu_per_core()
    assert set(cpus) <= before
    assert len(cpus) == target().cores
    with pinned_to(cpus[-1]):
        assert os.sched_getaffinity(0) == {cpus[-1]}
    assert os.sched_getaffinity(0) == before


def test_workspace_is_aligned_and_zeroed_as_far_as_asked_for():
    check = """
  static int calls;
  if ((unsigned long)workspace & 63) abort();
  for (int i = 0; !calls && i < 1000; i++)
    if ((((char *)workspace)[i] == 0) != (i < 300)) abort();
  calls++;
"""
    options = {"workspace_bytes": 1000, "workspace_zeroed": 300}
    [measured] = measure([candidate("checks", lambda p: check + p, **options)])
    assert measured.ok, measured.error_text


def test_inputs_are_fresh_in_every_run():
    """The same wrong element is expected to be something else."""
    answers = {m.error_text for _ in range(2) for m in measure([c_kernels.wrong()])}
    assert len(answers) == 2


def test_the_best_of_the_batch_cuts_the_slow_ones_short():
    measured = measure([c_kernels.good("a"), c_kernels.slow("b"), c_kernels.good("c")])
    assert [m.status for m in measured] == [Status.OK, Status.SLOW, Status.OK]


def test_a_hang_ends_at_ten_times_the_best():
    [hung] = measure([c_kernels.hanging()], best=0.06)  # twice that when it is checked
    assert hung.error_kind is ErrorKind.TIMEOUT
    assert "no end within 1.2 s" in hung.error_text


def test_close_from_another_thread_ends_a_run(monkeypatch):
    """A run whose calls may take minutes, once its inputs are drawn."""
    builder, runner = CBuilder(target()), CRunner(target())
    built, plan, drawn = builder.build([c_kernels.hanging()]), runner._plan, threading.Event()

    def planned(*given):
        drawn.set()
        return plan(*given)

    def close() -> None:
        assert drawn.wait(200)
        runner.close()

    monkeypatch.setattr(runner, "_plan", planned)

    thread = threading.Thread(target=close)
    thread.start()
    [measured] = runner.run(replace(built[0].candidate.job, best=60.0), built)
    assert measured.lost
    assert measured.error_kind is not ErrorKind.TIMEOUT, "which is the kernel's fault"
    thread.join()
    builder.close()


def test_closing_does_not_wait_until_the_measuring_process_is_built(monkeypatch):
    """As it is at the first run of a machine."""
    builder, runner, build = CBuilder(target()), CRunner(target()), cpu_runner.server_binary
    began, may_end = threading.Event(), threading.Event()

    def slowly():
        began.set()
        assert may_end.wait(200)
        return build()

    monkeypatch.setattr(cpu_runner, "server_binary", slowly)
    built = builder.build([c_kernels.good()])
    with ThreadPoolExecutor(2) as threads:
        running = threads.submit(runner.run, built[0].candidate.job, built)
        assert began.wait(200)
        closing = threads.submit(runner.close)
        done, _ = wait([closing], timeout=60)
        may_end.set()
        assert done
        with pytest.raises(RuntimeError, match="closed"):
            running.result()
    builder.close()
