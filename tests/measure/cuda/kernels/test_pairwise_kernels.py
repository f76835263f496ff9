"""Pairwise kernels of a GPU on the emulator: gradients of attention, and other sums over pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.measure.cuda.emulator.planting import Case, check_all_right, deferred
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tests.spaces.pairwise_programs import GRADIENTS, OTHERS, backward, other
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.pairwise.template import CudaPairwise
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.gradients import gradient
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload

H200 = cuda_target("sm_90a")
HALF = "bfloat16"
SCHEDULES: tuple[dict[str, Value], ...] = (
    {"fragments": 1, "tile": 16, "warps": 2, "stages": 2},
    {"fragments": 2, "tile": 32, "warps": 1, "stages": 3},
    {"fragments": 1, "tile": 48, "warps": 4, "stages": 2},
)
DOWN = {"order": "products down"}


def lowered(work: Workload, values: dict[str, Value], target: str = "sm_90a") -> Case:
    """The kernel whose passes have the decisions ``values``, else the first ones."""
    template = CudaPairwise(work, cuda_target(target))
    decided = {
        d.name: values.get(d.name.partition("_")[2], d.values[0]) for d in template.decisions
    }
    return work, template.lower(Schedule("pairwise", tuple(decided.items())))


@deferred
def of_attention(name: str, values: dict[str, Value], kind: str = HALF) -> Case:
    return lowered(backward(name, kind), values)


@deferred
def of_other(name: str, values: dict[str, Value]) -> Case:
    return lowered(other(name, HALF), values)


CASES = {name: of_attention(name, SCHEDULES[n % 3]) for n, name in enumerate(GRADIENTS)}
CASES |= {name: of_other(name, SCHEDULES[n % 3]) for n, name in enumerate(OTHERS)}
CASES |= {
    f"{name}, float16": of_attention(name, SCHEDULES[n % 3], "float16")
    for n, name in enumerate(("causal", "groups", "one key"))
}
CASES["causal, tall tiles"] = of_attention("causal", {**SCHEDULES[1], **DOWN})
BROKEN = {
    "masked": of_attention("causal", SCHEDULES[0]),
    "of groups": of_attention("groups", SCHEDULES[0]),
    "of documents": of_other("documents", SCHEDULES[0]),
}
LAST = r"((?:.*\n)*.*)"
"""Before the last match."""
BUGS = {  # what is broken: kernel, pattern, replacement of its first occurrence
    "a key too many": ("masked", r"(-1 \* p0\[r\] \+) 5\) >= 0", r"\1 6) >= 0"),
    "a row too many": (
        "masked",
        rf"{LAST}(p0\[r\] \+ -1 \* t0 \+) 5\) >= 0\)\)",
        r"\1\2 6) >= 0))",
    ),
    "a tile half inside is taken for whole": (
        "masked",
        r"first_point >= whole_first && tw_least\(.*?\) <= whole_last",
        "true",
    ),
    "a tile half inside is taken for hidden": (
        "masked",
        r"last_key > first_point\) \{\n(?= +const u32 stage)",
        "last_key > first_point + 16) {\n",
    ),
    "delta of the rows before": (
        "masked",
        r"scalar0 \+ batch \* 70 \+ point",
        "scalar0 + batch * 70 + tw_most(point - 1, 0)",
    ),
    "delta of the first product": (
        "masked",
        rf"{LAST}load_global\(scalar0 \+ batch \* 70",
        r"\1load_global(scalar0 + 0 * 70",
    ),
    "the last term of delta is left out": ("masked", r"term < 24", "term < 23"),
    "lanes do not join delta": ("masked", r"total \+= tw::shuffle_xor\(total, 4\);", ""),
    "saved values of the next row": ("masked", r"buffer5 \+ \(70 \* b1 \+ t0\)", "buffer5 + (t0)"),
    "numbers of one another": ("masked", r"stage \+ 2112 \+", "stage + 2048 +"),
    "a factor that all weights have is left out": ("masked", r" \* 0\.204\d+f\)", ")"),
    "weights of the other sum": ("masked", r"pack2<bf16>\(pairs1", "pack2<bf16>(pairs0"),
    "a stage is read before it is full": (
        "masked",
        r"tw::cp_async_wait<0>\(\);\n    tw::sync_block\(\);",
        "tw::sync_block();",
    ),
    "a stage is filled while it is read": ("masked", r"\(step \+ 1\) % 2", "step % 2"),
    "the last tile is not visited": ("masked", r"tile < end;", "tile + 16 < end;"),
    "points beyond the last count": ("masked", r"tile \+ at < 70 && ", ""),
    "points of the first warp": ("masked", r"first_point \+ warp \* 16", "first_point + 0"),
    "hidden infinities are added": ("masked", r"odd != odd, 0", "false, 0"),
    "hidden infinities of the first tiles alone": (
        "masked",
        r"\(end \+ 15\) / 16 \* 16",
        "(end - 16)",
    ),
    "one head of a group": ("of groups", r"end = \d+", "end = 33"),
    "heads of a group mixed": ("of groups", rf"{LAST}= s / 33 % 2", r"\1= 0 * s"),
    "groups mixed": ("of groups", r"const int b1 = batch % 2", "const int b1 = 0"),
    "other documents are seen": ("of documents", r"if \(!\(", "if (false && !("),
}


class TestPairwise(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


def space_of(work: Workload) -> Space:
    return Space(work, H200, [CudaPairwise(work, H200)])


@pytest.mark.parametrize("name", ["groups", "window, softcap, slopes"])
def test_random_schedules_agree(emulator: Emulator, name: str) -> None:
    space = space_of(backward(name, HALF))
    rows = space.sample(np.random.default_rng(3), 3)
    check_all_right(emulator, [(space.workload, space.lower(space.schedule(r))) for r in rows])


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADIENTS)
def test_many_random_schedules_agree(emulator: Emulator, name: str) -> None:
    space = space_of(backward(name, HALF))
    rows = space.sample(np.random.default_rng(5), 12)
    check_all_right(emulator, [(space.workload, space.lower(space.schedule(r))) for r in rows])


@pytest.mark.parametrize("is_causal", [False, True])
def test_derivatives_are_those_of_autograd_in_float64(emulator: Emulator, is_causal: bool) -> None:
    mask = "mask=causal" if is_causal else ""
    text = f"attention b=1 h=4 i=40 j=40 d=16 kv=2 dtype={HALF} {mask}"
    work, kernel = lowered(workload_of(gradient(text, "q,k,v", "y,lse")), SCHEDULES[1])
    rng, cast = np.random.default_rng(0), dtype(HALF).cast
    shapes = {"q": (1, 4, 40, 16), "k": (1, 2, 40, 16), "v": (1, 2, 40, 16)}
    given = {name: cast(rng.normal(size=shape)) for name, shape in shapes.items()}
    leaves = {
        name: torch.tensor(array.astype(np.float64), requires_grad=True)
        for name, array in given.items()
    }
    y = functional.scaled_dot_product_attention(
        *leaves.values(), is_causal=is_causal, enable_gqa=True
    )
    dy = cast(rng.normal(size=tuple(y.shape)))
    wanted = torch.autograd.grad(y, tuple(leaves.values()), torch.tensor(dy.astype(np.float64)))
    with torch.no_grad():
        scores = leaves["q"] @ leaves["k"].repeat_interleave(2, 1).transpose(2, 3) / 4
        hidden = torch.ones(40, 40, dtype=torch.bool).triu(1)
        lse = (scores.masked_fill(hidden, -torch.inf) if is_causal else scores).logsumexp(-1)
    known = {**given, "y": cast(y.detach().numpy()), "dy": dy}
    known["lse"] = lse.numpy().astype(np.float32)
    result = emulator.run(kernel, {o.name: known[o.name] for o in work.inputs}, INTERLEAVINGS[0])
    assert result.error_kind is None, result.error_text
    for name, derivative in zip(shapes, wanted, strict=True):
        found = result.outputs[f"d{name}"].astype(np.float64)
        np.testing.assert_allclose(found, derivative, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("name", ["plain", "causal"])
def test_weights_beyond_float16_are_added_one_by_one(emulator: Emulator, name: str) -> None:
    """The derivatives of scores leave float16; those of queries and keys do not."""
    work, kernel = lowered(backward(name, "float16"), SCHEDULES[0])
    inputs = work.make_inputs(0)
    for operand, size in (("q", 1e-4), ("k", 1e-4), ("v", 4e3), ("dy", 4e3)):
        inputs[operand] = (inputs[operand] * size).astype(np.float16)
    wanted = evaluate(work.program, inputs)
    assert np.abs(wanted["dq"]).max() < 6e4
    result = emulator.run(kernel, inputs, INTERLEAVINGS[0])
    assert result.error_kind is None, result.error_text
    for output in ("dq", "dk"):
        size = np.abs(wanted[output]).max()
        found = result.outputs[output].astype(np.float64)
        np.testing.assert_allclose(found, wanted[output], rtol=2**-9, atol=2e-3 * size)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize(
    ("head", "values"),
    [
        (64, {"fragments": 1, "tile": 64, "warps": 4, "blocks_per_sm": 2}),
        (128, {"fragments": 1, "tile": 32, "warps": 8, "blocks_per_sm": 1}),
    ],
)
def test_kernels_compile_for_the_gpu_without_spills(
    head: int, values: dict[str, Value], mask: str, target: str
) -> None:
    text = f"attention b=1 h=16 i=4096 j=4096 d={head} mask={mask} dtype={HALF}"
    _, kernel = lowered(workload_of(gradient(text, "q,k,v", "y,lse")), values, target)
    text = kernel.source.text  # type: ignore[union-attr]
    built = compile_cubin(device_text(text) + text, target, 120, lambda: False)
    assert built.cubin is not None, built.log[:2000]
    assert built.log.count("bytes spill stores") == built.log.count(" 0 bytes spill stores") == 3
