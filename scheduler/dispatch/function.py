"""Call the kernels of a dispatch table with any number of rows."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.dispatch.explaining import table_text
from tilewright.scheduler.dispatch.family import rows
from tilewright.scheduler.dispatch.making import KERNELS, dispatch_table
from tilewright.scheduler.dispatch.open_functions import (
    BUILDERS,
    OpenFunctions,
    open_functions,
)
from tilewright.scheduler.dispatch.profile import Profile
from tilewright.scheduler.dispatch.table import Piece, Row, Table, TableKernel, read_table
from tilewright.scheduler.functions.arrays import (
    Port,
    check_apart,
    in_order,
    is_tensor,
    outputs_of,
    shape_of,
)
from tilewright.spaces.backends import backend
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database

ALIGNMENT = 16
"""Bytes to which pieces of arrays on a GPU must be aligned; others are copied."""

Otherwise = Callable[..., Any]


class Dispatch:
    """A function of arrays with any number of rows, by the kernels of a table.

    Example::

        up = dispatch("matmul n=3072 k=768", "1:.5,2-128:.5", "tuning.db")
        c = up(a, b)  # a has 1 to 128 rows
        print(up.choose(17), up)

    All kernels are built when the function is made. A call checks its arrays as kernels do, and
    raises :class:`InputError` for those that do not fit. ``otherwise`` is a function of the same
    arrays (and of ``out``, if that is given) for sizes that the table leaves to torch, and for
    those beyond it. Without it kernels compute the former, and the latter raise
    :class:`InputError`.
    """

    def __init__(
        self,
        table: Table,
        database: Database | str | Path | None = None,
        otherwise: Otherwise | None = None,
        target: Target | str | None = None,
    ) -> None:
        self.table = table
        self.target = table.target if target is None else as_target(target)
        self.otherwise = otherwise
        self._rows: tuple[Row | None, ...] = (None, *table.rows, None)
        self._ends = (0, *(row.last for row in table.rows))
        self._functions = _built(table, self.target, database)
        self._open = open_functions(table, self.target)
        calling = calling_of(table.family.at(table.last))
        self._inputs, self._outputs = calling.inputs, calling.outputs
        places = enumerate(zip(self._inputs, table.family.inputs, strict=True))
        self._sized, self._dimension = next(
            (place, dimension) for place, (_, dimension) in places if dimension is not None
        )
        self._plans: dict[int, _Plan] = {}

    @classmethod
    def load(
        cls,
        path: str | Path,
        target: Target | str = Default.TARGET,
        otherwise: Otherwise | None = None,
    ) -> Self:
        """Return the function of a table in a file, as :meth:`save` and ``tilewright dispatch
        --out`` write it. A table of another machine causes a :class:`RuntimeWarning`."""
        table, here = read_table(path), as_target(target)
        if table.target != here:
            warnings.warn(
                f"the table was made for {table.target.summary}, not for {here.summary}: other "
                "kernels may be faster",
                RuntimeWarning,
                stacklevel=2,
            )
        return cls(table, None, otherwise, here)

    def save(self, path: str | Path) -> None:
        """Write the table to a file."""
        self.table.save(path)

    def choose(self, size: int) -> Row | None:
        """Return the row of the table for a call of ``size`` rows; None beyond the table."""
        return self._rows[bisect_left(self._ends, size)]

    def explain(self) -> str:
        """Return the table as text."""
        return table_text(self.table)

    def __repr__(self) -> str:
        sizes = ", ".join(str(each.size) for each in self.table.kernels)
        table = self.table
        return (
            f"<Dispatch {table.family} on {self.target.text}, {table.family.axis}=1 to "
            f"{table.last}, by kernels of {sizes}>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.explain())}</pre>"

    def __call__(self, /, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Return the result for the given arrays, written to ``out`` if that is given."""
        if named or len(arrays) != len(self._inputs):
            arrays = in_order([Port(each) for each in self._inputs], arrays, named)
        size = self._size(arrays)
        row = self.choose(size)
        if row is None or row.torch or not self._takes(row, size):
            if self.otherwise is not None:
                return self.otherwise(*arrays) if out is None else self.otherwise(*arrays, out=out)
            if row is None:
                axis = self.table.family.axis
                raise InputError(
                    f"{axis}={size} is not in the table; allowed: 1 to {self.table.last}, or any "
                    "with a function for others: otherwise="
                )
        if row.size == size:
            return self._functions[size](*arrays, out=out)
        if row.size > size and row.size in self._open:
            return self._open[row.size].at(size)(*arrays, out=out)
        if not self._takes(row, size):
            raise InputError(
                f"no kernel on {self.target.text} takes {self.table.family.axis}={size}; allowed: "
                f"{', '.join(map(str, self._functions))}"
            )
        plan = self._plans.get(size)
        if plan is None:
            plan = self._plans[size] = _Plan(self.table, size, self.target.kind, self._open)
        return plan.run(self._functions, arrays, out)

    def _takes(self, row: Row, size: int) -> bool:
        """Tell whether kernels here compute a call: cut into pieces, or by one that takes it."""
        is_open = row.size > size and row.size in self._open
        return self.table.family.independent or row.size == size or is_open

    def _size(self, arrays: Sequence[Any]) -> int:
        name, wanted = self._inputs[self._sized].name, self._inputs[self._sized].shape
        shape = shape_of(arrays[self._sized], name)
        if len(shape) != len(wanted):
            raise InputError(
                f"{name} has the shape {tuple(shape)}; allowed: as {wanted}, with 1 to "
                f"{self.table.last} at place {self._dimension}"
            )
        return int(shape[self._dimension])


