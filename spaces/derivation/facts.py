"""Facts derived from a program, as text and numbers for display."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.derivation.chains.chain import Chain, chains
from tilewright.spaces.derivation.products.addresses import Address
from tilewright.spaces.derivation.products.prologue import Load, loads
from tilewright.spaces.derivation.products.roles import ROLES, Roles, roles_of
from tilewright.spaces.derivation.work import Work, work
from tilewright.spaces.language.program import Program


@dataclass(frozen=True)
class ReadFacts:
    """One array that a factor of a product reads.

    ``steps`` are the elements from one point of a role to the next by the role's name, None where
    they are gathered; ``bounds`` are the indices that may leave the array.
    """

    array: str
    offset: str
    steps: tuple[tuple[str, int | None], ...]
    bounds: tuple[str, ...]


@dataclass(frozen=True)
class FactorFacts:
    """A factor of a product: the expression computed on load, the arrays it reads, and why (if so)
    its address is not row offset + depth offset.
    """

    value: str
    reads: tuple[ReadFacts, ...]
    obstacle: str | None


@dataclass(frozen=True)
class ProductFacts:
    """A sum of products: the parts of each role, the factors, and what multiplies the sum."""

    stage: str
    roles: tuple[tuple[str, tuple[str, ...]], ...]
    left: FactorFacts
    right: FactorFacts
    leaving: str | None


@dataclass(frozen=True)
class ChainFacts:
    """Reductions over the same axes: by pass, a sentence for each reduction with its correction;
    and why a reduction needs a pass more, by its name."""

    over: tuple[str, ...]
    passes: tuple[tuple[str, ...], ...]
    refusals: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Facts:
    """All facts derived from a program."""

    products: tuple[ProductFacts, ...]
    chains: tuple[ChainFacts, ...]
    work: Work

    @property
    def lines(self) -> tuple[str, ...]:
        """The facts as sentences, one a line."""
        found = [line for product in self.products for line in _product_lines(product)]
        found += [line for chain in self.chains for line in _chain_lines(chain)]
        w = self.work
        found.append(f"work: {w.flops} FLOPs, {w.arithmetic} other operations, {w.special} calls")
        found.append(f"least traffic: {w.bytes} bytes")
        return tuple(found)


def describe(program: Program) -> Facts:
    """Return the facts of a program."""
    found = [roles_of(program, stage) for stage in program.stages if stage.reducer]
    return Facts(
        products=tuple(_product(program, c) for c in found if isinstance(c, Roles)),
        chains=tuple(_chain(c) for c in chains(program)),
        work=work(program),
    )


def _product(program: Program, found: Roles) -> ProductFacts:
    left, right = (_factor(found, load) for load in loads(program, found))
    leaving = str(found.leaving)
    return ProductFacts(
        stage=found.stage.name,
        roles=tuple((name, found.role(name)) for name in ROLES),
        left=left,
        right=right,
        leaving=None if leaving == "1" else leaving,
    )


def _factor(found: Roles, load: Load) -> FactorFacts:
    reads = tuple(_read(found, place) for place in load.places)
    return FactorFacts(str(load.value), reads, load.obstacle)


def _read(found: Roles, place: Address) -> ReadFacts:
    steps = tuple((name, place.step(getattr(found, name))) for name in ROLES)
    return ReadFacts(place.name, place.offset.formula, steps, tuple(str(b) for b in place.bounds))


def _chain(chain: Chain) -> ChainFacts:
    passes = tuple(tuple(str(r) for r in pass_) for pass_ in chain.passes)
    return ChainFacts(chain.over, passes, chain.refusals)


def _product_lines(product: ProductFacts) -> list[str]:
    roles = "; ".join(f"{name} {', '.join(parts)}" for name, parts in product.roles if parts)
    lines = [f"{product.stage} is a sum of products: {roles}"]
    for side, factor in (("left", product.left), ("right", product.right)):
        lines.append(f"  {side} factor {factor.value}")
        for read in factor.reads:
            steps = ", ".join(_step(name, step) for name, step in read.steps if step != 0)
            bounds = "".join(f"; needs {bound}" for bound in read.bounds)
            lines.append(f"    {read.array}: {steps or 'one element'}{bounds}")
        if factor.obstacle:
            lines.append(f"    {factor.obstacle}")
    if product.leaving:
        lines.append(f"  the sum is multiplied by {product.leaving}")
    return lines


def _step(role: str, step: int | None) -> str:
    return f"{role} gathered" if step is None else f"{role} step {step}"


def _chain_lines(chain: ChainFacts) -> list[str]:
    reductions = sum(map(len, chain.passes))
    passes = len(chain.passes)
    counted = f"{passes} pass{'es' if passes > 1 else ''}"
    several = "s" if reductions > 1 else ""
    lines = [f"over {', '.join(chain.over)}: {reductions} reduction{several} in {counted}"]
    lines += [f"  {text}" for pass_ in chain.passes for text in pass_]
    lines += [f"  {name} needs a pass more: {why}" for name, why in chain.refusals]
    return lines
