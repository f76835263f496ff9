"""What calls a kernel at once, on which arrays, and what it leaves to a closer look."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import sysconfig
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from scheduler.functions import caller as module
from scheduler.functions import extension
from scheduler.functions.arrays import Port
from scheduler.functions.caller import MOST_ARRAYS, SOURCE, admit_tensors, caller, compiled_module
from spaces.errors import InputError
from spaces.workloads.array import Array

HEADER = Path(sysconfig.get_path("include"), "Python.h")
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason="there are no headers of Python")

needs_exchange = pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="torch is older than 2.10"
)
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Kernel:
    """Stands in for a kernel of ``arrays``: keeps what it is called with."""

    def __init__(self, *arrays: Array, outputs: int = 1, scratch: int = 0) -> None:
        self.calls: list[tuple[list[int], int | None, int | None]] = []
        self.seen: list[tuple] = []
        self.made: list[np.ndarray] = []
        self._count = len(arrays)
        self._entry = ENTRY(self._run)
        self.entered = lambda: None
        ports = [Port(a, output=n >= len(arrays) - outputs) for n, a in enumerate(arrays)]
        self.call = caller(
            ctypes.cast(self._entry, ctypes.c_void_p).value,
            77,
            ports[:-outputs],
            ports[-outputs:],
            (lambda: self._new(scratch)) if scratch else None,
            self._closely,
        )

    def _run(self, buffers, workspace, runtime):
        pointers = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
        self.calls.append((pointers[: self._count], workspace, runtime))
        self.entered()

    def _new(self, size):
        self.made.append(np.zeros(size + 64, np.uint8))
        return self.made[-1]

    def _closely(self, *given, **named):
        self.seen.append((given, named))
        return "seen"


def array(name: str, *shape: int, dtype: str = "float32", order=(0, 1), leading=None) -> Array:
    return Array(name, dtype, shape, order[: len(shape)], leading)


def transposition(**options) -> Kernel:
    return Kernel(array("x", 6, 4), array("y", 4, 6), **options)


@pytest.fixture(autouse=True)
def admitted():
    admit_tensors()


def both(test):
    """Run a test with NumPy's arrays and with torch's."""
    kinds = [np.asarray, pytest.param(torch.from_numpy, marks=needs_exchange)]
    return pytest.mark.parametrize("kind", kinds)(test)


def address(found) -> int:
    return found.data_ptr() if isinstance(found, torch.Tensor) else found.ctypes.data


@both
def test_arrays_that_fit_are_called_with_at_once(kind):
    kernel = transposition()
    x, y = (kind(np.zeros(shape, np.float32)) for shape in ((6, 4), (4, 6)))
    assert kernel.call(x, out=y) is y
    assert kernel.calls == [([address(x), address(y)], None, 77)]
    assert kernel.seen == []


@both
@pytest.mark.parametrize(
    "given",
    [
        {"order": (1, 0)},
        {"leading": 9},
        {"order": (1, 0), "leading": 8},
        *({"dtype": d} for d in ("float64", "float16", "int8", "int32")),
    ],
)
def test_every_order_and_dtype_is_taken(kind, given):
    operand = array("x", 6, 4, **given)
    kernel = Kernel(operand, array("y", 6, 4))
    x = kind(operand.array(np.zeros((6, 4))))
    y = kind(np.zeros((6, 4), np.float32))
    assert kernel.call(x, out=y) is y
    assert kernel.seen == []


@needs_exchange
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_numpy_lacks_are_taken(dtype):
    operand = array("x", 6, 4, dtype=dtype)
    kernel = Kernel(operand, array("y", 6, 4))
    kernel.call(torch.zeros(6, 4, dtype=getattr(torch, dtype)), out=torch.zeros(6, 4))
    kernel.call(operand.array(np.zeros((6, 4))), out=np.zeros((6, 4), np.float32))
    assert len(kernel.calls) == 2
    assert kernel.seen == []


@both
def test_the_step_along_one_element_means_nothing(kind):
    kernel = Kernel(array("x", 1, 4), array("y", 1, 4))
    row = kind(np.zeros((3, 8), np.float32)[::2][:1, :4])
    kernel.call(row, out=kind(np.zeros((1, 4), np.float32)))
    assert len(kernel.calls) == 1
    kernel.call(kind(np.zeros((1, 8), np.float32)[:, ::2]), out=row)
    assert len(kernel.seen) == 1


@both
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_output_is_made_of_the_first_inputs_kind(kind, order):
    kernel = Kernel(array("x", 6, 4), array("y", 4, 6, order=order))
    x = kind(np.zeros((6, 4), np.float32))
    for named in ({}, {"out": None}):
        made = kernel.call(x, **named)
        assert type(made) is type(x)
        assert tuple(made.shape) == (4, 6)
        assert kernel.calls[-1][0] == [address(x), address(made)]
    assert kernel.seen == []


@both
def test_several_outputs_go_to_a_tuple(kind):
    kernel = Kernel(array("x", 6), array("y", 6), array("z", 6), outputs=2)
    x, y, z = (kind(np.zeros(6, np.float32)) for _ in range(3))
    out = (y, z)
    assert kernel.call(x, out=out) is out
    assert kernel.calls[0][0] == [address(one) for one in (x, y, z)]
    for unfit in (None, [y, z], (y,), (y, z, z), (y, y), (x, z), {"y": y, "z": z}):
        assert kernel.call(x, out=unfit) == "seen"
    assert kernel.call(x) == "seen"
    assert len(kernel.calls) == 1


FLOATS = np.zeros((6, 4), np.float32)
UNFIT = {
    "dtype": FLOATS.astype(np.float64),
    "dtype of as many bytes": FLOATS.astype(np.int32),
    "byte order": FLOATS.astype(">f4"),
    "shape": FLOATS[:5],
    "rank": FLOATS.reshape(6, 4, 1),
    "order": np.asfortranarray(FLOATS),
    "view": np.zeros((6, 8), np.float32)[:, ::2],
    "rows apart": np.zeros((12, 4), np.float32)[::2],
    "alignment": np.zeros(97, np.uint8)[1:].view(np.float32).reshape(6, 4),
    "masked": np.ma.masked_array(FLOATS),
    "subclass": FLOATS.view(type("Sub", (np.ndarray,), {})),
    "list": FLOATS.tolist(),
    "nothing": None,
    "tensor dtype": torch.zeros(6, 4, dtype=torch.float64),
    "tensor of as many bytes": torch.zeros(6, 4, dtype=torch.int32),
    "tensor shape": torch.zeros(6, 5),
    "tensor rank": torch.zeros(6, 4, 1),
    "tensor order": torch.zeros(4, 6).T,
    "tensor rows": torch.zeros(12, 4)[::2],
    "tensor alignment": torch.zeros(97, dtype=torch.uint8).numpy()[1:],
    "gradient": torch.zeros(6, 4, requires_grad=True),
    "parameter": torch.nn.Parameter(torch.zeros(6, 4)),
    "negated": torch._neg_view(torch.zeros(6, 4)),
    "meta": torch.zeros(6, 4, device="meta"),
    "sparse": torch.zeros(6, 4).to_sparse(),
    "mkldnn": torch.zeros(6, 4).to_mkldnn(),
    "no storage": torch._efficientzerotensor(6, 4),
    "tensor subclass": torch.zeros(6, 4).as_subclass(type("Own", (torch.Tensor,), {})),
}


@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize("what", UNFIT)
def test_what_does_not_fit_is_handed_on_as_it_came(what, output):
    """A closer look takes some of it, and says what is wrong with the rest."""
    kernel = Kernel(array("x", 6, 4), array("y", 6, 4))
    one, other = UNFIT[what], np.ones((6, 4), np.float32)
    given, out = (other, one) if output else (one, other)
    if one is None and output:
        return
    assert kernel.call(given, out=out) == "seen"
    ((arrays, named),) = kernel.seen
    assert arrays == (given,)
    assert named["out"] is out
    assert kernel.calls == []


def test_tensors_within_a_transformation_are_handed_on():
    kernel = Kernel(array("x", 6, 4), array("y", 6, 4))

    def read(tensor):
        assert kernel.call(tensor, out=torch.zeros(6, 4)) == "seen"
        return tensor.sum()

    torch.func.vmap(read)(torch.ones(2, 6, 4))
    torch.func.grad(read)(torch.ones(6, 4))


@needs_exchange
def test_parameters_are_taken_where_no_gradients_are_tracked():
    kernel = transposition()
    weight = torch.nn.Parameter(torch.zeros(6, 4))
    with torch.no_grad():
        kernel.call(weight, out=torch.zeros(4, 6))
    assert len(kernel.calls) == 1
    assert kernel.call(weight, out=torch.zeros(4, 6)) == "seen"


def test_what_is_read_only_is_read_only():
    kernel = transposition()
    x, y = FLOATS.copy(), np.zeros((4, 6), np.float32)
    x.flags.writeable = False
    kernel.call(x, out=y)
    assert len(kernel.calls) == 1
    y.flags.writeable = False
    assert kernel.call(x, out=y) == "seen"


@both
def test_an_output_that_shares_memory_is_handed_on(kind):
    kernel = Kernel(array("x", 6), array("b", 6), array("y", 6))
    memory = kind(np.zeros(24, np.float32))
    for first, shares in ((0, True), (5, True), (6, False), (7, True), (12, True), (18, False)):
        before = len(kernel.calls)
        kernel.call(memory[:6], memory[12:18], out=memory[first : first + 6])
        assert (len(kernel.calls) == before) is shares
    kernel.call(memory[:6], memory[:6], out=memory[6:12])
    assert kernel.calls[-1][0][0] == kernel.calls[-1][0][1]


def test_other_ways_to_give_arrays_are_handed_on():
    kernel = transposition()
    x, y = FLOATS, np.zeros((4, 6), np.float32)
    for given, named in (
        ((), {"x": x}),
        ((), {}),
        ((x, x), {}),
        ((x,), {"y": y}),
        ((x,), {"out": y, "x": x}),
    ):
        assert kernel.call(*given, **named) == "seen"
        assert kernel.seen[-1][0] == given
        assert kernel.seen[-1][1].keys() == named.keys()


def test_workspaces_are_aligned_and_kept():
    kernel = transposition(scratch=100)
    for _ in range(3):
        kernel.call(FLOATS)
    (made,) = kernel.made
    (workspace,) = {workspace for _, workspace, _ in kernel.calls}
    assert workspace % 64 == 0
    assert 0 <= workspace - made.ctypes.data < 64


def test_calls_at_once_have_workspaces_of_their_own():
    """Which needs them to run at once: a kernel runs without the interpreter's lock."""
    kernel, together = transposition(scratch=64), threading.Barrier(3, timeout=60)
    kernel.entered = together.wait
    threads = [threading.Thread(target=kernel.call, args=(FLOATS,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({workspace for _, workspace, _ in kernel.calls}) == 3
    assert len(kernel.made) == 3


def test_what_fails_to_make_a_workspace_is_an_error():
    kernel = transposition(scratch=64)

    def fails(size):
        raise MemoryError(size)

    kernel._new = fails
    with pytest.raises(MemoryError, match="64"):
        kernel.call(FLOATS)
    assert kernel.calls == kernel.seen == []


def test_nothing_is_leaked():
    kernel = transposition(scratch=64)
    y, tensor, to = np.zeros((4, 6), np.float32), torch.zeros(6, 4), torch.zeros(4, 6)
    held = (y, tensor, to, kernel, FLOATS, UNFIT["negated"], UNFIT["no storage"], False, None)
    kernel._closely = lambda *_, **__: None
    kernel.call = caller(
        ctypes.cast(kernel._entry, ctypes.c_void_p).value,
        77,
        [Port(array("x", 6, 4))],
        [Port(array("y", 4, 6), output=True)],
        lambda: kernel._new(64),
        kernel._closely,
    )

    def every_way_out():
        for x in (FLOATS, tensor, UNFIT["negated"], UNFIT["no storage"], UNFIT["dtype"], None):
            kernel.call(x)
            kernel.call(x, out=y)
            kernel.call(x, out=to)
        kernel.call()
        kernel.calls.clear()

    def owed():
        gc.collect()
        return [sys.getrefcount(one) for one in held[:-2]], sys.getallocatedblocks()

    every_way_out()
    references, blocks = owed()
    for _ in range(2000):
        every_way_out()
    later, blocks_later = owed()
    assert later == references
    assert blocks_later < blocks + 500


def test_a_circle_of_a_caller_and_who_looks_closely_is_collected():
    class Owner:
        def __init__(self):
            port = Port(array("x", 6, 4))
            self.call = caller(0, 0, [port], [port], None, self.closely)

        def closely(self):
            return None

    gone = weakref.ref(Owner())
    gc.collect()
    assert gone() is None


def test_demands_are_checked():
    made = compiled_module().Caller
    good = np.array([2, 32, 4, 96, 1, 24, 1], np.int64)
    for inputs, demands in (
        (1, good),
        (0, good[:-1]),
        (0, np.append(good, 0)),
        (-1, good),
        (0, good * [1, 1, 0, 1, 1, 1, 1]),
        (0, good * [1, 1, 1, 1, -1, 1, 1]),
        (0, good * [1, 1, 1, 1, 2, 1, 1]),
    ):
        with pytest.raises(ValueError, match="demands are five numbers an array"):
            made(0, 0, inputs, (None,), demands.tobytes(), None, None, None, None)


def test_more_arrays_than_there_is_room_for_are_looked_at_closely():
    ports = [Port(array(f"x{i}", 6)) for i in range(MOST_ARRAYS + 1)]

    def closely():
        raise InputError

    assert caller(0, 0, ports[:-1], ports[-1:], None, closely) is closely
    assert caller(0, 0, ports[:-2], ports[-1:], None, closely) is not closely


def test_it_compiles_without_a_warning(tmp_path):
    folders = (f"-I{HEADER.parent}", f"-isystem{np.get_include()}")
    flags = (*extension.FLAGS, "-Werror", *folders)
    command = ["gcc", *flags, SOURCE, "-o", tmp_path / "caller.so"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""


def test_without_it_all_is_looked_at_closely(monkeypatch):
    monkeypatch.setattr(module, "compiled_module", lambda: None)
    kernel = transposition()
    assert kernel.call(FLOATS) == "seen"
    assert not admit_tensors.__wrapped__()
