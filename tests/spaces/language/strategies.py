"""Random programs as text with extents: chains of maps and reductions over up to four axes."""

import re

from hypothesis import strategies as st

AXES = "abcd"
DECLARED = {
    "t": "t: int32[5](index < 3)",
    "s": "s: int32[6](sorted < 4)",
    "n": "n: int8[5]",
    "v": "v: float32[7]",
    "y": "y: float32[3, 3, 3](order=(2, 0, 1), leading=5)",
}
LEAVES = [
    "1",
    "0.5",
    "1e-05",
    "{0}",
    "(2 * {0} + {1}) // 2 % 3",
    "n[{0}]",
    "x[{0}, {1}]",
    "x[{1}, s[{0}]]",
    "y[{0}, {1}, {2}]",
    "y[0, {1}, {1}]",
    "inside(v[2 * {0} + {1} - 1], 0)",
    "inside(v[{0} - {1}], -1.5)",
    "v[t[{0}] + {1}]",
    "u",
    "argmin[d, a](n[a] % 2 * d)",
    "argmax[b](n[b] % 3 + {0})",
    "prod[a](v[a + 2 * {0}] + 1)",
]
CALLS = ["exp(-({}))", "tanh({})", "-({})", "abs({})", "relu({})", "2 / (3 + ({}))"]


@st.composite
def expressions(draw, axes, stages, depth):
    """Text over ``axes`` and earlier stages; every read stays inside its operand."""
    axis = st.sampled_from(axes)
    kinds = ["leaf"] if depth == 0 else ["leaf", "sum", "call", "select", "reduce", "sugar"]
    inner = expressions(axes, stages, depth - 1)
    match draw(st.sampled_from(kinds)):
        case "sum":
            operator = draw(st.sampled_from("+-*"))
            return f"({draw(inner)}) {operator} ({draw(inner)})"
        case "call":
            return draw(st.sampled_from(CALLS)).format(draw(inner))
        case "select":
            left, right = draw(axis), draw(axis)
            sign = draw(st.sampled_from(["<", "<=", "==", "!=", ">", ">="]))
            return f"select({left} {sign} {right}, {draw(inner)}, {draw(inner)})"
        case "reduce" | "sugar" as kind:
            names = ["sum", "max", "min"] if kind == "reduce" else ["mean", "var", "logsumexp"]
            over = draw(st.lists(st.sampled_from(AXES), min_size=1, max_size=2, unique=True))
            names += ["softmax"] * (set(over) <= set(axes))
            body = draw(expressions(sorted({*axes, *over}), stages, depth - 1))
            return f"{draw(st.sampled_from(names))}[{', '.join(over)}]({body})"
    known = [(name, own) for name, own in stages if set(own) <= set(axes)]
    if known and draw(st.booleans()):
        name, own = draw(st.sampled_from(known))
        return f"{name}[{', '.join(own)}]"
    return draw(st.sampled_from(LEAVES)).format(draw(axis), draw(axis), draw(axis))


@st.composite
def programs(draw):
    """Text and extents, each from 1 to 3."""
    stages, lines = [], []
    for number in range(draw(st.integers(1, 3))):
        axes = draw(st.lists(st.sampled_from(AXES), min_size=1, max_size=3, unique=True))
        body = draw(expressions(axes, stages, 3))
        lines.append(f"z{number}[{', '.join(axes)}] = {body}")
        stages.append((f"z{number}", axes))
    if draw(st.booleans()):
        left, right = draw(st.permutations(AXES))[:2]
        lines.insert(0, f"where {left} {draw(st.sampled_from(['<=', '<', '!=']))} {right} + 1")
    lines.append("-> " + ", ".join(name for name, _ in stages))
    text = "\n".join(lines)
    words = set(re.findall(r"[a-z]+", text))
    declared = [line for name, line in DECLARED.items() if name in words]
    extents = {axis: draw(st.integers(1, 3)) for axis in AXES if axis in words}
    return "\n".join([*declared, text]), extents
