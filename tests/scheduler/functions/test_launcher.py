"""What starts a launch again: the same in Python and in C, and where there is no C."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
from contextlib import suppress
from types import SimpleNamespace

import pytest
import torch

from tests.scheduler.functions.headers import needs_header
from tilewright.scheduler.functions import launcher
from tilewright.scheduler.functions.cuda_arrays import TensorGuards
from tilewright.scheduler.functions.launcher import PreparedCall, PreparedCalls, compiled_start

DRIVER = """
#include <unistd.h>

typedef struct { int status, wait, calls; void *function, *parameters, *extra; } Call;

int launch(Call *call, void *function, void *parameters, void *extra) {
  for (int i = 0; *(volatile int *)&call->wait; i++) {
    if (i == 5000) return -1;
    usleep(1000);
  }
  call->function = function;
  call->parameters = parameters;
  call->extra = extra;
  __atomic_add_fetch(&call->calls, 1, __ATOMIC_SEQ_CST);
  return call->status;
}

int watch(unsigned long stream, int *captured) {
  *captured = stream == 80;
  return stream == 96 ? 900 : 0;
}
"""


class Call(ctypes.Structure):
    """What one launch is to do, and what the driver was given."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("status", "wait", "calls")),
        *((name, ctypes.c_void_p) for name in ("function", "parameters", "extra")),
    )


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    folder.joinpath("driver.c").write_text(DRIVER)
    command = ["gcc", "-O1", "-shared", "-fPIC", "-o", "driver.so", "driver.c"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "driver.so"))
    for function, count in ((library.launch, 4), (library.watch, 2)):
        function.argtypes = [ctypes.c_void_p] * count
    return library


@pytest.fixture(params=["python", pytest.param("compiled", marks=needs_header)])
def start(request):
    return launcher.start if request.param == "python" else compiled_start()


@pytest.fixture
def prepare(driver):
    """Keeps a launch on a stream for arrays; gives what it is to do."""

    def prepare(launches, stream, arrays, watched=False, **does):
        call = Call(calls=0, extra=1, **does)
        pointers = (ctypes.addressof(call), 1 << 40, 2 << 40)
        key = [stream, *(array.data_ptr() for array in arrays)]
        watch = driver.watch if watched else None
        launches.keep(PreparedCall(driver.launch, [pointers], watch, key, call))
        return call

    return prepare


def arrays_of(*shapes):
    return tuple(torch.zeros(shape) for shape in shapes)


def likeness(arrays, stream=64):
    found = TensorGuards(arrays)
    found.current_stream = lambda: stream
    return found


ARRAYS = arrays_of((4, 6), (6, 6), (4,))


def test_the_launch_of_the_addresses_starts_with_all_that_it_takes(start, prepare):
    launches, others = PreparedCalls(), arrays_of((4, 6), (6, 6), (4,))
    call, other = prepare(launches, 64, ARRAYS), prepare(launches, 64, others)
    known = (likeness(ARRAYS),)
    assert start(known, launches.tree, ARRAYS, None) == 0
    assert (call.calls, other.calls) == (1, 0)
    assert (call.function, call.parameters, call.extra) == (1 << 40, 2 << 40, None)
    assert start(known, launches.tree, (*ARRAYS[:2], others[2]), None) is None
    assert start(known, launches.tree, others, None) == 0
    assert (call.calls, other.calls) == (1, 1)


def test_the_drivers_status_is_given(start, prepare):
    launches = PreparedCalls()
    call = prepare(launches, 64, ARRAYS, status=201)
    assert start((likeness(ARRAYS),), launches.tree, ARRAYS, 64) == 201
    call.status = -7
    assert start((likeness(ARRAYS),), launches.tree, ARRAYS, 64) == -7


def test_launches_of_one_call_start_in_order_up_to_one_that_fails(start, driver):
    made = [Call(calls=0, extra=1, status=status) for status in (0, 700, 0)]
    pointers = [(ctypes.addressof(call), 1 << 40, 2 << 40) for call in made]
    calls, key = PreparedCalls(), [64, *(array.data_ptr() for array in ARRAYS)]
    calls.keep(PreparedCall(driver.launch, pointers, None, key, made))
    assert start((likeness(ARRAYS),), calls.tree, ARRAYS, 64) == 700
    assert [call.calls for call in made] == [1, 1, 0]
    made[1].status = 0
    assert start((likeness(ARRAYS),), calls.tree, ARRAYS, 64) == 0
    assert [call.calls for call in made] == [2, 2, 1]


def test_a_stream_is_the_given_or_the_current_one(start, prepare):
    launches = PreparedCalls()
    calls = [prepare(launches, stream, ARRAYS) for stream in (0, 64)]
    known = (likeness(ARRAYS, 64),)
    assert start(known, launches.tree, ARRAYS, None) == 0
    assert [call.calls for call in calls] == [0, 1]
    assert start(known, launches.tree, ARRAYS, 0) == 0
    assert [call.calls for call in calls] == [1, 1]
    assert start(known, launches.tree, ARRAYS, 72) is None
    assert start((likeness(ARRAYS, 72),), launches.tree, ARRAYS, None) is None


