"""One reduction of a pass over rows, with the correction that lets it start before others end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Scaling:
    """H multiplies by ``function(exponent(r') - exponent(r))``."""

    function: str
    exponent: Expression

    def __str__(self) -> str:
        return f"times {self.function}(new - old) of {self.exponent}"


@dataclass(frozen=True)
class Series:
    """H adds ``sum_k (about(r') - about(r))**k * total_k``; each total reads the state's own
    reductions, before the correction. ``terms`` are pairs (k, total_k)."""

    about: Expression
    terms: tuple[tuple[int, Expression], ...]

    def __str__(self) -> str:
        added = " + ".join(f"d**{power} * ({total})" for power, total in self.terms)
        return f"plus {added or '0'} with d = new - old of {self.about}"


@dataclass(frozen=True)
class ChainReduction:
    """One reduction of a pass over rows.

    ``element`` is reduced, of the element and of the states of earlier reductions as they are by
    then; ``correction`` is H, None where the element reads no state. ``result`` is what the
    program means by the reduction, computed of the final states. States are read by the names
    of their reductions, at their ``axes``.
    """

    name: str
    reducer: str
    axes: tuple[str, ...]
    element: Expression
    correction: Scaling | Series | None
    result: Expression

    @property
    def state(self) -> Read:
        """The read of this reduction's own state."""
        return state(self.name, self.axes)

    @property
    def corrected_by(self) -> tuple[Expression, ...]:
        """The expressions that the correction is computed from."""
        match self.correction:
            case Scaling(_, exponent):
                return (exponent,)
            case Series(about, terms):
                return (about, *(total for _, total in terms))
        return ()

    def __str__(self) -> str:
        words = [f"{self.name} = {self.reducer} of {self.element}"]
        words += [str(self.correction)] if self.correction else []
        words += [f"at the end {self.result}"] if self.result != self.state else []
        return "; ".join(words)


def state(name: str, axes: Sequence[str]) -> Read:
    """Return the read of a state at its own axes."""
    return Read(name, tuple(AxisValue(axis) for axis in axes))


def correcting_functions(reductions: Iterable[ChainReduction]) -> frozenset[str]:
    """Return the functions that corrections of these call."""
    corrections = (r.correction for r in reductions)
    return frozenset(c.function for c in corrections if isinstance(c, Scaling))
