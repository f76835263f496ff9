"""What the emulator has to find out about a template's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.measure.cuda.emulator.planting import Case, in_turn, planted, share_of
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulator, Interleaving, verify
from tilewright.spaces.numerics.mode import Numerics


class KernelContract:
    """Kernels are right in any order of events, and every bug planted into one is found.

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
        for name, values in (("right", {**self.cases, **self.broken}), ("bug", self.bugs)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, list(values))

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _built(cls, emulator: Emulator) -> None:
        """All at once, which costs far less than one after the other."""
        assert not cls.cases.keys() & cls.broken.keys()
        contract = cls()
        made = [contract.case(name) for name in {**cls.cases, **cls.broken}]
        emulator.build([kernel for _, kernel in made + [contract.planted(n) for n in cls.bugs]])

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