class _Plan:
    """The way in which a call of one size is served: whole arrays are checked, and pieces of them
    handed to kernels."""

    def __init__(
        self, table: Table, size: int, kind: str, opened: Mapping[int, OpenFunctions]
    ) -> None:
        family = table.family
        calling = calling_of(family.at(size))
        self._kind, self._open = kind, opened
        self._places = (*family.inputs, *family.outputs)
        self._count, self._several = len(calling.inputs), len(calling.outputs) > 1
        self._ports = _ports(calling.inputs, calling.outputs, kind)
        self._pieces = [
            (piece, None if self._lies_right(piece) else _ports_at(table, piece.size, kind))
            for piece in table.pieces(size, opened)
        ]

    def _lies_right(self, piece: Piece) -> bool:
        """Return True if the kernel can take its rows where they lie."""
        if piece.rows < piece.size and piece.size not in self._open:
            return False
        if self._kind == "cpu":
            return True
        steps = zip(self._ports, self._places, strict=True)
        return not any(
            piece.first * _row_bytes(port.operand, place) % ALIGNMENT
            for port, place in steps
            if place is not None
        )

    def run(self, functions: dict[int, Any], arrays: Sequence[Any], out: Any) -> Any:
        """Serve a call. All arrays are checked before any kernel runs."""
        if out is None:
            out = [self._new(port, arrays) for port in self._ports[self._count :]]
            result = tuple(out) if self._several else out[0]
        else:
            result = out
            out = outputs_of(self._ports[self._count :], out) if self._several else [out]
        whole = (*arrays, *out)
        addresses = [self._address(*each) for each in zip(self._ports, whole, strict=True)]
        check_apart(self._ports, addresses, len(out))
        for piece, ports in self._pieces:
            if ports is None:
                fewer = piece.rows < piece.size
                own = self._open[piece.size].at(piece.rows) if fewer else functions[piece.size]
                self._call(own, self._cut(whole, piece))
            else:
                self._call_copied(functions[piece.size], whole, piece, ports)
        return result

    def _call(self, function: Any, arrays: Sequence[Any]) -> None:
        outputs = tuple(arrays[self._count :])
        function(*arrays[: self._count], out=outputs if self._several else outputs[0])

    def _call_copied(
        self, function: Any, whole: Sequence[Any], piece: Piece, ports: Sequence[Port]
    ) -> None:
        """Call a kernel on copies of the rows, which the last of them fills up to its size."""
        parts = self._cut(whole, piece)
        arrays = []
        for number, (part, port, place) in enumerate(zip(parts, ports, self._places, strict=True)):
            if place is None:
                arrays.append(part)
                continue
            copied = self._new(port, parts)
            if number < self._count:
                copied[rows(place, 0, piece.rows)] = part
                copied[rows(place, piece.rows, piece.size)] = part[
                    rows(place, piece.rows - 1, piece.rows)
                ]
            arrays.append(copied)
        self._call(function, arrays)
        for part, copied, place in list(zip(parts, arrays, self._places, strict=True))[
            self._count :
        ]:
            if place is not None:
                part[...] = copied[rows(place, 0, piece.rows)]

    def _cut(self, whole: Sequence[Any], piece: Piece) -> list[Any]:
        end = piece.first + piece.rows
        return [
            array if place is None else array[rows(place, piece.first, end)]
            for array, place in zip(whole, self._places, strict=True)
        ]

    def _address(self, port: Port, array: Any) -> int:
        if self._kind == "cpu":
            return port.address(array)
        if not is_tensor(array):
            raise InputError(f"{port.name} is a {type(array).__name__}; allowed: a torch tensor")
        from tilewright.scheduler.functions.cuda_arrays import DevicePort, current_stream

        assert isinstance(port, DevicePort)
        return port.device_address(
            array, current_stream(array.get_device()) if array.is_cuda else 0
        )

    def _new(self, port: Port, arrays: Sequence[Any]) -> Any:
        """Return an array that a port lets pass, of the kind of the first of ``arrays``."""
        if not is_tensor(arrays[0]):
            return port.empty_array()
        if self._kind == "cpu":
            return port.empty_tensor()
        from tilewright.scheduler.functions.cuda_arrays import DevicePort

        assert isinstance(port, DevicePort)
        return port.empty_like(arrays[0])


