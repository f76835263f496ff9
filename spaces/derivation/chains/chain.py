"""The chain of dependent reductions over the same axes, fused into as few passes as can be derived.

A reduction is of the earliest pass that it can be of: that of the results it reads if it has a
correction for them (:mod:`spaces.derivation.chains.corrections`), else the next one, where they are
final. A chain without corrections still runs, one pass a reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction
from tilewright.spaces.derivation.chains.corrections import Derivation
from tilewright.spaces.derivation.chains.separation import UnderivableError
from tilewright.spaces.derivation.inlining import MAX_NODES, inlined
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Chain:
    """The reductions of a program over the axes ``over``, divided into passes.

    Each pass lists reductions in an order in which each reads only states before it. ``refusals``
    pairs a reduction with the sentence that says why it could not join an earlier pass.
    """

    over: tuple[str, ...]
    passes: tuple[tuple[ChainReduction, ...], ...]
    refusals: tuple[tuple[str, str], ...]


def chains(program: Program) -> tuple[Chain, ...]:
    """Return the chains of a program: one for each set of axes that some stage reduces over."""
    axes = {frozenset(stage.over): stage.over for stage in program.stages if stage.reducer}
    return tuple(chain(program, over) for over in axes.values())


def chain(program: Program, over: tuple[str, ...], strict: bool = False) -> Chain:
    """Return the chain over the axes ``over``, which some stage reduces over; a ``strict`` one has
    no correction that inputs can make far less right than the program as it is written."""
    members = {s.name: s for s in program.stages if s.reducer and set(s.over) == set(over)}
    needs = _needs(program, members)
    passes: list[Derivation] = []
    number: dict[str, int] = {}
    refusals: list[tuple[str, str]] = []
    for stage in members.values():
        earliest = max((number[name] for name in needs[stage.name] - {stage.name}), default=0)
        try:
            _derive(program, stage, needs, _pass(program, passes, earliest, over, strict))
        except UnderivableError as refusal:
            refusals.append((stage.name, str(refusal)))
            earliest += 1
            _derive(program, stage, needs, _pass(program, passes, earliest, over, strict))
        number[stage.name] = earliest
    return Chain(over, tuple(tuple(p.found.values()) for p in passes), tuple(refusals))


def is_weak(program: Program) -> bool:
    """Tell whether some chain of a program has a correction that a strict one has not."""
    return any(chain(program, c.over, strict=True).refusals != c.refusals for c in chains(program))


def _needs(program: Program, members: Mapping[str, Stage]) -> Mapping[str, frozenset[str]]:
    """Return the members that each stage is or reads, by way of other stages too."""
    needs: dict[str, frozenset[str]] = {}
    for stage in program.stages:
        read = (needs.get(read.name, frozenset()) for read in stage.body.reads)
        own = {stage.name} & set(members)
        needs[stage.name] = frozenset(own).union(*read)
    return needs


def _pass(
    program: Program, passes: list[Derivation], number: int, over: tuple[str, ...], strict: bool
) -> Derivation:
    if number == len(passes):
        bounded = any(not c.axes.isdisjoint(over) for c in program.conditions)
        count = None if bounded else prod(program.shape(over))
        passes.append(Derivation(frozenset(over), count, strict))
    return passes[number]


def _derive(
    program: Program, stage: Stage, needs: Mapping[str, frozenset[str]], this: Derivation
) -> None:
    def unfinished(name: str) -> bool:
        return not needs.get(name, frozenset()).isdisjoint(this.found)

    body = inlined(program, stage.body, lambda map_: unfinished(map_.name))
    before = dict(this.found)
    try:
        summand = _of_states(body, this.found, unfinished)
        if this.depends(summand) and sum(1 for _ in summand.walk()) > MAX_NODES:
            raise UnderivableError(f"it has more than {MAX_NODES} operations in one pass")
        this.derive(stage.name, str(stage.reducer), stage.axes, summand)
    except UnderivableError:
        this.found.clear()
        this.found.update(before)
        raise


def _of_states(
    node: Expression, found: Mapping[str, ChainReduction], unfinished: Callable[[str], bool]
) -> Expression:
    """Return the reads of results of this pass, in terms of its states."""
    if isinstance(node, Read) and unfinished(node.name):
        if node.name not in found:
            raise UnderivableError(f"{node} itself sums up or selects what is not final yet")
        if node.indices != tuple(AxisValue(axis) for axis in found[node.name].axes):
            raise UnderivableError(f"{node} is the result of another row")
        if REDUCERS[found[node.name].reducer].argument:
            raise UnderivableError(f"{node} is a place, known once all elements have passed")
        return found[node.name].result
    children = tuple(_of_states(child, found, unfinished) for child in node.children)
    return node if children == node.children else node.with_children(children)
