"""Rules of operators that compute each element from one element of each argument."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.index import Indices
from tilewright.scheduler.torch.translation.nodes import arguments, fake, name_of
from tilewright.scheduler.torch.translation.rules import pointwise
from tilewright.scheduler.torch.translation.values import (
    LARGEST,
    Compared,
    Joined,
    Negated,
    Value,
    chosen,
    condition,
    number,
)

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation

FUNCTIONS = (
    "exp", "tanh", "erf", "sigmoid", "relu", "sqrt", "rsqrt", "abs", "log", "exp2", "floor", "silu",
    "sin", "cos", "log1p", "expm1", "atan",
)  # fmt: skip
"""The functions that the language calls alike."""

ONCE = {
    "neg": "(-{0})",
    "reciprocal": "(1 / {0})",
    "cosh": "(0.5 * exp({0}) + 0.5 * exp(-{0}))",
    "ceil": "(-floor(-{0}))",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "atan2": "atan2({0}, {1})",
    "fmod": "fmod({0}, {1})",
    "fma": "({0} * {1} + {2})",
}
"""Operators as text that has each argument once."""

SEVERAL = {
    "square": "({0} * {0})",
    "sign": "select({0} > 0, 1, select({0} < 0, -1, 0))",
    "sgn": "select({0} > 0, 1, select({0} < 0, -1, 0))",
    "trunc": "select({0} < 0, -floor(-{0}), floor({0}))",
    "tan": "(sin({0}) / cos({0}))",
    "asin": "atan2({0}, sqrt((1 - {0}) * (1 + {0})))",
    "acos": "atan2(sqrt((1 - {0}) * (1 + {0})), {0})",
    "sinh": "(0.5 * expm1({0}) - 0.5 * expm1(-{0}))",
    "atanh": "(0.5 * log1p(2 * {0} / (1 - {0})))",
}
"""Operators as text that has an argument several times."""

FLOAT_REMAINDER = (
    "(fmod({0}, {1}) + select(fmod({0}, {1}) < 0, select({1} > 0, {1}, 0), "
    "select(fmod({0}, {1}) > 0, select({1} < 0, {1}, 0), 0)))"
)
"""The remainder that has the sign of the divisor."""
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
EXPONENTS = {
    0: "1",
    1: "{0}",
    2: "({0} * {0})",
    3: "({0} * {0} * {0})",
    4: "({0} * {0} * {0} * {0})",
    0.5: "sqrt({0})",
    -0.5: "rsqrt({0})",
    -1: "(1 / {0})",
    -2: "(1 / ({0} * {0}))",
}
"""The powers that the language spells."""


def _numbers(translation: Translation, node: fx.Node, indices: Indices) -> list[str]:
    """Return the arguments by position as numbers."""
    return [number(translation.argument(given, indices)) for given in node.args]


@pointwise(*FUNCTIONS)
def _function(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    (text,) = _numbers(translation, node, indices)
    return f"{name_of(node)}({text})"


@pointwise(*ONCE)
def _once(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    return ONCE[name_of(node)].format(*_numbers(translation, node, indices))


@pointwise(*SEVERAL)
def _several(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    return SEVERAL[name_of(node)].format(
        *(translation.repeatable_argument(given, indices) for given in node.args)
    )


@pointwise("inductor_force_stride_order", cheap=True)
def _laid_out(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    """Return the same element: a kernel writes it where the strides of the node say."""
    return translation.value(node.args[0], indices)


@pointwise("gelu")
def _gelu(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    name = "gelu_tanh" if given["approximate"] == "tanh" else "gelu"
    return f"{name}({number(translation.argument(given['self'], indices))})"


@pointwise("add", "sub", "rsub", "mul")
def _arithmetic(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given, name = arguments(node), name_of(node)
    one, other = (translation.argument(given[side], indices) for side in ("self", "other"))
    if fake(node).dtype is torch.bool:
        return Joined(condition(one), condition(other), both=name == "mul")
    left, right = number(one), number(other)
    if given.get("alpha", 1) != 1:
        scale = number(translation.constant(given["alpha"]))
        if name == "rsub":
            left = f"({scale} * {left})"
        else:
            right = f"({scale} * {right})"
    if name == "rsub":
        left, right, name = right, left, "sub"
    return f"({left} {'*' if name == 'mul' else '+' if name == 'add' else '-'} {right})"


@pointwise("div")
def _divide(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    left, right = (number(translation.argument(given[k], indices)) for k in ("self", "other"))
    rounding = given.get("rounding_mode")
    if rounding is None:
        return f"({left} / {right})"
    if fake(node).dtype.is_floating_point:
        return f"{rounding}({left} / {right})"  # floor or trunc
    raise Gap(f"division with rounding_mode={rounding}")


@pointwise("floor_divide", "remainder", cheap=True)
def _whole(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given, name = arguments(node), name_of(node)
    if name == "remainder" and fake(node).dtype.is_floating_point:
        sides = (translation.repeatable_argument(given[k], indices) for k in ("self", "other"))
        return FLOAT_REMAINDER.format(*sides)
    if fake(node).dtype.is_floating_point or not isinstance(given["other"], int):
        raise Gap(f"{name} of floats, or by a tensor")
    text = number(translation.argument(given["self"], indices))
    return f"({text} {'//' if name == 'floor_divide' else '%'} {given['other']})"


@pointwise("pow")
def _pow(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    base, exponent = arguments(node).get("self"), arguments(node)["exponent"]
    if not isinstance(exponent, fx.Node) and exponent in EXPONENTS:
        return EXPONENTS[exponent].format(translation.repeatable_argument(base, indices))
    if not fake(node).dtype.is_floating_point:
        raise Gap(f"pow of {fake(node).dtype}")
    texts = (number(translation.argument(given, indices)) for given in (base, exponent))
    return f"pow({', '.join(texts)})"


@pointwise("round")
def _round(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    if given.get("decimals"):
        raise Gap("round to decimals")
    return f"round({number(translation.argument(given['self'], indices))})"


@pointwise("addcmul", "addcdiv")
def _added(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    whole, one, other, by = (
        number(translation.argument(given[k], indices))
        for k in ("self", "tensor1", "tensor2", "value")
    )
    scaled = one if given["value"] == 1 else f"{by} * {one}"
    return f"({whole} + {scaled} {'*' if name_of(node) == 'addcmul' else '/'} {other})"


@pointwise("leaky_relu")
def _leaky_relu(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    text = translation.repeatable_argument(given["self"], indices)
    slope = number(translation.constant(given["negative_slope"]))
    return f"select({text} > 0, {text}, {slope} * {text})"


@pointwise("clamp", "clamp_min", "clamp_max", "hardtanh")
def _clamp(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    least, greatest = given.get("min", given.get("min_val")), given.get("max", given.get("max_val"))
    text = number(translation.argument(given["self"], indices))
    if least is not None:
        text = f"max({text}, {number(translation.argument(least, indices))})"
    if greatest is not None:
        text = f"min({text}, {number(translation.argument(greatest, indices))})"
    return text


@pointwise(*COMPARISONS, cheap=True)
def _compare(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given, bound = node.args
    if isinstance(bound, float) and math.isinf(bound) and name_of(node) in ("eq", "ne"):
        text = number(translation.argument(given, indices))
        beyond = Compared(f"{text} > {LARGEST!r}" if bound > 0 else f"{text} < (-{LARGEST!r})")
        return beyond if name_of(node) == "eq" else Negated(beyond)
    left, right = _numbers(translation, node, indices)
    return Compared(f"{left} {COMPARISONS[name_of(node)]} {right}")


@pointwise("isnan", cheap=True)
def _isnan(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    text = translation.repeatable_argument(node.args[0], indices)
    return Compared(f"{text} != {text}")


@pointwise("isinf", cheap=True)
def _isinf(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    return Compared(f"isinf({translation.repeatable_argument(node.args[0], indices)})")


@pointwise("logical_xor", "bitwise_xor", cheap=True)
def _either(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    left, right = (_truth(translation, node, given, indices) for given in node.args)
    alone = (Joined(left, Negated(right), both=True), Joined(Negated(left), right, both=True))
    return Joined(*alone, both=False)


@pointwise("logical_and", "bitwise_and", "logical_or", "bitwise_or", cheap=True)
def _join(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    left, right = (_truth(translation, node, given, indices) for given in node.args)
    return Joined(left, right, both="and" in name_of(node))


@pointwise("logical_not", "bitwise_not", cheap=True)
def _not(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    return Negated(_truth(translation, node, node.args[0], indices))


def _truth(translation: Translation, node: fx.Node, given: Any, indices: Indices) -> Any:
    if fake(node).dtype is not torch.bool:
        raise Gap(f"{name_of(node)} of whole numbers")
    return condition(translation.argument(given, indices))


@pointwise("where")
def _where(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    when = condition(translation.argument(given["condition"], indices))
    then, otherwise = (translation.argument(given[k], indices) for k in ("self", "other"))
    if fake(node).dtype is torch.bool:
        holds = Joined(when, condition(then), both=True)
        return Joined(holds, Joined(Negated(when), condition(otherwise), both=True), both=False)
    return chosen(when, number(then), number(otherwise))


@pointwise("masked_fill")
def _masked_fill(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    when = condition(translation.argument(given["mask"], indices))
    filled, kept = (translation.argument(given[k], indices) for k in ("value", "self"))
    return chosen(when, number(filled), number(kept))


@pointwise("convert_element_type", "_to_copy", cheap=True)
def _convert(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    """Values within a region stay as precise as kernels compute them: only outputs are rounded."""
    source = node.args[0]
    assert isinstance(source, fx.Node)
    before, after = fake(source).dtype, fake(node).dtype
    value = translation.argument(source, indices)
    if after is torch.bool:
        return condition(value)
    if before.is_floating_point and not after.is_floating_point:
        raise Gap(f"{before} as {after}")
    if after is torch.float64 and before is not torch.float64:
        raise Gap("float64 within a region")
    return number(value)


@pointwise(
    "full", "scalar_tensor", "full_like", "zeros_like", "ones_like", "zeros", "ones", cheap=True
)
def _full(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    name, given = name_of(node), arguments(node)
    if name in ("full", "full_like"):
        value = translation.constant(given["fill_value"])
    elif name == "scalar_tensor":
        value = translation.constant(given["s"])
    else:
        value = translation.constant(0 if name.startswith("zeros") else 1)
    return condition(value) if fake(node).dtype is torch.bool else number(value)