def test_arrays_have_to_be_like_some_known_ones(start, prepare):
    launches = PreparedCalls()
    call = prepare(launches, 64, ARRAYS)
    unlike = likeness(arrays_of((6, 4), (6, 6), (4,)), 72)
    assert start((), launches.tree, ARRAYS, 64) is None
    assert start((unlike,), launches.tree, ARRAYS, 64) is None
    assert start((likeness(ARRAYS),), launches.tree, (*ARRAYS[:2], None), 64) is None
    assert call.calls == 0
    assert start((unlike, likeness(ARRAYS)), launches.tree, ARRAYS, None) == 0
    assert call.calls == 1


def test_what_is_watched_does_not_start_while_its_stream_is_captured(start, prepare):
    launches, known = PreparedCalls(), (likeness(ARRAYS),)
    calls = [prepare(launches, stream, ARRAYS, watched=True) for stream in (64, 80, 96)]
    found = [start(known, launches.tree, ARRAYS, stream) for stream in (64, 80, 96)]
    assert found == [0, None, None]
    assert [call.calls for call in calls] == [1, 0, 0]


def fails(*_):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("known", "array"),
    [
        (SimpleNamespace(alike=fails), ARRAYS[0]),
        (SimpleNamespace(alike=lambda *_: True, current_stream=fails), ARRAYS[0]),
        (
            SimpleNamespace(alike=lambda *_: True, current_stream=lambda: 64),
            SimpleNamespace(data_ptr=fails),
        ),
        (SimpleNamespace(alike=lambda *_: type("No", (), {"__bool__": fails})()), ARRAYS[0]),
    ],
)
def test_errors_come_out(start, known, array):
    with pytest.raises(ZeroDivisionError):
        start((known,), {64: {}}, (array,), None)


def test_what_is_no_stream_is_an_error(start):
    with pytest.raises(TypeError, match="unhashable"):
        start((likeness(ARRAYS),), {}, ARRAYS, [])
    with pytest.raises(AttributeError, match="alike"):
        start((None,), {}, ARRAYS, None)


def test_other_threads_run_while_the_driver_waits(start, prepare):
    launches = PreparedCalls()
    call = prepare(launches, 64, ARRAYS, wait=1)
    known, found = (likeness(ARRAYS),), []

    def wait():
        found.append(start(known, launches.tree, ARRAYS, None))

    thread = threading.Thread(target=wait)
    thread.start()
    call.wait = 0
    thread.join()
    assert found == [0]


def test_threads_start_what_is_theirs_while_launches_come_and_go(start, prepare):
    launches, known = PreparedCalls(), (likeness(ARRAYS),)
    sets = [arrays_of((4, 6), (6, 6), (4,)) for _ in range(2)]
    calls = [prepare(launches, 64, arrays) for arrays in sets]
    tree, missed = launches.tree, []

    def repeat(arrays):
        found = [start(known, tree, arrays, None) for _ in range(5000)]
        missed.extend(status for status in found if status != 0)

    threads = [threading.Thread(target=repeat, args=(arrays,)) for arrays in sets]
    for thread in threads:
        thread.start()
    for stream in range(100, 3000):
        prepare(launches, stream, ARRAYS)
    for thread in threads:
        thread.join()
    assert missed == []
    assert launches.tree is not tree
    assert [call.calls for call in calls] == [5000, 5000]


def test_nothing_is_leaked(start, prepare):
    launches, stream = PreparedCalls(), 1 << 50
    for number, watched in ((stream, False), (stream + 1, True), (80, True)):
        prepare(launches, number, ARRAYS, watched=watched, status=1 << 20)
    known, tree = (likeness(ARRAYS, stream),), launches.tree
    unkept, bare = (*ARRAYS[:2], torch.zeros(4)), (object(), *ARRAYS[1:])
    obliging = (SimpleNamespace(alike=lambda *_: [1], current_stream=lambda: []),)

    def every_way_out():
        for number in (None, stream + 1, 80, 96):
            start(known, tree, ARRAYS, number)
        start(known, tree, unkept, stream)
        start((), tree, ARRAYS, stream)
        with suppress(TypeError):
            start(obliging, tree, ARRAYS, None)
        with suppress(AttributeError):
            start(obliging, tree, bare, stream)

    leaf = launches.find([stream, *(array.data_ptr() for array in ARRAYS)])
    held = (*unkept, *bare, *known, *obliging, known[0].alike, known, tree, tree[stream], stream)
    held += (leaf, leaf.ticket)

    def owed():
        gc.collect()
        return [sys.getrefcount(one) for one in held], sys.getallocatedblocks()

    every_way_out()
    references, blocks = owed()
    for _ in range(20_000):
        every_way_out()
    later, blocks_later = owed()
    assert later == references
    assert blocks_later < blocks + 1000


@needs_header
def test_what_is_no_call_of_it_is_an_error():
    found = compiled_start()
    for arguments in ((), ((), {}, ()), ([], {}, (), 1), ((), [], (), 1), ((), {}, [], 1)):
        with pytest.raises(TypeError, match="start takes known, prepared, arrays"):
            found(*arguments)
    yes = SimpleNamespace(alike=lambda *_: True)
    with pytest.raises(TypeError, match="a ticket is the bytes of three pointers"):
        found((yes,), {1: SimpleNamespace(ticket=b"short")}, (), 1)
