"""Smaller sizes of problems whose calls would take too long: numbers that a file gives a name."""

from __future__ import annotations

import ast
import operator
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from experiments.kernelbench.problems import Problem

BATCHES = ("batch_size",)
SIZES = (
    "height", "width", "depth", "dim", "dim1", "dim2", "length", "N", "M", "K", "sequence_length",
    "seq_len", "in_features", "out_features", "input_size", "hidden_size", "width_in", "height_in",
    "in_channels", "out_channels", "depth_in",
)  # fmt: skip
"""Names of numbers that are halved once the batch is a few images or rows."""
LEAST = 64
"""The least size that is halved still has so many elements."""
OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
"""Operations that may compute a number. Nothing of a file is evaluated to find its numbers."""
FLOPS, BYTES = 40e9, 4e9
"""Operations and bytes that a core has done with in a second, more or less."""


def shrunk(problem: Problem, seconds: float) -> tuple[Problem, dict[str, int]]:
    """Return a problem whose call takes about so many seconds at most, and the numbers that are
    others in it than in the file."""
    text = problem.path.read_text()
    changes: dict[str, int] = {}
    for changes in _changes(_numbers(text)):
        made = replace(problem, path=_written(problem, text, changes))
        if _seconds(made) <= seconds:
            return (made if changes else problem), changes
    return replace(problem, path=_written(problem, text, changes)), changes


def _changes(numbers: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yield smaller and smaller numbers: batches first."""
    found: dict[str, int] = {}
    yield found
    for names, least in ((BATCHES, 8), (SIZES, LEAST)):
        while any(found.get(n, numbers[n]) >= 2 * least for n in names if n in numbers):
            halves = {n: found.get(n, numbers[n]) // 2 for n in names if n in numbers}
            found = found | {n: half for n, half in halves.items() if half >= least}
            yield found


def _numbers(text: str) -> dict[str, int]:
    """Return the whole numbers that have names in a module."""
    found = {}
    for names, node in _assigned(ast.parse(text)):
        value = _value(node.value)
        if isinstance(value, int):
            found |= dict.fromkeys(names, value)
    return found


def _value(node: ast.expr) -> int | None:
    """Return the whole number that an expression of numbers is; None of any other."""
    match node:
        case ast.Constant(int() as value):
            return value
        case ast.UnaryOp(ast.USub(), inner):
            value = _value(inner)
            return None if value is None else -value
        case ast.BinOp(left, operation, right) if type(operation) in OPERATIONS:
            one, other = _value(left), _value(right)
            if one is not None and other is not None:
                return OPERATIONS[type(operation)](one, other)
    return None


def _assigned(module: ast.Module) -> Iterator[tuple[list[str], ast.Assign]]:
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
            yield [target.id for target in node.targets if isinstance(target, ast.Name)], node


def _written(problem: Problem, text: str, changes: Mapping[str, int]) -> Path:
    """Write the file with other numbers."""
    module = ast.parse(text)
    for names, node in _assigned(module):
        if names and names[0] in changes:
            node.value = ast.Constant(changes[names[0]])
    folder = Path(tempfile.mkdtemp(prefix="kernelbench"))
    path = folder / problem.path.name
    path.write_text(ast.unparse(module))
    return path


class _Bytes(TorchDispatchMode):
    """Counts the bytes that operators write."""

    total = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
        made = function(*args, **(kwargs or {}))
        tensors = (each for each in tree_leaves(made) if isinstance(each, torch.Tensor))
        self.total += sum(t.numel() * t.element_size() for t in tensors if not t._is_view())
        return made


def _seconds(problem: Problem) -> float:
    """Estimate how long a call takes, on ``meta``; nothing of one that has no such call."""
    counter = FlopCounterMode(display=False)
    try:
        with torch.device("meta"):
            source = problem.load()
            module = source.Model(*source.get_init_inputs())
            args = source.get_inputs()
            with torch.no_grad(), counter, _Bytes() as moved:
                module(*args)
    except (RuntimeError, NotImplementedError):
        return 0.0
    given = sum(t.numel() * t.element_size() for t in args if isinstance(t, torch.Tensor))
    return counter.get_total_flops() / FLOPS + (2 * moved.total + given) / BYTES