def dispatch(
    workload: Workload | str,
    profile: Profile | str,
    database: Database | str | Path | None = Default.DATABASE,
    kernels: int = KERNELS,
    axis: str | None = None,
    target: Target | str = Default.TARGET,
    otherwise: Otherwise | None = None,
) -> Dispatch:
    """Serve all sizes of one axis of ``workload`` by at most ``kernels`` kernels.

    Example::

        up = dispatch("matmul n=3072 k=768", "1:.3,2-8:.3,9-4096:.4", kernels=4)
        c = up(a, b)  # a has 1 to 4096 rows

    ``profile`` says how often which sizes are called, as ``SIZES:SHARE`` separated by commas;
    shares are divided by their sum. The table is made anew from what the database knows now: the
    latencies on record, and estimates for sizes without a record. ``None`` is an empty database.
    The ``axis`` is the one that is open, as in ``m=*``, or ``m``, unless it is given. Its points
    must be the outermost in memory, and must not depend on each other unless all are reduced.
    ``otherwise`` is as for :class:`Dispatch`. Raises :class:`InputError` for bad input, and for a
    database without any record of these workloads.
    """
    table = dispatch_table(workload, profile, database, kernels, axis, target)
    return Dispatch(table, database, otherwise)


def _built(table: Table, target: Target, database: Any) -> dict[int, Any]:
    """Return the functions of all kernels by size, built side by side."""
    with ThreadPoolExecutor(BUILDERS) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is known of some sizes: the table says so
        made = pool.map(lambda kernel: _function(table, kernel, target, database), table.kernels)
        return {kernel.size: each for kernel, each in zip(table.kernels, made, strict=True)}


def _function(table: Table, kernel: TableKernel, target: Target, database: Any) -> Any:
    """Return the function of a kernel. One without a record is verified before it is called."""
    workload = table.family.at(kernel.size)
    if kernel.schedule is not None:
        space = space_for(workload, target)
        schedule = space.ordered(kernel.schedule)
        if schedule in space:
            function = backend(target.kind).part("function")
            return function(space, schedule, Provenance.MEASURED)
    return best(workload, target, database, verify=True)


def _ports(inputs: Sequence[Array], outputs: Sequence[Array], kind: str) -> list[Port]:
    """Return a port for each array of a call."""
    of_kind: type[Port] = Port
    if kind != "cpu":
        from tilewright.scheduler.functions.cuda_arrays import DevicePort

        of_kind = DevicePort
    return [*map(of_kind, inputs), *(of_kind(each, output=True) for each in outputs)]


def _ports_at(table: Table, size: int, kind: str) -> list[Port]:
    calling = calling_of(table.family.at(size))
    return _ports(calling.inputs, calling.outputs, kind)


def _row_bytes(array: Array, place: int) -> int:
    return array.strides[place] * array.element.bytes
