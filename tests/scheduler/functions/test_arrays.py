"""What ports let through and what they refuse, on small operands of every shape that matters."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tilewright.scheduler.functions.arrays import Port
from tilewright.scheduler.functions.cuda_arrays import DevicePort
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.matmul import Operand


def operand(*shape: int, dtype: str = "float32", order: tuple[int, ...] = (0, 1)) -> Operand:
    return Operand("A", dtype, shape, order, axes=("m", "k"))


def of_interface(array: np.ndarray) -> object:
    facts = dict(array.__array_interface__)
    return type("OnGpu", (), {"__cuda_array_interface__": facts | {"strides": array.strides}})()


class OfDlpack:
    """A tensor of the CPU that says it is on a GPU."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__()


READERS = {
    "numpy": (Port.address, lambda array: array),
    "torch": (Port.address, torch.from_numpy),
    "interface": (lambda port, a: port.device_address(a, 0), of_interface),
    "dlpack": (
        lambda port, a: port.device_address(a, 0),
        lambda array: OfDlpack(torch.from_numpy(array)),
    ),
}


@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("shape", [(2, 5), (5, 2), (2, 2), (3, 4)])
@pytest.mark.parametrize("reader", READERS)
def test_a_view_passes_only_if_it_is_dense(reader, shape, order, output):
    """Two rows of a larger array are as far apart as any, and so are two columns."""
    read, given = READERS[reader]
    port = DevicePort(operand(*shape, order=order), output)
    rows, columns = shape
    letter = "CF"[order[0]]
    dense = np.zeros(shape, np.float32, letter)
    assert read(port, given(dense)) == dense.ctypes.data
    views = [
        np.zeros((2 * rows, columns), np.float32, letter)[::2],
        np.zeros((rows, 2 * columns), np.float32, letter)[:, ::2],
        np.zeros((rows + 1, columns), np.float32, "F")[:rows],
        np.zeros((rows, columns + 1), np.float32, "C")[:, :columns],
        np.zeros(shape, np.float32, "FC"[order[0]]),
    ]
    for view in views:
        assert view.shape == shape
        if view.strides != dense.strides:
            with pytest.raises(InputError, match="A has strides"):
                read(port, given(view))
    assert sum(view.strides != dense.strides for view in views) >= 4


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1)])
@pytest.mark.parametrize("reader", READERS)
def test_the_step_along_one_element_means_nothing(reader, shape):
    read, given = READERS[reader]
    rows, columns = shape
    view = np.zeros((3 * rows, 7 * columns), np.float32)
    view = view[::3] if rows == 1 else view[:, ::7]
    view = view[:, :columns] if rows == 1 else np.ascontiguousarray(view[:rows])
    assert read(DevicePort(operand(*shape)), given(view)) == view.ctypes.data


class Wrapper(torch.Tensor):
    """A tensor around others, as quantised and distributed ones are."""

    @staticmethod
    def __new__(cls):
        return torch.Tensor._make_wrapper_subclass(cls, (3, 4), dtype=torch.float32)

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), named=None):
        raise NotImplementedError(function)


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(3, 4)


DENSE = torch.ones(3, 4)
NO_MEMORY = {
    "csr": (DENSE.to_sparse_csr, "Tensor (sparse_csr)"),
    "csc": (DENSE.to_sparse_csc, "Tensor (sparse_csc)"),
    "coo": (DENSE.to_sparse, "Tensor (sparse_coo)"),
    "mkldnn": (DENSE.to_mkldnn, "Tensor (_mkldnn)"),
    "nested": (lambda: torch.nested.nested_tensor([DENSE[0], DENSE[1]]), "Tensor (strided)"),
    "zeros": (lambda: torch._efficientzerotensor(3, 4), "Tensor (strided)"),
    "fake": (fake, "FakeTensor (strided)"),
    "wrapper": (Wrapper, "Wrapper (strided)"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make_port", [Port, DevicePort])
@pytest.mark.parametrize("what", NO_MEMORY)
def test_a_tensor_without_elements_in_memory_is_refused(what, make_port):
    make, name = NO_MEMORY[what]
    port = make_port(operand(3, 4))
    read = port.address if make_port is Port else lambda array: port.device_address(array, 0)
    with pytest.raises(InputError) as error:
        read(make())
    assert str(error.value) == f"A is a {name} without elements in memory; allowed: a dense tensor"


def test_tensors_within_a_transformation_are_refused():
    port = Port(operand(3, 4))

    def read(tensor):
        with pytest.raises(InputError, match="without elements in memory"):
            port.address(tensor)
        return tensor.sum()

    torch.func.vmap(read)(torch.ones(2, 3, 4))
    torch.func.grad(read)(DENSE)


@pytest.mark.parametrize("output", [False, True])
def test_a_negated_view_is_refused_and_its_values_are_taken(output):
    port = Port(operand(3, 4), output)
    view = torch._neg_view(DENSE)
    with pytest.raises(InputError, match="A is a negated view; resolve_neg"):
        port.address(view)
    values = view.resolve_neg()
    assert port.address(values) == values.data_ptr()


def test_the_imaginary_part_of_a_conjugate_is_a_negated_view():
    whole = torch.ones(3, 1, dtype=torch.complex64).conj().imag
    with pytest.raises(InputError, match=r"A is a negated view|A has strides"):
        Port(operand(3, 1)).address(whole)


@pytest.mark.parametrize("output", [False, True])
def test_a_masked_array_is_refused(output):
    array = np.ma.masked_greater(np.arange(12, dtype=np.float32).reshape(3, 4), 5)
    with pytest.raises(InputError, match="A is a masked array; allowed: a plain one"):
        Port(operand(3, 4), output).address(array)
    plain = array.filled(0)
    assert Port(operand(3, 4), output).address(plain) == plain.ctypes.data


def test_a_masked_array_of_a_gpu_is_refused():
    array = of_interface(np.zeros((3, 4), np.float32))
    array.__cuda_array_interface__["mask"] = of_interface(np.zeros((3, 4), bool))
    with pytest.raises(InputError, match="A is a masked array"):
        DevicePort(operand(3, 4)).device_address(array, 0)


def test_harmless_subclasses_of_arrays_pass(tmp_path):
    array = np.memmap(tmp_path / "a", np.float32, "w+", shape=(3, 4))
    assert Port(operand(3, 4), output=True).address(array) == array.ctypes.data
