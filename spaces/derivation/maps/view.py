"""A program without reductions as one loop nest, and where its arrays have their elements.

Maps of maps are computed where they are read. The loops are in the order of the output's memory,
axes that all arrays run through in one go are one loop, and those that an index reads through a
quotient are two. What remains says by itself whether a program is a copy, a transposition or a
gather: names, and the way in which it was written, leave no trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.maps.apart import at_place, places_apart
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.subjects import Subjects
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Expression, Read
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Access:
    """The element of an array at each point of the loops, ``offset`` elements from its start."""

    array: Array
    offset: Index

    def step(self, loop: str) -> int | None:
        """Return the elements between neighbours along a loop: 0 if it makes no difference, None if
        they are not equally far apart, as where they are gathered."""
        return self.offset.step(loop)


@dataclass(frozen=True)
class MapView:
    """The loop nest of a program without reductions.

    ``loops`` run from the slowest to the fastest in the first output's memory. ``values`` is what
    is written to each of ``outputs``, of which an array has several where selections choose by its
    place along an axis. ``reads`` says where the reads in them find their elements;
    ``wholes`` what their parts of axes and index tables alone are, of a comparison the left side
    less the right one.
    """

    program: Program
    loops: tuple[Loop, ...]
    outputs: tuple[Access, ...]
    values: tuple[Expression, ...]
    reads: Mapping[Read, Access] = field(hash=False)
    wholes: Mapping[Expression, Index] = field(hash=False)

    @cached_property
    def loaded(self) -> tuple[Access, ...]:
        """All reads of arrays, each element of an array once."""
        return tuple(dict.fromkeys(self.reads.values()))

    @property
    def written_bytes(self) -> int:
        """Bytes of all outputs."""
        return sum(output.bytes for output in self.program.outputs)

    def moved(self, output: int) -> Access | None:
        """Return the read that an output copies element by element; None if anything is
        computed.
        """
        value = self.values[output]
        found = self.reads.get(value) if isinstance(value, Read) else None
        same = found is not None and found.array.dtype == self.outputs[output].array.dtype
        return found if same else None

    def is_table(self, name: str) -> bool:
        """Tell whether an operand's entries are used as indices only."""
        drawn = any(operand.name == name and operand.drawn for operand in self.program.operands)
        return drawn and all(access.array.name != name for access in self.loaded)

    def contiguous(self, access: Access) -> str | None:
        """Return the loop along which an access has neighbours side by side; None if there is
        none."""
        return next((x.name for x in self.loops if access.step(x.name) == 1), None)


def map_of(program: Program) -> MapView:
    """Return the loop nest of a program; :class:`InputError` says why it has none."""
    for stage in program.stages:
        if stage.reducer:
            raise InputError(f"{stage.name} is reduced by {stage.reducer}; a map reduces nothing")
    stages = written_stages(program)
    bodies = tuple(inlined(program, stage.body, lambda _: True) for stage in stages)
    places = places_apart(program, stages, bodies)
    values = tuple(at_place(body, place) for body in bodies for place in places)
    found = Subjects(program, stages, values)
    for read, place in found.places.items():
        if place.bounds:
            raise InputError(f"{read} leaves {read.name}; a map reads what is there")
    names = [output.name for output in program.outputs]
    nest = found.nest.at_places(places, names)
    nest = nest.split().ordered((names[0], 0)).merged().numbered()
    return MapView(
        program=program,
        loops=nest.loops,
        outputs=tuple(
            Access(o, nest.indices[o.name, i]) for o in program.outputs for i in range(len(places))
        ),
        values=values,
        reads={r: Access(program.operand[r.name], nest.indices[r]) for r in found.reads},
        wholes={whole: nest.indices[whole] for whole in found.wholes},
    )


def written_stages(program: Program) -> tuple[Stage, ...]:
    """Return the stages that are outputs; :class:`InputError` if they are along different axes."""
    first, *others = (program.stage[output.name] for output in program.outputs)
    for stage in others:
        if set(stage.axes) != set(first.axes):
            raise InputError(
                f"{stage.name} has the axes {', '.join(stage.axes)}, and {first.name} "
                f"{', '.join(first.axes)}; all outputs of a kernel are along the same axes"
            )
    return (first, *others)
