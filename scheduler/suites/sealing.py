"""Suites for somebody who shall not learn the model: workloads alone, among decoys.

A sealed suite has no names, weights, sections or order, and axes and arrays have numbers for names.
The keys are those of the suite that was sealed, so what is measured for them is matched by key.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence
from random import Random, SystemRandom

from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

TITLE = "sealed"
FACTORS = ((1, 4), (1, 2), (3, 4), (3, 2), (2, 1), (3, 1), (4, 1))
"""Ratios of an extent of a decoy to that of a workload."""
TRIES = 64
"""Draws for one decoy."""
LARGEST = 1 << 16
"""The largest extent of a decoy that a workload has not."""
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
NAME = re.compile(r"[A-Za-z_]\w*")


def sealed(suite: Suite, decoys: int, target: Target, seed: int | None = None) -> Suite:
    """Return the workloads of ``suite`` under plain names, and as many ``decoys``, shuffled.

    A decoy is one of the workloads with another extent, for which ``target`` has a space too.
    :class:`InputError` if so many cannot be made. Without a ``seed`` nobody can draw the same.
    """
    drawn: Random = SystemRandom() if seed is None else Random(seed)
    known = {member.workload.key: plain(member.workload) for member in suite.members}
    own = list(known.values())
    for number in range(decoys):
        made = _decoy(own, known, target, drawn)
        if made is None:
            raise InputError(f"only {number} decoys can be made of the suite, not {decoys}")
        known[made.key] = made
    members = [Member(work) for work in known.values()]
    drawn.shuffle(members)
    return Suite(f"{TITLE} {secrets.token_hex(4)}", tuple(members))


def plain(work: Workload) -> Workload:
    """Return the same workload with numbers in its names, in the order in which they stand."""
    if not work.matmul:
        program = work.program
        arrays = [*program.operand, *program.stage, *(array.name for array in program.outputs)]
        made = workload(_renamed(program.text, program.extent, arrays))
    else:
        given = dict(work.parameters)
        fused = [array.name for array in work.inputs]
        text = str(given.pop("epilogue", ""))
        words = {"epilogue": _renamed(text, (), fused)} if text else {}
        made = workload(work.operator, **given, **words)
    if made.key != work.key:
        raise InputError(f"{work} cannot be written under other names; allowed: other names in it")
    return made


def _renamed(text: str, axes: Collection[str], arrays: Collection[str]) -> str:
    """Return a text with numbers in the names of axes and arrays."""
    order = [name for name in dict.fromkeys(NAME.findall(text)) if name in (*axes, *arrays)]
    new = {name: f"{'a' if name in axes else 't'}{place}" for place, name in enumerate(order)}
    return NAME.sub(lambda found: new.get(found[0], found[0]), text)


def _decoy(
    own: Sequence[Workload], known: dict[str, Workload], target: Target, drawn: Random
) -> Workload | None:
    """Return a workload that is not known yet; None if none is found."""
    for _ in range(TRIES):
        like = drawn.choice(own)
        text = str(like) if like.matmul else like.program.text
        made = _changed(text, like, target, drawn)
        if made is not None and made.key not in known:
            return made
    return None


def _changed(text: str, like: Workload, target: Target, drawn: Random) -> Workload | None:
    """Return a workload like another one, with one extent changed wherever it stands; None if it
    then means nothing, or has no space."""
    extents = sorted({extent for extent in like.extents.values() if extent > 1})
    if not extents:
        return None
    before = drawn.choice(extents)
    over, under = drawn.choice(FACTORS)
    after = before * over // under
    if before * over % under or not 1 <= after <= max(LARGEST, before):
        return None
    changed = NUMBER.sub(lambda found: str(after) if int(found[0]) == before else found[0], text)
    try:
        made = workload(changed)
        space_for(made, target)
    except InputError:
        return None
    return made
