"""Attention whose number of keys is given at the call: equal to the program at every number, and
never beyond the keys of a call."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.fenced import Ending
from tilewright.scheduler.functions.open_function import OpenFunction
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import as_target
from tilewright.spaces.workloads.calling import calling_of

LARGEST = 150
SIZES = (1, 2, 15, 16, 17, 63, 64, 65, 96, 97, 128, 129, 149, LARGEST)
EXTENTS = {"b": 2, "h": 2, "i": 7, "d": 20, "e": 9, "x": 1030}
SCORES = "s[h,i,j] = sum[d](q[h,i,d] * k[j,h,d]) * 0.3"
SUMS = "y[h,i,e] = sum[j](softmax[j]({}) * v[j,h,e])"
PROGRAMS = {
    "plain": (SCORES, SUMS.format("s[h,i,j]")),
    "beside keys": (SCORES, SUMS.format("s[h,i,j] + c[j] - 0.01 * j")),
    "behind rows": ("where j <= 20 * i + 3", SCORES, SUMS.format("s[h,i,j]")),
    "keys of a table": (
        "t: int32[j](index < 150)",
        "y[h,i,e] = sum[j](softmax[j](sum[d](q[h,i,d] * k[t[j],h,d])) * v[j,h,e])",
    ),
    "in a window": ("where j > 30 * i - 40", "where j <= 30 * i", SCORES, SUMS.format("s[h,i,j]")),
    "where it says": ("where g[j,i] > 0", SCORES, SUMS.format("s[h,i,j]")),
    "lengths": (
        "n: int32[b](index < 150)", "where j < n[b]",
        "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[j,b,h,d])) * v[j,b,h,e])",
    ),
    "deep keys of bfloat16": (
        "k: bfloat16[j, h, x]", "v: bfloat16[j, h, e]",
        "y[h,i,e] = sum[j](softmax[j](sum[x](q[h,i,x] * k[j,h,x]) * 0.1) * v[j,h,e])",
    ),
    "total and best": (
        SCORES, "m[h,i] = max[j](s[h,i,j])", "t[h,i] = sum[j](exp(s[h,i,j] - m[h,i]))",
        "y[h,i] = m[h,i] + log(t[h,i])", "p[h,i] = argmax[j](s[h,i,j])",
        "-> y, p",
    ),
}  # fmt: skip
"""Programs whose keys are the outermost axis in memory."""


def space_of(name: str, keys: int = LARGEST, threads: int = 2):
    text = "\n".join(PROGRAMS[name])
    extents = {axis: extent for axis, extent in EXTENTS.items() if f"{axis}" in axes_of(text)}
    return space_for(workload(text, j=keys, **extents), as_target(f"cpu:threads={threads}"))


def axes_of(text: str) -> set[str]:
    return {axis for group in text.split("[")[1:] for axis in group.split("]")[0].split(",")}


def places(name: str) -> tuple[list[int | None], list[int | None]]:
    """Return the dimension of each array that is the keys'."""
    few, many = (calling_of(space_of(name, keys).workload) for keys in (LARGEST - 1, LARGEST))
    pairs = zip((*few.inputs, *few.outputs), (*many.inputs, *many.outputs), strict=True)
    found = [0 if one.shape != other.shape else None for one, other in pairs]
    return found[: len(many.inputs)], found[len(many.inputs) :]


def kernels(name: str) -> list[OpenFunction]:
    """Return a few kernels that differ in how they read keys and matrices, split or not; other ones
    of each program."""
    space = space_of(name)
    ways = {}
    for schedule in map(space.schedule, space.sample(np.random.default_rng(5), 200)):
        values = schedule.values
        if space.why_not_open(schedule, "j") is None:
            layouts = values["key_layout"], values["value_layout"]
            ways[values["splits"] > 1, *layouts] = schedule
    chosen = [ways[way] for way in sorted(ways)][list(PROGRAMS).index(name) % 3 :: 3]
    return [OpenFunction(space, each, "j", *places(name)) for each in chosen]


def given(name: str, keys: int, memory: list[Ending]) -> list[np.ndarray]:
    """Return arrays that end where their ``memory`` ends."""
    rng, found = np.random.default_rng(keys), []
    for operand in calling_of(space_of(name, keys).workload).inputs:
        values = rng.standard_normal(operand.shape)
        if operand.dtype == "int32":
            values = rng.integers(0, LARGEST, operand.shape)
        memory.append(Ending(operand.bytes, operand.element.bytes))
        found.append(memory[-1].array(operand))
        found[-1][...] = values
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_the_program_at_every_number_of_keys(name):
    calls = kernels(name)
    assert {call.schedule.template for call in calls} == {"chained"}
    for keys in SIZES:
        memory: list[Ending] = []
        arrays = given(name, keys, memory)
        made = space_of(name, keys).workload.program
        names = [each.name for each in made.operands]
        wanted = evaluate(made, dict(zip(names, arrays, strict=True)))
        for call in calls:
            found = call(*arrays)
            several = found if isinstance(found, tuple) else (found,)
            for output, one in zip(made.outputs, several, strict=True):
                np.testing.assert_allclose(
                    one, wanted[output.name], rtol=1e-4, atol=1e-5, err_msg=f"{keys} {call}"
                )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("y[h,e] = sum[j](softmax[j](sum[d](q[h,d] * k[h,j,d])) * v[j,e])", "outermost axis of k"),
        ("y[h,e] = sum[j](softmax[j](sum[d](q[h,d] * k[j,d])) * v[j,e] * c[e,j])", "axis of c"),
        ("y[h,e] = sum[j](softmax[j](sum[d](q[h,d] * k[j,d])) * v[j+1,e])", "no index by itself"),
        (
            "s[h,j] = sum[d](q[h,d] * k[j,d]); n[h] = sum[j](1)\n"
            "y[h,e] = sum[j](softmax[j](s[h,j]) * v[j,e]) / n[h]",
            "n is the number of keys",
        ),
    ],
)
def test_what_cannot_be_open_says_why(text, reason):
    space = space_for(workload(text, h=2, j=64, d=16, e=16), as_target("cpu"))
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    assert schedule.template == "chained"
    with pytest.raises(InputError, match=reason):
        space.lower_open(schedule, "j")
