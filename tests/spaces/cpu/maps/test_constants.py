"""Maps with constants: places along short axes are written side by side, and are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spaces.constant_programs import PRODUCT, with_constant
from tests.spaces.cpu.maps.checked_maps import machine, space_of
from tests.spaces.cpu.native import check_sampled
from tilewright.spaces.derivation.maps.served import cached_plane
from tilewright.spaces.operators import workload

STACKED = "z[k,e,u] = select(k == 1, x[e,u], select(k == 3, -y[u], 2 * x[e,u] + k))"
PROGRAMS = {
    "a product": with_constant(PRODUCT),
    "weighed": with_constant("z[e,k,u] = sum[i,j](C[i,j,k] * w[e,u] * x[e,i,u] * y[e,j])"),
    "along columns": with_constant("z[e,u,k] = sum[i,j](C[i,j,k] * x[e,i,u] * y[e,j])"),
    "of two axes": with_constant("z[e,i,k,u] = sum[j](C[i,j,k] * x[e,j,u])"),
    "two outputs": with_constant(
        "z[e,k,u] = sum[i,j](C[i,j,k] * x[e,i,u] * y[e,j]); t[e,k,u] = relu(z[e,k,u]); -> z, t"
    ),
    "stacked": f"axes k=5, e=6, u=40; {STACKED}",
    "halves": "axes e=9, k=2, u=33; x: bfloat16; z: bfloat16; "
    "z[e,k,u] = select(k == 0, x[e,u], -x[e,u])",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_with_places_apart_are_right(name: str, tmp_path: Path) -> None:
    check_sampled(space_of(workload(PROGRAMS[name]), machine()), 3, 0, tmp_path)


def test_places_are_written_side_by_side_unless_they_are_neighbours_in_memory() -> None:
    found = {name: cached_plane(workload(text).program).view for name, text in PROGRAMS.items()}
    counts = {name: (len(view.loops), len(view.outputs)) for name, view in found.items()}
    assert counts == {
        "a product": (2, 4),
        "weighed": (2, 4),
        "along columns": (3, 1),
        "of two axes": (2, 12),
        "two outputs": (2, 8),
        "stacked": (2, 5),
        "halves": (2, 2),
    }
    assert all(len(set(view.outputs)) == len(view.outputs) for view in found.values())


def test_bytes_are_counted_once() -> None:
    w = workload(PROGRAMS["a product"])
    assert cached_plane(w.program).view.written_bytes == w.outputs[0].bytes
