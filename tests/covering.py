"""Cases of which few run by default, which show each aspect; the rest are slow tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

WORDS = re.compile(r"[A-Za-z_]\w\w+|\[\w+\[|[^\w\s,;:.\[\](){}'\"]+")
"""Functions, dtypes, operators and tables that are read at, without the short names of axes."""

FAMILIES = (
    "tests/experiments/",
    "tests/measure/cuda/",
    "tests/measure/drawing/",
    "tests/scheduler/functions/",
    "tests/scheduler/report/test_browser.py",
    "tests/scheduler/torch/backend/",
    "tests/scheduler/torch/extraction/",
    "tests/scheduler/torch/operator/",
    "tests/scheduler/torch/regions/",
    "tests/scheduler/torch/stages/",
    "tests/spaces/cpu/",
    "tests/spaces/cuda/",
)
"""Places of tests that compile, emulate, start or judge something for each of many cases."""
KEPT = re.compile("bug|fault|mistake|mutant|refuse|right_in_any_order|wrong")
"""Words of tests of which each case counts, or that choose cases themselves."""


def aspects_of(value: object) -> Iterator[Hashable]:
    """Yield what a case has in common with others: decisions with their values, dtypes, functions
    and operators. Numbers count by their powers of two, but for extents of axes, which count for
    nothing; what is ``given`` to a case that is made later counts for it."""
    value = getattr(value, "given", value)
    if isinstance(value, Mapping):
        for name, one in value.items():
            if not (len(str(name)) == 1 and isinstance(one, int)):
                yield from ((name, aspect) for aspect in aspects_of(one))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for one in value:
            yield from aspects_of(one)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value.bit_length()
    else:
        yield from WORDS.findall(str(value))


def covering(
    cases: Iterable[Any], aspects: Callable[[Any], Iterable[Hashable]] = aspects_of
) -> list[Any]:
    """All cases as parameters, of which those are slow tests that :func:`chosen` leaves out."""
    every = list(cases)
    quick = set(chosen(dict(enumerate(map(aspects, every)))))
    return [
        pytest.param(case, marks=() if place in quick else pytest.mark.slow)
        for place, case in enumerate(every)
    ]


def cover_families(items: Iterable[pytest.Item]) -> None:
    """Leave to slow tests those cases of each test of :data:`FAMILIES` that :func:`chosen` leaves
    out. A name in a table of the test's module stands for its value there. Planted bugs and
    refusals all stay."""
    families: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and _is_of_a_family(item):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for tests in families.values():
        known = vars(tests[0].module).items()
        tables = [t for name, t in known if isinstance(t, Mapping) and not name.startswith("__")]
        shown = {test: list(_aspects(test, tables)) for test in tests}
        for test in set(tests).difference(chosen(shown)):
            test.add_marker(pytest.mark.slow)


def _is_of_a_family(test: pytest.Function) -> bool:
    return (
        test.nodeid.startswith(FAMILIES)
        and hasattr(test, "callspec")
        and not KEPT.search(test.originalname)
        and test.get_closest_marker("slow") is None
    )


def _aspects(test: pytest.Function, tables: Iterable[Mapping[Any, Any]]) -> Iterator[Hashable]:
    for name, value in test.callspec.params.items():
        table = next((t for t in tables if isinstance(value, str) and value in t), None)
        found = [repr(value)] if table is None else aspects_of(table[value])
        yield from ((name, aspect) for aspect in found)


def few(count: int, of: int) -> list[Any]:
    """The number of random cases: ``count`` by default, all ``of`` them in a slow test."""
    return [count, pytest.param(of, marks=pytest.mark.slow)]


def chosen(aspects: Mapping[Any, Iterable[Hashable]], first: Collection[Any] = ()) -> list[Any]:
    """Few of the names, in their order, that have all ``aspects`` of all; the ``first`` are among
    them. A mistake in what several cases share shows in one of them."""
    every = {name: set(some) for name, some in aspects.items()}
    found = set(first)
    wanted = set().union(*every.values()).difference(*(every[name] for name in found))
    while wanted:
        best = max(every, key=lambda name: len(every[name] & wanted))
        found.add(best)
        wanted -= every[best]
    return [name for name in every if name in found]
