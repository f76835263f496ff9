"""Contract of builders. Inherit, and say how one is made and which candidates it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import pytest

from tilewright.measure.interfaces import Builder
from tilewright.measure.records.measurement import Candidate, ErrorKind, Status


class BuilderContract(ABC):
    """Tests of ``measure.interfaces.Builder``."""

    @abstractmethod
    def make(self) -> Builder:
        """Return a new builder."""

    @abstractmethod
    def good(self, name: str) -> Candidate:
        """Return a candidate that builds; another name, another kernel."""

    @abstractmethod
    def broken(self, name: str) -> Candidate:
        """Return a candidate whose source the compiler refuses."""

    @pytest.fixture
    def builder(self) -> Iterator[Builder]:
        builder = self.make()
        yield builder
        builder.close()

    def test_gives_a_binary_for_each_candidate_in_order(self, builder: Builder) -> None:
        candidates = [self.good(f"good{i}") for i in range(5)]
        built = builder.build(candidates)
        assert [b.candidate for b in built] == candidates
        assert all(b.binary is not None and b.binary.exists() for b in built)
        assert all(b.error_kind is None and b.seconds > 0 for b in built)

    def test_building_nothing_gives_nothing(self, builder: Builder) -> None:
        assert builder.build([]) == []

    def test_only_the_culprits_fail(self, builder: Builder) -> None:
        names = ["good0", "broken0", "good1", "good2", "broken1"]
        made = [self.good(n) if n.startswith("good") else self.broken(n) for n in names]
        built = builder.build(made)
        assert [b.binary is None for b in built] == [n.startswith("broken") for n in names]
        for b in built:
            if b.binary is None:
                assert b.error_kind is ErrorKind.COMPILE
                assert b.error_text.strip()
                failure = b.failure()
                assert failure.status is Status.ERROR
                assert failure.place.toolchain == b.toolchain != ""

    def test_the_same_candidate_may_come_twice(self, builder: Builder) -> None:
        built = builder.build([self.good("good"), self.good("good")])
        assert all(b.binary is not None for b in built)

    def test_close_is_idempotent_and_leaves_no_binary(self) -> None:
        builder = self.make()
        [built] = builder.build([self.good("good")])
        builder.close()
        builder.close()
        assert built.binary is not None
        assert not built.binary.exists()
