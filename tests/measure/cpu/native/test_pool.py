import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from pathlib import Path

import pytest

from tilewright.measure.cpu import pool
from tilewright.measure.cpu.pool import load_pool

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, TASK, ctypes.c_void_p)


class Runtime(ctypes.Structure):
    """As declared in spaces/cpu/abi.py."""

    _fields_ = (("parallel", PARALLEL), ("pool", ctypes.c_void_p))


def launch(threads, workers, body):
    runtime = ctypes.cast(load_pool(threads), ctypes.POINTER(Runtime)).contents
    runtime.parallel(runtime.pool, workers, TASK(lambda _, worker: body(worker)), None)


def native_threads():
    return len(os.listdir("/proc/self/task"))


def alone(code: str, *words: str, **environment: str) -> str:
    """What ``code`` prints in a process that has no threads but those of pools: here, what ran
    before may have left some, which begin and end at any time."""
    quiet = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", textwrap.dedent(code), *words]
    variables = os.environ | quiet | environment
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize("threads", [1, 2, 3, 200])
@pytest.mark.parametrize("workers", [0, 1, 2, 3, 7])
def test_every_worker_runs_once_before_the_launch_returns(threads, workers):
    for _ in range(50):
        ran = Counter()
        launch(threads, workers, lambda worker, ran=ran: ran.update([worker]))
        assert ran == Counter(range(workers))


def test_every_worker_gets_the_context():
    given = []
    task = TASK(lambda context, worker: given.append(context))
    runtime = ctypes.cast(load_pool(3), ctypes.POINTER(Runtime)).contents
    for context in (4096, 8192):
        runtime.parallel(runtime.pool, 3, task, context)
    assert given == [4096] * 3 + [8192] * 3


def test_workers_run_at_the_same_time():
    """Each waits for the other: one after the other they would never meet."""
    barrier = threading.Barrier(2)
    met = []
    launch(2, 2, lambda worker: met.append(barrier.wait(timeout=100)))
    assert sorted(met) == [0, 1]


def test_threads_outlive_the_launch():
    said = alone("""
        from tests.measure.cpu.native.test_pool import launch, native_threads
        launch(2, 2, lambda worker: None)
        before = native_threads()
        for _ in range(20):
            launch(2, 2, lambda worker: None)
        print(before, native_threads())
    """)
    assert said == "2 2\n"


def test_a_launch_within_a_launch_runs():
    ran = []
    launch(2, 2, lambda outer: launch(2, 2, lambda inner: ran.append((outer, inner))))
    assert sorted(ran) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_launches_from_many_threads_do_not_mix():
    errors = []

    def work():
        for _ in range(100):
            ran = Counter()
            launch(2, 5, lambda worker, ran=ran: ran.update([worker]))
            if ran != Counter(range(5)):
                errors.append(ran)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert errors == []


