"""The gradient of a program as a program: ``d y / d x`` times a given ``dy``, summed over ``y``.

    gradient(program("y[r, c] = softmax[c](x[r, c])", r=8, c=8), ["x"], saved=["y"])

is ``dx[r, c] = y[r, c] * (dy[r, c] - sum[c](dy[r, c] * y[r, c]))``. Its operands are those of the
program that it needs, the derivative ``dy`` of each output, and the saved stages. Six derivations
make it: :mod:`.hoisting`, :mod:`.carrying`, :mod:`.shifts`, :mod:`.reverse`, :mod:`.saving` and
:mod:`.inverting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.spaces.derivation.gradients.arranging import arranged
from tilewright.spaces.derivation.gradients.carrying import with_carried, without_carried
from tilewright.spaces.derivation.gradients.hoisting import hoisted
from tilewright.spaces.derivation.gradients.inverting import check_solved, with_solved
from tilewright.spaces.derivation.gradients.means import without_counts
from tilewright.spaces.derivation.gradients.partial import folded
from tilewright.spaces.derivation.gradients.reverse import Reverse
from tilewright.spaces.derivation.gradients.roots import roots, with_roots
from tilewright.spaces.derivation.gradients.saving import (
    check_saved,
    read_again,
    replaced,
    standing_in,
    with_logsumexps,
)
from tilewright.spaces.derivation.gradients.shifts import free_extremes
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.cycles import computed_of, reading_themselves
from tilewright.spaces.language.domains import Bounded, bounded
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression, Number, Read

Domains = dict[str, tuple[Comparison, ...]]


def gradient(
    program: Program,
    wrt: Sequence[str],
    saved: Sequence[str] = (),
    of: Sequence[str] | None = None,
    solved: Sequence[str] = (),
) -> Program:
    """Return the program of the derivatives ``d...`` of some operands, in the order of ``wrt``.

    ``of`` names the outputs whose derivatives are given; by default all of floating point.
    ``saved`` names stages that are operands of the gradient and not computed again; ``lse`` among
    them is the logarithm of the sum of exponentials of the program's softmax, in the place of its
    maximum and its sum, and ``y_sum_rsqrt`` a root of a sum that is no stage. Operands that are
    ``solved`` for in saved stages are not read (:mod:`.inverting`). Raises :class:`InputError` for
    operands and stages that are not there, for those of whole numbers, for functions without a
    gradient, for operands that cannot be solved for, and for what is too large for a program.
    """
    names = _operands(program, wrt)
    outputs = _outputs(program, of)
    counted = without_counts(with_roots(program, saved))
    kept = {*saved, *(output.name for output in program.outputs)}
    whole, carried = with_carried(with_logsumexps(hoisted(counted, kept), saved))
    check_saved(whole, saved, roots(program))
    seeds = {output.name: _free_name(whole, f"d{output.name}") for output in outputs}
    reverse = Reverse(whole, names, seeds, free_extremes(whole), carried)
    results = reverse.run()
    stages = _standing_in(whole, [*whole.stages, *reverse.stages], saved)
    count = len(whole.stages)
    stages[count:] = with_solved(whole, stages[count:], saved, solved)
    stages = _needed(without_carried(stages, carried), list(results.values()), saved)
    check_solved(stages, solved)
    domains: Domains = {s.name: whole.bounding(s) for s in whole.stages} | reverse.domains
    fixed = {*results.values(), *reading_themselves(stages)}
    made = _assembled(whole, arranged(stages, fixed), domains, reverse.extents, seeds, results)
    try:
        return read_again(made)
    except InputError as error:
        raise InputError(f"the gradient does not fit a program: {error}") from None


def _operands(program: Program, names: Sequence[str]) -> list[str]:
    """Return the operands to differentiate by, which hold numbers of floating point."""
    known = ", ".join(program.operand)
    if not names:
        raise InputError(f"no operand is named to differentiate by; allowed: some of {known}")
    for name in names:
        if name not in program.operand:
            raise InputError(f"the program has no operand {shown(name)}; operands: {known}")
        if program.operand[name].element.is_integer:
            problem = f"{name} holds whole numbers, which have no gradient"
            raise InputError(f"{problem}; allowed: operands of floating point")
        if program.operand[name].elements is not None:
            raise InputError(f"{name} is a constant, which has no gradient; allowed: operands")
        if program.operand[name].packed:
            raise InputError(
                f"{name} is packed; allowed: a gradient by the matrix as it was before"
            )
    return list(dict.fromkeys(names))


def _outputs(program: Program, names: Sequence[str] | None) -> list[Output]:
    """Return the outputs whose derivatives are given."""
    known = {output.name: output for output in program.outputs}
    for name in names or ():
        if name not in known:
            raise InputError(
                f"the program has no output {shown(name)}; outputs: {', '.join(known)}"
            )
    found = [output for name, output in known.items() if names is None or name in names]
    found = [output for output in found if not output.element.is_integer]
    if not found:
        raise InputError("no output is of floating point; whole numbers have no gradient")
    return found


def _free_name(program: Program, stem: str) -> str:
    """Return a name that no array and no axis of the program has."""
    taken = {*program.stage, *program.operand, *program.extent}
    numbered = (f"{stem}_{count}" for count in range(2, len(taken) + 3))
    return stem if stem not in taken else next(name for name in numbered if name not in taken)


def _standing_in(program: Program, stages: list[Stage], saved: Sequence[str]) -> list[Stage]:
    """Return the stages with saved logarithms in the place of maxima and sums, and with reads of
    maps before them where they compute what these hold."""
    by = standing_in(program, saved)
    known: dict[Expression, Expression] = {}
    found = []
    for stage in stages:
        body = stage.body
        if stage.name not in by and stage.name not in saved:
            body = folded(replaced(program, body, by), known)
        found.append(replace(stage, body=body))
        if stage.reducer is None and not isinstance(body, Number | Read | AxisValue):
            known.setdefault(body, Read(stage.name, tuple(map(AxisValue, stage.axes))))
    return found


def _needed(stages: list[Stage], names: Sequence[str], saved: Sequence[str]) -> list[Stage]:
    """Return the stages that some are computed of, without the saved ones."""
    computed = [stage for stage in stages if stage.name not in saved]
    needed = computed_of(computed, names)
    return [stage for stage in computed if stage.name in needed]


def _assembled(
    program: Program,
    stages: Sequence[Stage],
    domains: Domains,
    extents: Mapping[str, int],
    seeds: Mapping[str, str],
    results: Mapping[str, str],
) -> Program:
    """Return the program of some stages, whose operands are whatever they read beside."""
    used = {axis for stage in stages for axis in (*stage.axes, *stage.over)}
    own = {s.name: domains[s.name] for s in stages if domains.get(s.name)}
    given = Bounded({a: e for a, e in extents.items() if a in used}, tuple(stages), ())
    made = bounded(given, own, {*program.operand, *program.stage, *seeds.values(), *extents})
    names = {stage.name for stage in made.stages}
    bodies = [*(stage.body for stage in made.stages), *made.conditions]
    reads = dict.fromkeys(r.name for body in bodies for r in body.reads if r.name not in names)
    outputs = {stage: operand for operand, stage in results.items()}
    return Program(
        tuple(made.extents.items()),
        tuple(_operand(program, name, seeds, extents) for name in reads),
        made.stages,
        made.conditions,
        tuple(_derivative(program, stage, outputs[stage]) for stage in results.values()),
    )


def _operand(
    program: Program, name: str, seeds: Mapping[str, str], extents: Mapping[str, int]
) -> Operand:
    """Return an operand of the program, the derivative of an output, or a saved stage."""
    if name in program.operand:
        return program.operand[name]
    outputs = {output.name: output for output in program.outputs}
    source = next((output for output, seed in seeds.items() if seed == name), name)
    if source in outputs:
        output = outputs[source]
        return Operand(name, output.dtype, output.shape, output.order)
    shape = tuple(extents[axis] for axis in program.stage[name].axes)
    return Operand(name, program.computed_in, shape, tuple(range(len(shape))))


def _derivative(program: Program, name: str, source: str) -> Output:
    """Return the derivative of an operand as an output: in the operand's order and dtype, or in
    that of the outputs if nothing is written in it."""
    operand = program.operand[source]
    narrow = operand.element.bytes == 1 or operand.dtype == "tfloat32"
    dtype = program.computed_in if narrow else operand.dtype
    return Output(name, dtype, operand.shape, operand.order)
