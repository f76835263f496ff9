"""Whatever an operand of indices holds, no kernel of a GPU leaves its arrays, and each one ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from tests.spaces.index_programs import (
    COMPARED,
    PROGRAMS,
    SORTED,
    Inputs,
    beyond,
    made,
    unsorted,
)
from tilewright.measure.cuda.emulator import Emulator, Interleaving
from tilewright.scheduler.verification import draw
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.registry import space_for

TARGETS = {
    name: replace(cuda_target(name), multiprocessors=8)  # so that blocks have many tiles
    for name in ("sm_80", "sm_90a")
}
COUNT = 2
ATTENTION = {"sm_80": {"chained"}, "sm_90a": {"chained", "chained_hopper"}}
PRODUCTS = {"sm_80": {"mma", "simt"}, "sm_90a": {"mma", "simt", "hopper"}}
SERVED = {
    "embedding": {"sm_80": {"rows", "map"}},
    "loss": {"sm_80": {"rows"}},
    "rows and columns": {"sm_80": {"map"}},
    "8 bits": {"sm_80": {"map"}},
    "16 bits": {"sm_80": {"map"}},
    "a table of a table": {"sm_80": {"map"}},
    "normalised rows": {"sm_80": {"rows"}, "sm_90a": {"rows"}},
    "offsets": {"sm_80": {"rows", "map"}},
    "images": {"sm_80": {"ragged", "rows"}},
    "rows of a factor": {"sm_80": {"mma", "simt"}, "sm_90a": {"mma", "simt"}},
    "matrices": {"sm_80": {"rows"}},
    "beside a product": {"sm_80": {"staged"}},
    "lengths": ATTENTION,
    "lengths of both ends": ATTENTION,
    "pages": {"sm_80": {"chained"}},
    "slots of a cache": {"sm_80": {"chained"}},
    "a bias that is chosen": ATTENTION,
    "documents": ATTENTION,
    "one score": {"sm_80": {"chained"}},
    "one of many": {"sm_80": {"rows"}},
    "segments": PRODUCTS,
    "segments of chosen rows": {"sm_80": {"mma", "simt"}, "sm_90a": {"mma", "simt"}},
    "more segments than rows": PRODUCTS,
}
"""The templates that serve each program on a target; the others read no indices."""


def cases(names: Iterable[str]) -> list[tuple[str, str]]:
    """Programs and targets."""
    return [(name, target) for name in names for target in SERVED[name]]


def faults(
    emulator: Emulator,
    name: str,
    target: CudaTarget,
    pairs: Iterable[tuple[Inputs, Inputs | None]],
    count: int = COUNT,
) -> Iterator[str]:
    """What is wrong with some kernels of a program, called with the first inputs of each pair;
    their results are to be those of the second, if there are any."""
    w = made(name, "float16")
    space = space_for(w, target)
    assert set(space.templates) == SERVED[name][target.name]
    kernels = [space.lower(each) for each in draw(space, count * len(space.templates), 2)]
    emulator.build(kernels)
    for wild, near in pairs:
        for kernel in kernels:
            result = emulator.run(kernel, wild, Interleaving("random", 1))
            if result.error_kind is not None:
                yield f"{result.error_kind}: {result.error_text}"
            elif near is not None:
                bounds = allowed(w.program, near)
                right = [agrees(result.outputs[n], *bounds[n]).all() for n in bounds]
                yield "" if all(right) else f"wrong with {wild}"
            else:
                yield ""


@pytest.mark.parametrize(("name", "target"), cases(PROGRAMS))
def test_of_an_index_beyond_its_limits_the_nearest_entry_is_read(emulator, name, target):
    found = list(faults(emulator, name, TARGETS[target], beyond(made(name, "float16"))))
    assert found
    assert not any(found), found


@pytest.mark.parametrize(("name", "target"), cases((*COMPARED, *SORTED)))
def test_indices_that_are_compared_and_tables_that_fall_lead_nowhere_else(emulator, name, target):
    w = made(name, "float16")
    given = [wild for wild, _ in beyond(w)]
    given += unsorted(w) if name in SORTED else ()
    found = list(faults(emulator, name, TARGETS[target], [(wild, None) for wild in given]))
    assert found
    assert not any(found), found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), cases(SORTED))
def test_many_more_kernels_of_segments_stay_within_their_arrays(emulator, name, target):
    given = [(wild, None) for wild in unsorted(made(name, "float16"))]
    assert not any(faults(emulator, name, TARGETS[target], given, count=24))
