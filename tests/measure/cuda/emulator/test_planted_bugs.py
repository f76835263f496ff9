"""Whole kernels run right in every interleaving; with a bug planted, some interleaving shows it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.cuda_kernels import outcomes, output_of
from tests.measure.cuda.example_kernels import Example, hopper, simt, tensor_core

EXAMPLES = {"simt": simt, "tensor_core": tensor_core, "hopper": hopper}

# example, what is replaced, by what
BUGS = {
    "simt: no barrier after loading": (
        "simt",
        "    tw::sync_block();\n  }",
        "  }",
    ),
    "simt: one buffer for two": ("simt", "s + k % 2 * 4096", "s"),
    "simt: transposed store off by one": ("simt", "(t % 4 * 2 + i) * 64", "(t % 4 * 2 + i) * 63"),
    "simt: short of shared memory": ("simt", "k % 2 * 4096", "k % 2 * 4160"),
    "tensor_core: waits for one group too few": (
        "tensor_core",
        "cp_async_wait<1>",
        "cp_async_wait<2>",
    ),
    "tensor_core: no barrier after the wait": (
        "tensor_core",
        "    tw::sync_block();\n    if (k + 2",
        "    if (k + 2",
    ),
    "tensor_core: loads into the stage in use": ("tensor_core", "load(k + 2);", "load(k + 3);"),
    "tensor_core: lost commit": (
        "tensor_core",
        "load(k + 2);\n    tw::cp_async_commit();",
        "load(k + 2);",
    ),
    "tensor_core: reads with another swizzle": (
        "tensor_core",
        "ldmatrix_x4(x[i], a + a_at(wm + i * 16 + lane % 16, kk + lane / 16 * 8))",
        "ldmatrix_x4(x[i], a + (a_at(wm + i * 16 + lane % 16, kk + lane / 16 * 8) ^ 16))",
    ),
    "tensor_core: B not transposed": ("tensor_core", "ldmatrix_x2_trans", "ldmatrix_x2"),
    "hopper: consumer does not wait": ("hopper", "tw::mbarrier_wait(full + stage * 8, phase);", ""),
    "hopper: producer does not wait": (
        "hopper",
        "          tw::mbarrier_wait(empty + stage * 8, phase ^ 1);\n",
        "",
    ),
    "hopper: wrong parity": (
        "hopper",
        "wait(full + stage * 8, phase)",
        "wait(full + stage * 8, phase ^ 1)",
    ),
    "hopper: expects half the bytes": (
        "hopper",
        "24576);\n          tw::tma",
        "12288);\n          tw::tma",
    ),
    "hopper: a stage too many": ("hopper", "++stage == S", "++stage == S + 1"),
    "hopper: releases before the products are done": (
        "hopper",
        "tw::wgmma_wait<0>();\n        if (t % 128 < 2) tw::mbarrier_arrive_remote"
        "(tw::map_shared(empty + stage * 8, t % 128));",
        "if (t % 128 < 2) tw::mbarrier_arrive_remote"
        "(tw::map_shared(empty + stage * 8, t % 128));\n        tw::wgmma_wait<0>();",
    ),
    "hopper: no wait for the products": ("hopper", "tw::wgmma_wait<0>();", ""),
    "hopper: no commit of the products": ("hopper", "tw::wgmma_commit();", ""),
    "hopper: no wgmma fence": ("hopper", "tw::wgmma_fence();", ""),
    "hopper: stride of half an atom": ("hopper", "stage * 8192, 16, 1024", "stage * 8192, 16, 512"),
    "hopper: steps too far along K": ("hopper", "db + kk * 2", "db + kk * 4"),
    "hopper: releases its own stage only": (
        "hopper",
        "tw::map_shared(empty + stage * 8, t % 128)",
        "tw::map_shared(empty + stage * 8, rank)",
    ),
    "hopper: no fence before the store": ("hopper", "tw::fence_async();", ""),
    "hopper: no barrier before the store": (
        "hopper",
        "tw::fence_async();\n      tw::sync_named(1 + consumer, 128);",
        "tw::fence_async();",
    ),
    "hopper: overwrites a tile still being stored": (
        "hopper",
        "      if (t % 128 == 0) tw::tma_wait_read<0>();\n      tw::sync_named",
        "      tw::sync_named",
    ),
    "hopper: ends before its store has read": (
        "hopper",
        "    if (t % 128 == 0) tw::tma_wait_read<0>();\n  }",
        "  }",
    ),
    "hopper: leaves while its neighbour still needs it": (
        "hopper",
        "for (int i = 0; i < S; i++) {\n        tw::mbarrier_wait",
        "for (int i = 0; i < 0; i++) {\n        tw::mbarrier_wait",
    ),
    "hopper: multicast to itself only": (
        "hopper",
        "full + stage * 8, 3, k",
        "full + stage * 8, 1 << rank, k",
    ),
    "hopper: too many registers": ("hopper", "registers_down<24>", "registers_down<160>"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_whole_kernels_are_right_in_every_interleaving(emulator, name):
    example = EXAMPLES[name]()
    for result in outcomes(emulator, example.kernel, example.inputs).values():
        np.testing.assert_array_equal(output_of(result), example.expected)


@pytest.fixture(scope="module")
def mutants(emulator) -> dict[str, Example]:
    made = {bug: EXAMPLES[name]().changed(old, new) for bug, (name, old, new) in BUGS.items()}
    emulator.build([example.kernel for example in made.values()])
    return made


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(emulator, mutants, bug):
    example = mutants[bug]
    results = outcomes(emulator, example.kernel, example.inputs)
    right = [
        result.output is not None and np.array_equal(result.output, example.expected)
        for result in results.values()
    ]
    assert not all(right)
