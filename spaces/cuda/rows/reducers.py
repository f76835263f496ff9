"""The states of a pass's reductions: how elements join them, and how two parts of a row merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.cuda import block_sums
from tilewright.spaces.cuda.reducers import NOWHERE, joined, place_helpers, taken, typed
from tilewright.spaces.cuda.rows.long_sums import LongSums
from tilewright.spaces.cuda.rows.values import Scope
from tilewright.spaces.cuda.scalar_code import Value, literal
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.scopes import scaled, states_of
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.tree import Expression, Negation, Number, Read

HELPERS = """\
TW_INLINE long long tw_quotient(long long a, long long b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
TW_INLINE long long tw_remainder(long long a, long long b) { return a - b * tw_quotient(a, b); }
TW_INLINE T tw_change(T from, T to) { return from == to ? (T)0 : to - from; }
TW_INLINE T tw_reference(T best, T nothing) { return best == nothing ? (T)0 : best; }
"""
"""C functions on the type ``T`` that is computed in, which states need.

Quotients and remainders are rounded down, as in the language. ``tw_change`` is the difference of
two results, 0 if they are the same infinity. ``tw_reference`` is the extreme that elements are
measured from, 0 if no element was better than nothing: then ``exp(x - best)`` of an element of
minus infinity is zero, as under any other extreme.
"""
EXTREMES = ("max", "min")
"""Reducers whose states elements are measured from."""


def helpers(real: str) -> str:
    """Return the C functions that states need, on the type ``real``."""
    return place_helpers(real) + typed(HELPERS + block_sums.HELPER, real)


@dataclass(frozen=True)
class States:
    """The states of the reductions of ``pass_``, in C variables.

    ``s0[k]``, ``s1[k]``, ... are the states of each row ``k`` that a thread has at once, ``p0[k]``,
    ... the places that an ``argmax`` or ``argmin`` found. ``scope`` says how anything but a state
    is written. If every thread has the same number of ``elements`` in each of its ``steps``, sums
    of a constant are known and have no variables. Long sums are added up in blocks of
    ``block_steps`` steps, if that is not 0: then ``s0[k]`` is that of a block.
    """

    pass_: Sequence[ChainReduction]
    scope: Scope
    rows: int
    elements: int | None = None
    steps: int = 1
    block_steps: int = 0

    # -- variables -----------------------------------------------------------------------------

    @property
    def number(self) -> dict[str, int]:
        """The place of each reduction in the pass, by its name."""
        return {r.name: n for n, r in enumerate(self.pass_)}

    def is_argument(self, r: ChainReduction) -> bool:
        """Return true if a reduction gives a place, as ``argmax`` does."""
        return REDUCERS[r.reducer].argument

    def is_known(self, r: ChainReduction) -> bool:
        """Return true if a reduction sums up a constant over a known number of elements."""
        is_constant = r.reducer == "sum" and isinstance(r.element, Number)
        return self.elements is not None and is_constant

    @property
    def variables(self) -> list[tuple[str, str]]:
        """The C type and the name of each variable of a row."""
        found = []
        for n, r in enumerate(self.pass_):
            if self.is_known(r):
                continue
            found.append((self.scope.real, f"s{n}"))
            if self.is_argument(r):
                found.append(("int", f"p{n}"))
        return found

    def declare(self) -> list[str]:
        """Print the declarations of all variables, with the states of no elements."""
        lines = []
        for n, r in enumerate(self.pass_):
            if self.is_known(r):
                continue
            lines.append(
                f"{self.scope.real} s{n}[{self.rows}] = {_all(self._nothing(r), self.rows)};"
            )
            if self.is_argument(r):
                lines.append(f"int p{n}[{self.rows}] = {_all(NOWHERE, self.rows)};")
            if self.is_long(r):
                lines.append(self._sums.declared(self.scope.real, n))
        return lines

    def _nothing(self, r: ChainReduction) -> str:
        """Return C text of the state of no elements."""
        return literal(REDUCERS[r.reducer].identity, self.scope.real)

    # -- blocks of long sums -------------------------------------------------------------------

    def is_long(self, r: ChainReduction) -> bool:
        """Return true if a reduction is a sum that is added up in blocks."""
        return self.block_steps > 0 and r.reducer == "sum" and not self.is_known(r)

    @property
    def _sums(self) -> LongSums:
        return LongSums(self.rows, self.steps, self.block_steps)

    @property
    def _long(self) -> list[int]:
        return [n for n, r in enumerate(self.pass_) if self.is_long(r)]

    def step_ends(self) -> list[str]:
        """Print the end of a ``step``: after every ``block_steps`` of them a block ends."""
        return self._sums.step_ends(self._long)

    def blocks_joined(self) -> list[str]:
        """Print how the sums of all blocks of a thread become one."""
        return self._sums.joined(self._long)

    @property
    def levels(self) -> list[list[ChainReduction]]:
        """Reductions by level: those of one level read only states of levels before it.

        The elements of a level's reductions may join their states at the same time.
        """
        level: dict[str, int] = {}
        found: list[list[ChainReduction]] = []
        for r in self.pass_:
            reads = {read.name for e in (r.element, *r.corrected_by) for read in e.reads}
            own = max((level[name] + 1 for name in reads if name in level), default=0)
            level[r.name] = own
            found += [[] for _ in range(own + 1 - len(found))]
            found[own].append(r)
        return found

    # -- elements ------------------------------------------------------------------------------

    def within(
        self, prefix: str = "s", threads: int | None = None, reference: bool = False
    ) -> Scope:
        """Return a scope in which reads of reductions are reads of states.

        The states are the variables with this ``prefix``, of the elements of ``threads`` threads;
        None stands for one thread on its way, in ``step``. If ``reference`` is true, extremes are
        read as references that elements are measured from (``tw_reference``).
        """

        def read(node: Read) -> Value:
            if node.name in self.number:
                r = self.pass_[self.number[node.name]]
                if self.is_known(r):
                    return Value(self._known(r, prefix, threads))
                if self.is_long(r) and prefix == "s" and threads is None:
                    return Value(self._sums.whole(self.number[node.name]))
                state = f"{prefix}{self.number[node.name]}{'[k]' if prefix == 's' else ''}"
                if reference and r.reducer in EXTREMES:
                    state = f"tw_reference({state}, {self._nothing(r)})"
                return Value(state)
            return self.scope.read(node)

        return replace(self.scope, read=read)

    def _known(self, r: ChainReduction, prefix: str, threads: int | None) -> str:
        """Return C text of a known sum; see :meth:`within`."""
        assert isinstance(r.element, Number)
        assert self.elements is not None
        of_step = float(r.element.value * self.elements)
        if threads is None and self.steps > 1:
            steps = "(step + 1)" if prefix == "s" else "step"
            return f"(({self.scope.real}){steps} * {literal(of_step, self.scope.real)})"
        return literal(of_step * self.steps * (threads or 1), self.scope.real)

    def factors(self, r: ChainReduction) -> tuple[Expression, ...]:
        """Return the factors whose product a sum takes as its element; of others, the element."""
        return self.within().factors(r.element) if r.reducer == "sum" else (r.element,)

    def join(self, r: ChainReduction, factors: Sequence[str], rank: str) -> str:
        """Return the C statement by which one more element joins a state.

        The element is the product of ``factors``; ``rank`` is its place along the row.
        """
        n = self.number[r.name]
        if self.is_argument(r):
            return f"tw_{r.reducer}(s{n}[k], p{n}[k], {factors[0]}, {rank});"
        return f"s{n}[k] = {taken(r.reducer, f's{n}[k]', factors)};"

    @property
    def corrected(self) -> bool:
        """True if any reduction is corrected when the results it depends on change."""
        return any(r.correction for r in self.pass_)

    def remember(self) -> list[str]:
        """Print copies of all states, with all their blocks, to ``old0[k]``, ``old1[k]``, ..."""
        real, names = self.scope.real, self._varying
        long = self._long
        copies = [f"old{n}[k] = {self._sums.whole(n) if n in long else f's{n}[k]'};" for n in names]
        return [
            *(f"{real} old{n}[{self.rows}];" for n in names),
            "#pragma unroll",
            f"for (int k = 0; k < {self.rows}; k++) {{ {' '.join(copies)} }}",
        ]

    def kept(self) -> list[str]:
        """Print the declarations of ``a0``, ``a1``, ...: what was remembered of row ``k``."""
        return [f"const {self.scope.real} a{n} = old{n}[k];" for n in self._varying]

    @property
    def _varying(self) -> list[int]:
        """The numbers of the reductions that have variables."""
        return [n for n, r in enumerate(self.pass_) if not self.is_known(r)]

    def correct(self, r: ChainReduction) -> list[str]:
        """Print how the state of row ``k`` is corrected from the remembered results to the
        present."""
        n = self.number[r.name]
        if self.is_long(r) and isinstance(r.correction, Scaling):
            factor = self._factor(r.correction, self.within("a"), self.within("s"))
            return [
                f"const {self.scope.real} moved{n} = {factor};",
                *(f"{name}[k] *= moved{n};" for name in (f"s{n}", *self._sums.variables(n))),
            ]
        return [f"s{n}[k] = {self._moved(r, 'a')};"] if r.correction else []

    def settle(self, threads: int) -> list[str]:
        """Print how the states of the whole row ``k`` are corrected from references to results.

        The two differ where no element was better than nothing. ``threads`` threads share the row.
        """
        measured, final = self.within("s", threads, reference=True), self.within("s", threads)
        lines = []
        for n, r in enumerate(self.pass_):
            if not isinstance(r.correction, Scaling):
                continue
            change = self._change(r.correction, measured, final)
            power = f"tw_{r.correction.function}(change)"
            lines.append(
                f"if (const {self.scope.real} change = {change}; change != 0) s{n}[k] *= {power};"
            )
        return lines

    def result(self, r: ChainReduction, threads: int) -> str:
        """Return C text of the reduction's final result.

        The states are those of the whole row, which ``threads`` threads share.
        """
        if self.is_argument(r):
            return f"p{self.number[r.name]}[k]"
        return self.within("s", threads).number(r.result)

    # -- parts ---------------------------------------------------------------------------------

    def merge(self, other: Callable[[str, str], str], threads: int) -> list[str]:
        """Print how the states of row ``k`` merge with those of another part.

        ``other`` returns the other part's variable, by type and name. Each part is of ``threads``
        threads, where elements are counted.
        """
        lines = []
        for kind, name in self.variables:
            own = name.removeprefix("s")
            theirs = other(kind, f"{name}[k]")
            lines.append(f"const {kind} a{own} = {name}[k], b{own} = {theirs};")
        for n, r in enumerate(self.pass_):
            if self.is_argument(r):
                lines.append(f"tw_{r.reducer}(s{n}[k], p{n}[k], b{n}, bp{n});")
            elif not self.is_known(r):
                parts = self._moved(r, "a", threads), self._moved(r, "b", threads)
                lines.append(f"s{n}[k] = {joined(r.reducer, *parts)};")
        return lines

    def _moved(self, r: ChainReduction, part: str, threads: int | None = None) -> str:
        """Return C text of a part's state, corrected from its own results to the merged ones.

        Products are rounded, so that both parts come to the same number.
        """
        n = self.number[r.name]
        measured = isinstance(r.correction, Series)
        own = self.within(part, threads, measured)
        now = self.within("s", threads and 2 * threads, measured)
        state = f"s{n}[k]" if self.is_long(r) and threads is None else f"{part}{n}"
        match r.correction:
            case Scaling():
                return f"{state} * {self._factor(r.correction, own, now)}"
            case Series(about, terms):
                change = f"({now.number(about)} - {own.number(about)})"
                moved = state
                for power, total in terms:
                    factors = " * ".join([change] * power), own.number(total)
                    moved = taken("sum", moved, factors)
                return moved
        return state

    def _factor(self, scaling: Scaling, own: Scope, now: Scope) -> str:
        return f"tw_{scaling.function}({self._change(scaling, own, now)})"

    def _change(self, scaling: Scaling, own: Scope, now: Scope) -> str:
        """Return C text of how far the exponent of a scaling moves.

        If it is the multiple of a state, it is the multiple of a difference, which is finite where
        multiples are not.
        """
        exponent, known = scaling.exponent, _Known(frozenset(self.number), now)
        states = states_of(exponent, known)
        states = exponent if exponent == Negation(states) else states
        moved = f"tw_change({own.number(states)}, {now.number(states)})"
        return moved if states == exponent else scaled(exponent, known, moved)


@dataclass(frozen=True)
class _Known:
    """The expressions that read one of these ``states``, written in ``scope``."""

    states: frozenset[str]
    scope: Scope

    def holds(self, node: Expression) -> bool:
        """Return true if an expression reads one of the states."""
        return any(read.name in self.states for read in node.reads)

    def text(self, node: Expression) -> str:
        """Return C text of an expression."""
        return self.scope.number(node)


def _all(value: str, count: int) -> str:
    return f"{{{', '.join([value] * count)}}}"
