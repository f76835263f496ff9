"""The words that spell products of matrices, and of batches of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.spaces.dtypes import DType
from tilewright.spaces.dtypes import dtype as element_type
from tilewright.spaces.epilogue.expression import Epilogue, parse
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.workloads.matmul import Axis, Matmul, Operand
from tilewright.spaces.workloads.packing import check_packed

MAX_EXTENT = 2**24
OWN_NAMES = {"A", "B", "C"}
ORDERS = ("row", "col")
PACKED = "packed"


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: str = "float32",
    out: str = "",
    a: str = "row",
    b: str = "row",
    c: str = "row",
    epilogue: str = "",
    accumulator: str = "",
    batch: int = 1,
    heads: int = 1,
    outer: int = 1,
    lda: int = 0,
    ldb: int = 0,
    ldc: int = 0,
) -> Matmul:
    """Multiply matrices, or batches of them: ``C[m, n] = epilogue(sum[k](A[m, k] * B[k, n]))``.

    ``dtype`` is that of A and B; ``out`` that of C and of the epilogue's operands (default: the
    input's, or the accumulator's for tfloat32, float8 and int8). ``a``, ``b``, ``c`` are ``row``
    or ``col`` major. The epilogue is an expression over ``x`` (the accumulator), see
    ``spaces.epilogue.expression``. ``accumulator`` is the dtype of the sums: float16 may be asked
    for beside float16 inputs, and then sums may be kept in it; otherwise it is the input's own.

    A ``batch`` of more than one gives all matrices a first dimension. More than one of ``heads``
    gives A and C another one after it; B has none, the heads share it (heads that lie next to their
    rows everywhere are rows of one product, and asked for as such). ``outer`` is a second axis of
    the batch, before it in C: where both together are evenly apart in all arrays, they are one. The
    epilogue's operands are read by any of ``outer``, ``batch``, ``heads``, ``m`` and ``n``, of
    extents other than 1 for the first three.
    ``a``, ``b`` and ``c`` are then the orders of matrices that lie one after the other, or list all
    axes from the slowest in memory, such as ``m-batch-heads-k``. ``b=packed`` is one matrix in the
    order of :func:`~spaces.workloads.packing.pack`, which C in rows goes with.
    ``lda``, ``ldb`` and ``ldc`` are the leading dimensions of matrices that are slices of larger
    ones: elements from a row to the next, or from a column to the next in column order.
    """
    sums, output = _accumulator(element_type(dtype), accumulator), _output(dtype, out)
    counts = {"outer": outer, "batch": batch, "heads": heads}
    matrices = _Matrices.of({"m": m, "n": n, "k": k}, counts)
    if b == PACKED:
        matrices = matrices.with_packed(dtype, c)
    axes = matrices.axes
    fused = _epilogue(epilogue, axes["c"])
    given = {"a": a, "b": "row" if matrices.packed else b, "c": c}
    orders = {name: _order(name, text, axes[name]) for name, text in given.items()}
    parameters: dict[str, int | str] = {**matrices.extents, "dtype": dtype, "out": output}
    parameters |= {name: _order_text(order, axes[name]) for name, order in orders.items()}
    parameters |= {"b": PACKED} if matrices.packed else {}
    parameters["epilogue"] = str(fused or "")
    if sums != element_type(dtype).accumulator:
        parameters["accumulator"] = sums
    leading = _leading(matrices, orders, {"lda": lda, "ldb": ldb, "ldc": ldc})
    parameters |= leading
    made = Matmul(
        parameters=tuple(parameters.items()),
        axes=matrices.loops,
        factors=tuple(
            matrices.array(name.upper(), dtype, orders[name], leading.get(f"ld{name}"))
            for name in ("a", "b")
        ),
        epilogue=fused,
        epilogue_inputs=matrices.beside(fused, output),
        output=matrices.array("C", output, orders["c"], leading.get("ldc")),
        accumulator=sums,
    )
    if redundant := _redundant(made):
        raise InputError(redundant)
    return made


@dataclass(frozen=True)
class _Matrices:
    """The arrays of a product: ``extents`` of all axes, ``several`` of which number matrices."""

    extents: Mapping[str, int]
    several: tuple[str, ...]
    packed: bool = False

    @staticmethod
    def of(sizes: dict[str, int], counts: dict[str, int]) -> _Matrices:
        """Make the order with the ``counts`` that are not 1 behind the ``sizes``."""
        extents = {name: _extent(name, value) for name, value in (sizes | counts).items()}
        several = tuple(name for name in counts if extents[name] > 1)
        return _Matrices({name: extents[name] for name in (*sizes, *several)}, several)

    def with_packed(self, dtype: str, output: str) -> _Matrices:
        """Return the same with a packed right matrix; :class:`InputError` where none can be."""
        made = replace(self, packed=True)
        if len(made.axes["b"]) > 2:
            counts = " ".join(f"{name}={self.extents[name]}" for name in self.several)
            raise InputError(f"b='packed' with {counts}; allowed: one right matrix")
        if output not in ("row", "-".join(made.axes["c"])):
            raise InputError(f"c={shown(output)} with b='packed'; allowed: row")
        check_packed(dtype, (self.extents["n"], self.extents["k"]))
        return made

    @property
    def loops(self) -> tuple[Axis, ...]:
        """All axes."""
        names = (*self.several, "m", "n", "k")
        return tuple(Axis(name, self.extents[name], name == "k") for name in names)

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """Map each matrix to its axes; heads share B."""
        shared = tuple(name for name in self.several if name != "heads")
        return {
            "a": (*self.several, "m", "k"),
            "b": ("n", "k") if self.packed and not shared else (*shared, "k", "n"),
            "c": (*self.several, "m", "n"),
        }

    def array(
        self, name: str, dtype: str, order: tuple[str, ...], leading: int | None = None
    ) -> Operand:
        """Return a matrix, or a batch of them, with its axes from the slowest in memory to the
        fastest."""
        made = self._operand(name, dtype, self.axes[name.lower()], order)
        return replace(made, packed=self.packed and name == "B", leading=leading)

    def beside(self, epilogue: Epilogue | None, dtype: str) -> tuple[Operand, ...]:
        """List the operands that an epilogue reads, each with axes in the order in which it is
        indexed.
        """
        read = epilogue.operands if epilogue else {}
        return tuple(self._operand(name, dtype, axes, axes) for name, axes in read.items())

    def _operand(
        self, name: str, dtype: str, axes: tuple[str, ...], order: tuple[str, ...]
    ) -> Operand:
        shape = tuple(self.extents[axis] for axis in axes)
        return Operand(name, dtype, shape, tuple(map(axes.index, order)), axes=axes)


def _leading(
    matrices: _Matrices, orders: Mapping[str, tuple[str, ...]], asked: Mapping[str, int]
) -> dict[str, int]:
    """Return the leading dimensions of slices; that of a dense matrix says nothing."""
    found = {}
    for name, value in asked.items():
        least = matrices.extents[orders[name[-1]][-1]]
        if value and not least <= value <= MAX_EXTENT:
            raise InputError(f"{name}={shown(value)}; allowed: {least} to {MAX_EXTENT}")
        if value and name == "ldb" and matrices.packed:
            raise InputError(f"ldb={value} with b='packed', which is dense; allowed: no ldb")
        if value > least:
            found[name] = value
    return found


def _redundant(made: Matmul) -> str | None:
    """Say which axes of a ``matmul`` should be merged or replaced; None if only these axes describe
    the workload.
    """
    extents, arrays = made.extents, (*made.indexed, *made.outputs)
    outer, batch, heads = (extents.get(name, 1) for name in ("outer", "batch", "heads"))

    def together(slow: str, fast: str) -> bool:
        return all(o.stride(slow) == extents[fast] * o.stride(fast) for o in arrays)

    if heads > 1 and (extents["m"] == 1 or together("heads", "m")):
        rows = heads * extents["m"]
        return f"heads={heads} lie next to their rows; ask for m={rows} without heads"
    if outer > 1 and (batch == 1 or together("outer", "batch")):
        return f"outer={outer} is one axis with batch; ask for batch={outer * batch} without outer"
    if outer > 1 and made.output.stride("outer") < made.output.stride("batch"):
        return f"outer={outer} lies within batch={batch} in C; ask for them the other way round"
    return None


def _extent(name: str, value: int) -> int:
    if not 1 <= value <= MAX_EXTENT:
        raise InputError(f"{name}={shown(value)} is out of range; allowed: 1 to {MAX_EXTENT}")
    return value


def _order(name: str, text: str, axes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the axes of a matrix, or of a batch of them, from the slowest in memory to the
    fastest."""
    order = _named_orders(axes).get(text) or tuple(text.split("-"))
    if sorted(order) != sorted(axes) or order[-1] not in axes[-2:]:
        allowed = ", ".join((*ORDERS, PACKED) if name == "b" and len(axes) == 2 else ORDERS)
        if len(axes) > 2:
            allowed += f", or {', '.join(axes)} joined by '-', {' or '.join(axes[-2:])} last"
        raise InputError(f"layout {name}={shown(text)} is unknown; allowed: {allowed}")
    return order


