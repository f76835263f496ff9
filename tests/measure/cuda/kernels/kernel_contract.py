"""What the emulator has to find out about a template's kernels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.covering import aspects_of, chosen
from tests.measure.cuda.emulator.planting import Case, Deferred, in_turn, planted, share_of
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator, Interleaving, verify
from tilewright.spaces.numerics.mode import Numerics

RIGHT, BUG = "right", "bug"
"""Parameters of tests: the name of a kernel, or of a bug."""


class KernelContract:
    """Kernels are right in any order of events, and every bug planted into one is found.

    By default those kernels run that have bugs planted into them, and few others that show what
    else there is of decisions, dtypes and functions; slow tests run all.

    A class that inherits this names its kernels, ``cases`` and those that are ``broken`` alone, and
    its ``bugs``: into which kernel, what is replaced (a pattern, at its first match), and by what.
    """

    cases: Mapping[str, Any] = {}
    broken: Mapping[str, Any] = {}
    bugs: Mapping[str, tuple[Any, ...]] = {}
    orders: Sequence[Interleaving] = INTERLEAVINGS
    """In which a bug may show."""
    numerics: Numerics = Numerics.STRICT
    """The promise about errors that the kernels keep."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test for each kernel and for each bug."""
        every = {**self.cases, **self.broken}
        if RIGHT in metafunc.fixturenames:
            slow = any(mark.name == "slow" for mark in metafunc.definition.iter_markers())
            metafunc.parametrize(RIGHT, list(every) if slow else self._telling(every))
        if BUG in metafunc.fixturenames:
            metafunc.parametrize(BUG, list(self.bugs))

    def _telling(self, every: Mapping[str, Any]) -> list[str]:
        """Return the cases that have planted bugs, and few that show what else there is."""
        kinds = {kind for kind, *_ in self.bugs.values() if isinstance(kind, str)}
        aspects = {name: self.aspects(name, case) for name, case in every.items()}
        return chosen(aspects, self.broken.keys() | kinds & every.keys())

    def aspects(self, name: str, case: Any) -> Iterable[Hashable]:
        """Return what a kernel has in common with others: its name where nothing else is known."""
        return aspects_of(case.given) if isinstance(case, Deferred) else [name]

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _built(cls, request: pytest.FixtureRequest, emulator: Emulator) -> None:
        """Build what the tests that run need, all at once: that costs far less than one by one."""
        assert not cls.cases.keys() & cls.broken.keys()
        contract = cls()
        tests = [item for item in request.session.items if getattr(item, "cls", None) is cls]
        asked = {pair for test in tests for pair in test.callspec.params.items()}
        made = [
            contract.case(name) for name in {**cls.cases, **cls.broken} if (RIGHT, name) in asked
        ]
        made += [contract.planted(name) for name in cls.bugs if (BUG, name) in asked]
        emulator.build([kernel for _, kernel in made])

    def case(self, name: str) -> Case:
        """The kernel of a name."""
        found: Case = {**self.cases, **self.broken}[name]
        return found

    def planted(self, name: str) -> Case:
        """A kernel with a bug."""
        kind, pattern, replacement = self.bugs[name]
        return planted(self.case(kind), pattern, replacement, f"bug_{list(self.bugs).index(name)}")

    def complaint(
        self,
        emulator: Emulator,
        case: Case,
        orders: Sequence[Interleaving] = INTERLEAVINGS,
        turn: int | None = None,
    ) -> str:
        """What is wrong with a kernel, for all other inputs or for those whose ``turn`` it is;
        empty if it is right."""
        if turn is None:
            result = verify(emulator, *case, orders, numerics=self.numerics)
        else:
            share = share_of(len(self.cases) + len(self.broken))
            result = in_turn(emulator, case, turn, share=share, numerics=self.numerics)
        assert "compile" not in (result.error_kind or ""), result.error_text
        return "" if result.error_kind is None else f"{result.error_kind}: {result.error_text}"

    def test_kernels_are_right_in_any_order(self, emulator: Emulator, right: str) -> None:
        turn = list({**self.cases, **self.broken}).index(right)
        complaint = self.complaint(emulator, self.case(right), turn=turn)
        assert not complaint, complaint

    @pytest.mark.slow
    def test_kernels_are_right_for_all_inputs(self, emulator: Emulator, right: str) -> None:
        complaint = self.complaint(emulator, self.case(right))
        assert not complaint, complaint

    def test_every_planted_bug_is_found(self, emulator: Emulator, bug: str) -> None:
        assert self.complaint(emulator, self.planted(bug), self.orders)
