"""The operators by name, and how a workload is made from a name and parameters.

An operator is a function from validated parameters to a :class:`Workload`. Everything after
this module (templates, search, cost model, database) sees axes, operands and an epilogue, and
never an operator's name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spaces.dtypes import DType
from spaces.dtypes import dtype as element_type
from spaces.epilogue.expression import Epilogue, parse
from spaces.errors import InputError, shown
from spaces.validation.text import is_plain
from spaces.workloads.contraction import Axis, Contraction, Operand
from spaces.workloads.workload import Workload

MAX_EXTENT = 2**24
OWN_NAMES = {"A", "B", "C", "workspace"}
ORDERS = ("row", "col")
_PROGRAM = re.compile(r"\s*(#|axes\b|where\b|\w+\s*[\[:])")
"""How a program's text begins, unlike an operator's name."""
EXAMPLE = "such as 'matmul m=512 n=512 k=512'"


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
) -> Contraction:
    """``C[m,n] = epilogue(sum_k A[m,k] * B[k,n])``, once or for each of a batch of matrices.

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
    axes from the slowest in memory, such as ``m-batch-heads-k``.
    """
    sums = _accumulator(element_type(dtype), accumulator)
    output = _output(dtype, out)
    extents = {name: _extent(name, value) for name, value in (("m", m), ("n", n), ("k", k))}
    counts = {"outer": outer, "batch": batch, "heads": heads}
    several = {name: _extent(name, extent) for name, extent in counts.items()}
    several = {name: extent for name, extent in several.items() if extent > 1}
    extents |= several
    numbered, shared = tuple(several), tuple(name for name in several if name != "heads")
    expression = _epilogue(epilogue, (*numbered, "m", "n"))
    axes = {"a": (*numbered, "m", "k"), "b": (*shared, "k", "n"), "c": (*numbered, "m", "n")}
    orders = {name: _order(name, text, axes[name]) for name, text in (("a", a), ("b", b), ("c", c))}

    def operand(name: str, kind: str, axes: Sequence[str], order: Sequence[str]) -> Operand:
        shape, dimensions = (tuple(extents[x] for x in axes), tuple(map(axes.index, order)))
        return Operand(name, kind, shape, dimensions, axes=tuple(axes))

    parameters: dict[str, int | str] = {**extents, "dtype": dtype, "out": output}
    parameters |= {name: _order_text(order, axes[name]) for name, order in orders.items()}
    parameters["epilogue"] = str(expression or "")
    if sums != element_type(dtype).accumulator:
        parameters["accumulator"] = sums
    references = expression.operands if expression else {}
    made = Contraction(
        operator="matmul",
        parameters=tuple(parameters.items()),
        axes=(
            *map(Axis, several, several.values()),
            Axis("m", m),
            Axis("n", n),
            Axis("k", k, True),
        ),
        factors=(
            operand("A", dtype, axes["a"], orders["a"]),
            operand("B", dtype, axes["b"], orders["b"]),
        ),
        epilogue=expression,
        epilogue_inputs=tuple(operand(name, output, by, by) for name, by in references.items()),
        output=operand("C", output, axes["c"], orders["c"]),
        accumulator=sums,
    )
    if redundant := _redundant(made):
        raise InputError(redundant)
    return made


def _redundant(made: Contraction) -> str | None:
    """Which axes of a ``matmul`` should be one, or others; None if each workload of it can be asked
    for in this way only."""
    extents, arrays = made.extents, (*made.inputs, *made.outputs)
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


OPERATORS: dict[str, Callable[..., Workload]] = {"matmul": matmul}
_EXTENTS = {"matmul": ("m", "n", "k")}
_COUNTS = {"matmul": ("batch", "heads", "outer")}
_TEXTS = {"matmul": ("dtype", "out", "a", "b", "c", "epilogue", "accumulator")}


def workload(operator: str, /, **parameters: Any) -> Workload:
    """The workload of ``operator`` with ``parameters``, as Python values or their text.

    ``name=value`` words may follow the operator's name, as on the command line and in
    ``str(workload)``; a value with blanks is quoted:
    ``workload('matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"')``. Operators are those of
    :mod:`spaces.named`, or a program's text with its extents as parameters. What computes a product
    of two matrices is a :class:`~spaces.workloads.contraction.Contraction`, whatever it is called:
    ``workload("y[i,j] = sum[k](a[i,k] * b[k,j])", i=512, j=512, k=512)`` is a ``matmul``.

    Raises :class:`InputError` for an unknown operator or parameter, a missing dimension, a size
    that is no positive integer, an unknown dtype or layout, and a malformed epilogue or program.
    """
    if not isinstance(operator, str):
        raise InputError(f"{shown(operator)} is no operator; allowed: text, {EXAMPLE}")
    if _PROGRAM.match(operator):
        return program_workload(operator, parameters)
    try:
        name, *words = shlex.split(operator) or [""]
    except ValueError as error:  # a quotation without end
        raise InputError(f"{shown(operator)}: {error}; allowed: text, {EXAMPLE}") from None
    given = parameters_of(words, parameters)
    return program_workload(name, given) if _PROGRAM.match(name) else _workload(name, given)


def program_workload(text: str, extents: Mapping[str, Any]) -> Workload:
    """The workload of a program's text with these extents, see :mod:`spaces.language`."""
    from spaces.language import program
    from spaces.language.reading.source import statements
    from spaces.workloads.computation import PROGRAM
    from spaces.workloads.served import workload_of  # which makes workloads of the operators here

    made = program(text, **extents)
    line = "; ".join(statement.text for statement in statements(text))
    given = {"text": line} | {name: made.extent.get(name, v) for name, v in extents.items()}
    return workload_of(made, PROGRAM, given if is_plain(line) else {})


