"""The nearest spelling that works of what people write and the language does not have."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from itertools import accumulate

Source = Callable[[ast.expr], str]
"""The text of a node."""

_READ = "its values are an operand's, such as s[i]"
FUNCTIONS = {
    **dict.fromkeys(("asin", "acos", "rand", "randn"), _READ),
    **dict.fromkeys(("power", "powf"), "write pow(x, n)"),
    **dict.fromkeys(("clamp", "clip"), "write min(max(x, a), b)"),
    **dict.fromkeys(("where", "iif", "cond"), "write select(x > 0, a, b)"),
    **dict.fromkeys(("fabs", "absolute"), "write abs(x)"),
    **dict.fromkeys(("float", "float64", "double"), "write float32(x), or a line y: float64"),
    **dict.fromkeys(("int", "int8", "int32", "long"), "write a line y: int32, which rounds y"),
    **dict.fromkeys(("swish", "SiLU"), "write silu(x)"),
    **dict.fromkeys(("rint", "nearbyint"), "write round(x)"),
    "frac": "write x - floor(x)",
    "cbrt": "write exp(log(x) / 3)",
    "softplus": "write max(x, 0) + log1p(exp(-abs(x)))",
    "leaky_relu": "write select(x > 0, x, 0.01 * x)",
    "elu": "write select(x > 0, x, expm1(x))",
    "half": "write float16(x)",
    "len": "write size(i)",
    "einsum": "write sum[k](a[i, k] * b[k, j])",
    "matmul": "write sum[k](a[i, k] * b[k, j])",
    "dot": "write sum[k](a[k] * b[k])",
    "concat": "write inside(a[i], 0) + inside(b[i - 3], 0)",
    "cat": "write inside(a[i], 0) + inside(b[i - 3], 0)",
}
"""Spellings for functions that do not exist."""
REDUCERS = {
    **dict.fromkeys(("std", "stddev"), "write sqrt(var[j](x[j]))"),
    **dict.fromkeys(("avg", "average"), "write mean[j](x[j])"),
    **dict.fromkeys(("amax", "maximum"), "write max[j](x[j])"),
    **dict.fromkeys(("amin", "minimum"), "write min[j](x[j])"),
    "norm": "write sqrt(sum[j](x[j] * x[j]))",
    "any": "write max[j](select(x[j] > 0, 1, 0))",
    "all": "write min[j](select(x[j] > 0, 1, 0))",
    "count": "write sum[j](select(x[j] > 0, 1, 0))",
    "cumsum": "write sum[k: k <= j](x[k])",
    "cumprod": "write prod[k: k <= j](x[k])",
    "log_softmax": "write x[j] - logsumexp[j](x[j])",
    "dot": "write sum[j](a[j] * b[j])",
    **dict.fromkeys(("median", "sort", "argsort", "topk", "mode", "quantile"), ""),
}
"""Spellings for reducers that do not exist."""
CHARACTERS = {
    "@": "a product is sum[k](a[i, k] * b[k, j])",
    "&": "conditions are joined by 'and'; bits are x // 16 % 2",
    "|": "one of two conditions is select(a, 1, select(b, 1, 0)) > 0",
    "^": "a square is x * x",
    "~": "the opposite of a < b is a >= b",
    "?": "a choice is select(c, a, b)",
    '"': "there are no strings",
    "'": "there are no strings",
}
"""Spellings for characters that the language does not use."""
EITHER = "write select(a or b, 1, 0) > 0 for a or b"
RECURRENCE = (
    "a stage may read itself one step before, such as inside(h[t - 1], 0), or be a sum over s[k] "
    "where k <= t"
)
MOST_LISTED = 120
"""Characters of a list of known names."""
CASTS = ("bfloat16", "float16", "float32")
"""Functions that lists of what is known leave out."""


def unknown(name: str, known: Collection[str], spelt: dict[str, str]) -> str:
    """Suggest a replacement for an unknown name: a spelling, the nearest name, or known names.
    No nearest name is sought for a name that ``spelt`` maps to nothing.
    """
    if spelt.get(name):
        return spelt[name]
    similar = name not in spelt and len(name) > 3
    near = get_close_matches(name, known, 1, 0.75) if similar else []
    return f"did you mean {near[0]}?" if near else f"known: {_listed(list(known))}"


def _listed(names: Sequence[str]) -> str:
    """Return as many names as a message has room for."""
    ends = accumulate(len(name) + 2 for name in names)
    count = sum(end <= MOST_LISTED for end in ends)
    more = f" and {len(names) - count} more" if count < len(names) else ""
    return ", ".join(names[:count]) + more


def instead(node: ast.expr, source: Source) -> str | None:
    """Suggest a replacement for a node that is not part of the language, if there is one."""
    match node:
        case ast.BinOp(left, ast.Pow(), right):
            base = source(left)
            plain = isinstance(left, ast.Name | ast.Subscript | ast.Call | ast.Constant)
            return _power(base if plain else f"({base})", right)
        case ast.BinOp(left, ast.RShift() | ast.LShift() as shift, ast.Constant(value=int() as by)):
            operator = "//" if isinstance(shift, ast.RShift) else "*"
            return f"write {source(left)} {operator} {2 ** min(by, 62)}"
        case ast.IfExp(test, body, orelse):
            return f"write select({source(test)}, {source(body)}, {source(orelse)})"
        case ast.BoolOp(op=ast.Or()):
            return EITHER
        case ast.BoolOp():
            return "'and' joins conditions of select and where; write select(a and b, x, y)"
        case ast.UnaryOp(op=ast.UAdd(), operand=inner):
            return f"write {source(inner)}"
        case ast.UnaryOp(op=ast.Not()):
            return "'not' is for conditions of select; write select(not a < b, x, y)"
        case ast.Slice():
            return "write an index for each dimension: x[i, j], or x[i + 3] for a part"
        case ast.Constant(value=bool() as value):
            return f"write {int(value)}"
        case ast.Constant():
            return "write an index for each dimension, such as x[i, j]"
        case ast.Subscript(value=ast.Subscript(value=array, slice=first), slice=second):
            return f"write {source(array)}[{source(first)}, {source(second)}]"
        case ast.Subscript():
            return "brackets follow names; write a stage of its own, s[i] = ..., and read s[i]"
        case ast.Set() | ast.Dict():
            return "write a constant, such as C: float32[2] = {1, 2}, and read C[i]"
        case ast.List() | ast.Tuple() | ast.ListComp():
            return "write a stage for each value"
        case ast.Attribute(attr="T"):
            return "write x[j, i] for the transpose"
        case ast.Attribute(attr="shape"):
            return "write size(i) for the extent of an axis"
        case ast.Call(func=ast.Attribute(attr=name)):
            return f"write {name}(...), or {name}[j](...) for a reducer, without what is before '.'"
    return None


def _power(base: str, exponent: ast.expr) -> str:
    match exponent:
        case ast.Constant(value=int() as times) if 2 <= times <= 4:
            return f"write {' * '.join([base] * times)}"
        case ast.Constant(value=0.5):
            return f"write sqrt({base})"
    inner = base[1:-1] if base.startswith("(") else base
    return f"write pow({inner}, n)"