def test_a_forked_child_has_threads_of_its_own():
    launch(2, 2, lambda worker: None)
    child = os.fork()
    if child == 0:
        barrier = threading.Barrier(2)
        try:
            launch(2, 2, lambda worker: barrier.wait(timeout=100))
            os._exit(0 if native_threads() == 2 else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    launch(2, 2, lambda worker: None)


def test_a_child_forked_in_the_middle_of_a_launch_launches_too():
    """Whatever the thread that launched held: it is not there to let go. The task is C's, since
    Python forks badly while threads come to call it."""
    task = ctypes.cast(ctypes.CDLL(None).abs, TASK)
    runtime = ctypes.cast(load_pool(2), ctypes.POINTER(Runtime)).contents
    over = threading.Event()

    def work():
        while not over.is_set():
            runtime.parallel(runtime.pool, 2, task, None)

    launching = threading.Thread(target=work)
    launching.start()
    try:
        for _ in range(50):
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(250)
                runtime.parallel(runtime.pool, 2, task, None)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        launching.join()


REFUSING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
int threads_left = 1 << 20;
typedef void *body(void *);
typedef int create(pthread_t *, const pthread_attr_t *, body *, void *);
int pthread_create(pthread_t *thread, const pthread_attr_t *how, body *run, void *own) {
  if (threads_left-- <= 0) return EAGAIN;
  return ((create *)dlsym(RTLD_NEXT, "pthread_create"))(thread, how, run, own);
}
"""

SHORT_OF_THREADS = """
import ctypes, sys
from collections import Counter
from tests.measure.cpu.native.test_pool import launch, native_threads
ctypes.c_int.in_dll(ctypes.CDLL(None), "threads_left").value = int(sys.argv[1])
for workers in (2, 3, 4, 9):
    ran = Counter()
    launch(4, workers, lambda worker: ran.update([worker]))
    assert ran == Counter(range(workers)), ran
print(native_threads())
"""


@pytest.mark.parametrize("given", [0, 1, 2])
def test_every_worker_runs_where_the_system_gives_fewer_threads(tmp_path, given):
    """Under a process limit, say."""
    source, library = tmp_path / "refusing.c", tmp_path / "refusing.so"
    source.write_text(REFUSING)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    assert int(alone(SHORT_OF_THREADS, str(given), LD_PRELOAD=str(library))) == 1 + given


def test_woken_threads_may_run_where_they_might_before():
    """A launch bars sleepers from the caller's CPU, for as long as it takes to wake them."""
    alone("""
        import os, time
        from tests.measure.cpu.native.test_pool import launch
        launch(5, 5, lambda worker: None)
        threads = os.listdir("/proc/self/task")
        assert len(threads) == 5
        for _ in range(5):
            time.sleep(0.02)
            launch(5, 5, lambda worker: None)
            for thread in threads:
                assert os.sched_getaffinity(int(thread)) == os.sched_getaffinity(0)
    """)


def test_idle_threads_fall_asleep_and_use_no_time():
    alone("""
        import os, time
        from tests.measure.cpu.native.test_pool import launch
        launch(3, 3, lambda worker: None)
        threads = [thread for thread in os.listdir("/proc/self/task") if int(thread) != os.getpid()]
        assert len(threads) == 2
        def fields():
            for thread in threads:
                with open(f"/proc/self/task/{thread}/stat") as stat:
                    yield stat.read().rpartition(")")[2].split()
        while any(state != "S" for state, *_ in fields()):
            time.sleep(0.01)
        before = [own[11:13] for own in fields()]  # processor time, in ticks
        time.sleep(0.3)
        assert [own[11:13] for own in fields()] == before
    """)


HELD = """
#include <signal.h>
#include <unistd.h>
#include "pool.c"

static atomic_int held, let_go;
static int by_caller, by_others;
static pthread_t caller;

static void hold(int number) {
  (void)number;
  held = 1;
  while (!let_go) usleep(100);
}

static void count(void *context, int worker) {
  (void)context, (void)worker;
  ++*(pthread_equal(pthread_self(), caller) ? &by_caller : &by_others);
}

/* How many of 5 workers the caller runs while the pool's only thread is kept from its core. */
int alone(void) {
  tw_runtime *runtime = tw_runtime_create(2, NULL);
  caller = pthread_self();
  signal(SIGUSR1, hold);
  alarm(100);
  runtime->parallel(runtime->pool, 2, count, NULL);
  pthread_kill(runtime->pool->handles[1], SIGUSR1);
  while (!held) usleep(100);
  by_caller = by_others = 0;
  runtime->parallel(runtime->pool, 5, count, NULL);
  int found = by_caller;
  let_go = 1;
  for (int launches = 0; launches < 1000; launches++) {
    by_caller = by_others = 0;
    runtime->parallel(runtime->pool, 2, count, NULL);
    if (by_caller + by_others != 2) return -1;
  }
  return found;
}
"""


def including_pool(text: str, folder: Path) -> Path:
    """A library of C ``text`` that includes pool.c."""
    source, library = folder / "with_pool.c", folder / "with_pool.so"
    source.write_text(text)
    flags = ["-D_GNU_SOURCE", "-pthread", f"-I{Path(pool.__file__).parent / 'native/threads'}"]
    subprocess.run(["gcc", "-shared", "-fPIC", *flags, "-o", library, source], check=True)
    return library


def test_nobody_waits_for_a_thread_that_is_kept_from_its_core(tmp_path):
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).alone())"
    assert int(alone(code, str(including_pool(HELD, tmp_path)))) == 5


SHORT_OF_MEMORY = """
#include <stdlib.h>

static int left;

static void *request(size_t bytes) { return left-- ? calloc(1, bytes) : NULL; }

#define malloc(bytes) request(bytes)
#define calloc(count, bytes) request((count) * (bytes))
#include "pool.c"

tw_runtime *create_after(int granted) {
  left = granted;
  return tw_runtime_create(2, NULL);
}
"""


def test_a_pool_is_whole_or_none_where_memory_is_refused_once(tmp_path):
    create = ctypes.CDLL(str(including_pool(SHORT_OF_MEMORY, tmp_path))).create_after
    create.restype = ctypes.c_void_p
    assert [bool(create(granted)) for granted in range(6)] == [False] * 5 + [True]