def _order_text(order: tuple[str, ...], axes: tuple[str, ...]) -> str:
    """Write an order as text, the same for all its spellings."""
    known = {order: text for text, order in _named_orders(axes).items()}
    return known.get(order) or "-".join(order)


def _named_orders(axes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    *numbers, first, second = axes
    pairs = ((first, second), (second, first))
    return {name: (*numbers, *pair) for name, pair in zip(ORDERS, pairs, strict=True)}


def _accumulator(source: DType, asked: str) -> str:
    allowed = (source.accumulator, "float16") if source.name == "float16" else (source.accumulator,)
    if asked and asked not in allowed:
        names = ", ".join(allowed)
        raise InputError(f"accumulator={shown(asked)} is not for {source.name}; allowed: {names}")
    return asked or source.accumulator


def _output(inputs: str, asked: str) -> str:
    """Return the dtype of the output of sums of ``inputs``."""
    source = element_type(inputs)
    same = source.bits > 8 and inputs != "tfloat32"
    output = asked or (inputs if same else source.accumulator)
    if element_type(output).name == "tfloat32":
        raise InputError("out='tfloat32' is a dtype of inputs only; allowed here: float32")
    return output


def _epilogue(text: str, axes: tuple[str, ...]) -> Epilogue | None:
    expression = parse(text, axes) if text else None
    if expression is not None and (clash := OWN_NAMES & set(expression.operands)):
        raise InputError(f"epilogue operand {clash.pop()!r} is a name of the kernel's own arrays")
    return expression
