"""The texts of plain products stay as they are to the byte, on both targets: old records hold."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.kernel import Call
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import templates_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.testing.targets import made_up_cpu

GOLDEN = Path(__file__).parent / "golden" / "products.json"
CPU = made_up_cpu(bf16_dot=True, threads=4)
TARGETS = {"cpu": CPU, "sm_80": cuda_target("sm_80"), "sm_90a": cuda_target("sm_90a")}
PRODUCTS = {
    "plain": {"m": 300, "n": 200, "k": 150},
    "fused": {
        "m": 257, "n": 129, "k": 77, "a": "col", "b": "col", "c": "col",
        "epilogue": "relu(x + bias[n]) + r[m,n] * s[]",
    },
    "layer": {"m": 512, "n": 384, "k": 256, "dtype": "bfloat16", "epilogue": "gelu(x + bias[m])"},
    "few rows": {"m": 4, "n": 1024, "k": 512, "dtype": "bfloat16", "b": "col"},
}  # fmt: skip
ENTRY = re.compile(r"\btw_[0-9a-f]{16}")
SCHEDULES = 300
"""Of each target, shared by its templates and the products that they serve."""


def call_text(call: Call) -> str:
    """Sizes of the one launch of a GPU's kernel, and of the workspace."""
    launches = [
        f"Launch(grid={launch.grid}, block={launch.block}, cluster={launch.cluster}, "
        f"shared_bytes={launch.shared_bytes})"
        for launch in call.launches
    ]
    return f"({''.join(launches) or None}, {call.workspace_bytes}, {call.workspace_zeroed})"


def digests(target: Target) -> dict[str, str]:
    """Of the kernels of random schedules, by template and product."""
    products = {name: workload("matmul", **given) for name, given in PRODUCTS.items()}
    served = {
        f"{template.name}, {name}": Space(made, target, [template(made, target)])
        for name, made in products.items()
        for template in templates_for(target)
        if not template.refuses(made, target)
    }
    each = ceil_div(SCHEDULES, len(served))
    return {name: digest(space, each) for name, space in served.items()}


def digest(space: Space, schedules: int) -> str:
    """Of so many random kernels, whatever their entries are called: that depends on the names of
    decisions."""
    found = hashlib.sha256()
    for row in space.sample(np.random.default_rng(0), schedules):
        kernel = space.lower(space.schedule(row))
        text = ENTRY.sub("tw_entry", kernel.source.text)
        found.update(f"{text}\n{call_text(kernel.call)}".encode())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", TARGETS)
def test_texts_are_what_they_were(name):
    """Run with TILEWRIGHT_UPDATE_GOLDEN=1 to accept a change of a space or of a text; a change of
    the text of a schedule raises its template's version."""
    found = digests(TARGETS[name])
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("TILEWRIGHT_UPDATE_GOLDEN"):
        GOLDEN.write_text(json.dumps({**golden, name: found}, indent=1) + "\n")
        golden[name] = found
    assert found == golden[name]
