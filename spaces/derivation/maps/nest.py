"""Loops, and index forms of them, through changes that leave all indices what they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd

from tilewright.spaces.derivation.products.forms import (
    Entry,
    Form,
    Limits,
    Quotient,
    axes_of,
    divided,
    quotients,
    variable,
)

LEAST_PART = 8
"""Elements of the inner part of an axis below which a split costs more than it gives."""


@dataclass(frozen=True)
class Loop:
    """One loop of a nest, ``name`` in forms."""

    name: str
    extent: int


@dataclass(frozen=True)
class Nest:
    """``loops``, and ``forms`` of them. ``tables`` are the limits of index tables."""

    loops: tuple[Loop, ...]
    forms: Mapping[Hashable, Form]
    tables: Limits

    def split(self) -> Nest:
        """Split loops that quotients keep whole parts of: ``d // 64`` and ``d % 64``, say."""
        for loop in self.loops:
            for size in sorted(set(_parts(loop, self.forms.values()))):
                outer = Loop(f"{loop.name}//{size}", loop.extent // size)
                inner = Loop(f"{loop.name}%{size}", size)
                form = variable(outer.name) * size + variable(inner.name)
                return self._replaced({loop.name: (form, (outer, inner))}).split()
        return self

    def ordered(self, *by: Hashable) -> Nest:
        """Return the loops in the order of their steps in one of the forms, of equals in the next
        one; those of one turn are left out."""
        forms = [self.forms[key] for key in by]
        loops = sorted(self.loops, key=lambda x: [-form.coefficient(x.name) for form in forms])
        single = {loop.name: (Form(), ()) for loop in loops if loop.extent == 1}
        return Nest(tuple(loops), self.forms, self.tables)._replaced(single)

    def merged(self) -> Nest:
        """Neighbouring loops are one where every form runs through both in one go."""
        for slow, fast in zip(self.loops, self.loops[1:], strict=False):
            if all(_in_one_go(form, slow, fast) for form in self.forms.values()):
                both = Loop(fast.name, slow.extent * fast.extent)
                merged = {slow.name: (Form(), ()), fast.name: (variable(fast.name), (both,))}
                return self._replaced(merged).merged()
        return self

    def numbered(self) -> Nest:
        """Loops named after their places: ``a0`` is the slowest, and there is always one."""
        if not self.loops:
            return Nest((Loop("a0", 1),), self.forms, self.tables)
        loops = [Loop(f"a{i}", loop.extent) for i, loop in enumerate(self.loops)]
        pairs = zip(self.loops, loops, strict=True)
        return self._replaced({old.name: (variable(new.name), (new,)) for old, new in pairs})

    def _replaced(self, changes: Mapping[str, tuple[Form, Sequence[Loop]]]) -> Nest:
        """Replace some loops by forms of others."""
        same = {x.name: (variable(x.name), (x,)) for x in self.loops}
        every = {**same, **changes}
        loops = tuple(new for old in self.loops for new in every[old.name][1])
        limits = {**self.tables, **{loop.name: loop.extent for loop in loops}}
        by_name = {name: form for name, (form, _) in every.items()}
        forms = {key: _substituted(f, by_name, limits) for key, f in self.forms.items()}
        return Nest(loops, forms, self.tables)


def step(form: Form, loop: str) -> int | None:
    """Compute how much a form grows from one turn of a loop to the next; None if that varies."""
    if any(not isinstance(atom, str) and loop in axes_of(atom) for atom, _ in form.terms):
        return None
    return form.coefficient(loop)


def _in_one_go(form: Form, slow: Loop, fast: Loop) -> bool:
    outer, inner = step(form, slow.name), step(form, fast.name)
    return outer is not None and inner is not None and outer == inner * fast.extent


def _parts(loop: Loop, forms: Iterable[Form]) -> Iterator[int]:
    """Yield the sizes of parts of a loop within which some quotient never changes."""
    for quotient in (q for form in forms for q in quotients(form)):
        terms = dict(quotient.dividend.terms)
        factor = terms.pop(loop.name, 0)
        if factor > 0:
            common = reduce(gcd, terms.values(), gcd(quotient.divisor, quotient.dividend.constant))
            size = common // factor
            whole = common % factor == 0 and loop.extent % max(size, 1) == 0
            if whole and LEAST_PART <= size < loop.extent:
                yield size


def _substituted(form: Form, by_name: Mapping[str, Form], limits: Limits) -> Form:
    result = Form((), form.constant)
    for atom, coefficient in form.terms:
        if isinstance(atom, str):
            value = by_name[atom]
        elif isinstance(atom, Quotient):
            value = divided(_substituted(atom.dividend, by_name, limits), atom.divisor, limits)
        else:
            indices = tuple(_substituted(index, by_name, limits) for index in atom.indices)
            value = variable(Entry(atom.table, indices))
        result = result + value * coefficient
    return result
