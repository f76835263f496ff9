"""Random programs without reductions: permuted, broadcast, gathered and selected operands."""

from __future__ import annotations

import random

from tilewright.spaces.language import Program, program

EXTENTS = (1, 2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64)
AXES = "abcd"


def random_map(
    seed: int, elements: int = 40_000, dtypes: tuple[str, ...] = ("float32",)
) -> Program:
    """A program of up to four axes and at most so many elements, of operands in ``dtypes``."""
    choose = random.Random(seed)
    axes = AXES[: choose.randint(1, 4)]
    extents = {axis: choose.choice(EXTENTS) for axis in axes}
    while _size(extents) > elements:
        extents[max(extents, key=lambda axis: extents[axis])] = choose.choice((1, 2, 3))
    terms = [_term(choose, f"x{i}", extents) for i in range(choose.randint(1, 3))]
    body = terms[0]
    for term in terms[1:]:
        body = choose.choice(("{} + {}", "{} * {}", "max({}, {})")).format(body, term)
    body = choose.choice(("{}", "relu({})", "0.5 * ({})", "silu({})", "-({})")).format(body)
    out = "".join(choose.sample(axes, len(axes)))
    lines = [f"x{i}: {choose.choice(dtypes)}" for i in range(len(terms)) if f"x{i}[" in body]
    lines += [f"t: int32[{extents[axes[0]]}](index < {extents[axes[-1]]})"] * ("t[" in body)
    order = choose.sample(range(len(axes)), len(axes))
    lines.append(f"y: {choose.choice(dtypes)}(order={tuple(order)})")
    lines.append(f"y[{', '.join(out)}] = {body}")
    return program("\n".join(lines), **extents)


def _size(extents: dict[str, int]) -> int:
    size = 1
    for extent in extents.values():
        size *= extent
    return size


def _term(choose: random.Random, name: str, extents: dict[str, int]) -> str:
    """A read of an operand along some of the axes, or something else that depends on them."""
    axes = list(extents)
    chosen = choose.sample(axes, choose.randint(1, len(axes)))
    indices = list(chosen)
    match choose.randint(0, 5):
        case 0:
            at = choose.randrange(len(indices))
            extent = extents[indices[at]]
            indices[at] = f"({indices[at]} + {max(1, extent // 2)}) % {extent}"
        case 1:
            indices[choose.randrange(len(indices))] = f"t[{axes[0]}]"
        case 2:
            left, right = choose.choice(axes), choose.choice(axes)
            condition = f"{left} {choose.choice(('<', '<=', '==', '>'))} {right} + 1"
            return f"select({condition}, {name}[{', '.join(indices)}], {left})"
    return f"{name}[{', '.join(indices)}]"
