"""Programs with packed weights, and the same programs with the arrays that hold these.

Who writes a program reads a packed ``w[columns, depth]`` as a matrix. Its elements lie in panels
(:mod:`spaces.workloads.packing`), which are an array of three dimensions, or of four.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Number, Read
from tilewright.spaces.workloads.packing import PANEL, TERMS


def with_stored(program: Program) -> Program:
    """Return the program with the arrays that hold packed matrices in their place; packed codes
    stay as they are."""
    packed = {each.name: each for each in program.operands if each.packed and not each.coded}
    if not packed:
        return program
    arrays = {
        name: replace(each, shape=each.stored.shape, order=each.stored.order, packed=False)
        for name, each in packed.items()
    }

    def stored(read: Read) -> Read:
        terms = TERMS[packed[read.name].dtype]
        return replace(read, indices=_places(read.indices, terms))

    return _changed(program, arrays, stored)


def with_matrices(program: Program) -> Program:
    """Return the program with packed matrices in the place of arrays that hold such, and that are
    read as nothing else."""
    found = {each.name: _matrix(program, each) for each in program.operands}
    matrices = {name: made for name, made in found.items() if made is not None}
    return _changed(program, matrices, _element) if matrices else program


def _places(element: tuple[Expression, ...], terms: int) -> tuple[Expression, ...]:
    """Return the indices at which an ``element`` (column, term) lies in words of so many
    ``terms``."""
    column, term = element
    panel, word = Number(PANEL), Number(terms)
    within = (Binary("//", column, panel), term, Binary("%", column, panel))
    if terms == 1:
        return within
    return (within[0], Binary("//", term, word), within[2], Binary("%", term, word))


def _matrix(program: Program, operand: Operand) -> Operand | None:
    """Return the packed matrix that an operand holds; None if it is another array."""
    terms = TERMS.get(operand.dtype)
    reads = {
        read for stage in program.stages for read in stage.body.reads if read.name == operand.name
    }
    if terms is None or len(reads) != 1 or len(operand.shape) < 3:
        return None
    (read,) = reads
    axes = _element(read).indices
    if not all(isinstance(axis, AxisValue) for axis in axes):
        return None
    shape = program.shape(tuple(axis.name for axis in axes if isinstance(axis, AxisValue)))
    stored = Operand(operand.name, operand.dtype, shape, (0, 1), packed=True, drawn=operand.drawn)
    dense = (operand.shape, operand.order) == (stored.stored.shape, stored.stored.order)
    return stored if dense and read.indices == _places(axes, terms) else None


def _element(read: Read) -> Read:
    """Return what is read of the matrix where ``read`` is of the array that holds it."""
    column, term = read.indices[:2]
    indices = (each.left if isinstance(each, Binary) else each for each in (column, term))
    return replace(read, indices=tuple(indices))


def _changed(
    program: Program, operands: Mapping[str, Operand], read: Callable[[Read], Read]
) -> Program:
    """Return a program with other ``operands`` by their names, and what is ``read`` of them."""

    def changed(node: Expression) -> Expression:
        node = node.with_children(tuple(map(changed, node.children)))
        return read(node) if isinstance(node, Read) and node.name in operands else node

    return replace(
        program,
        operands=tuple(operands.get(each.name, each) for each in program.operands),
        stages=tuple(replace(each, body=changed(each.body)) for each in program.stages),
    )