def _named(operator: str, parameters: Mapping[str, Any]) -> Workload:
    from spaces.named import named
    from spaces.workloads.served import workload_of

    found = named(operator)
    values = found.values(parameters)
    return workload_of(found.function(**values), operator, values)


def as_workload(given: Workload | str) -> Workload:
    """``given`` itself, or the workload that the text names, see :func:`workload`."""
    return given if isinstance(given, Workload) else workload(given)


def parameters_of(words: Sequence[str], others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``name=value`` words say, beside ``others``; :class:`InputError` if malformed."""
    parameters = dict(others or {})
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InputError(
                f"{shown(word)} is not a parameter; allowed: name=value, such as m=512"
            )
        if name in parameters:
            raise InputError(f"parameter {shown(name)} is given twice")
        parameters[name] = value
    return parameters


def workload_from_json(data: Mapping[str, Any]) -> Workload:
    """The workload that :meth:`Workload.to_json` described; :class:`InputError` if malformed."""
    operator, parameters = data.get("operator"), data.get("parameters")
    if not isinstance(operator, str) or not isinstance(parameters, Mapping):
        raise InputError(f"not a workload: {shown(dict(data))}; needs 'operator' and 'parameters'")
    lines = data.get("program")
    if lines is not None:
        return _computation(operator, parameters, lines)
    return _workload(operator, parameters)


def _computation(operator: str, parameters: Mapping[str, Any], lines: object) -> Workload:
    """The program of these lines; the operator and its parameters are names for people."""
    from spaces.language import program
    from spaces.workloads.served import workload_of

    plain = all(isinstance(value, (int, float, str)) for value in parameters.values())
    if not isinstance(lines, list) or not plain or set(map(type, lines)) != {str}:
        raise InputError(f"not a program: {shown(lines)}; needs its lines, and plain parameters")
    return workload_of(program("\n".join(lines)), operator, parameters)


def _workload(operator: str, parameters: Mapping[str, Any]) -> Workload:
    if operator not in OPERATORS:
        return _named(operator, parameters)
    extents, counts, texts = _EXTENTS[operator], _COUNTS[operator], _TEXTS[operator]
    allowed = (*extents, *texts, *counts)
    unknown = [name for name in parameters if name not in allowed]
    if unknown:
        raise InputError(
            f"{operator} has no parameter {shown(unknown[0])}; allowed: {', '.join(allowed)}"
        )
    missing = [name for name in extents if name not in parameters]
    if missing:
        raise InputError(f"{operator} needs {', '.join(extents)}; missing: {', '.join(missing)}")
    numbers = [name for name in (*extents, *counts) if name in parameters]
    values: dict[str, int | str] = {name: _integer(name, parameters[name]) for name in numbers}
    values |= {name: _text(name, parameters[name]) for name in texts if name in parameters}
    return OPERATORS[operator](**values)


def _integer(name: str, value: Any) -> int:
    try:
        if isinstance(value, (bool, float)):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={shown(value)} is not a whole number") from None


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}={shown(value)} is not allowed; allowed: text")
    return value


def _extent(name: str, value: int) -> int:
    if not 1 <= value <= MAX_EXTENT:
        raise InputError(f"{name}={shown(value)} is out of range; allowed: 1 to {MAX_EXTENT}")
    return value


def _order(name: str, text: str, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The axes of a matrix, or of a batch of them, from the slowest in memory to the fastest."""
    order = _named_orders(axes).get(text) or tuple(text.split("-"))
    if sorted(order) != sorted(axes) or order[-1] not in axes[-2:]:
        allowed = ", ".join(ORDERS)
        if len(axes) > 2:
            allowed += f", or {', '.join(axes)} joined by '-', {' or '.join(axes[-2:])} last"
        raise InputError(f"layout {name}={shown(text)} is unknown; allowed: {allowed}")
    return order


def _order_text(order: tuple[str, ...], axes: tuple[str, ...]) -> str:
    """What is written for an order, the same for all ways to ask for it."""
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
    """The dtype of the output of sums of ``inputs``."""
    source = element_type(inputs)
    same = source.bytes > 1 and inputs != "tfloat32"
    output = asked or (inputs if same else source.accumulator)
    if element_type(output).name == "tfloat32":
        raise InputError("out='tfloat32' is a dtype of inputs only; allowed here: float32")
    return output


def _epilogue(text: str, axes: tuple[str, ...]) -> Epilogue | None:
    expression = parse(text, axes) if text else None
    if expression is not None and (clash := OWN_NAMES & set(expression.operands)):
        raise InputError(f"epilogue operand {clash.pop()!r} is a name of the kernel's own arrays")
    return expression
