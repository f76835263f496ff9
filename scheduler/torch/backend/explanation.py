"""Reports on compiled graphs: who computes which region, why, and how fast."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any
from weakref import WeakKeyDictionary

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.text import brief

OURS, TORCH = "tilewright", "torch"
DYNAMO = "torch._dynamo.eval_frame"


@dataclass(kw_only=True)
class Timed:
    """Seconds of one call with kernels and by torch alone, in turns; None where nobody measured
    them."""

    ours_seconds: float | None = None
    torch_seconds: float | None = None

    @property
    def gain(self) -> float | None:
        """The speed with kernels as a multiple of torch's."""
        if self.ours_seconds is None or self.torch_seconds is None:
            return None
        return self.torch_seconds / self.ours_seconds


@dataclass
class RegionReport(Timed):
    """One region of a graph. ``by`` is who computes it and ``why`` the reason; ``places`` counts
    equal regions.
    ``table`` has the sizes and kernels of the table of a region with an open axis.
    ``packed_bytes`` are those of weights that its kernels read packed, which the compiled graph
    keeps beside the model's own."""

    program: str
    by: str
    why: str
    places: int = 1
    provenance: str = ""
    template: str = ""
    packed_bytes: int = 0
    table: str = ""


@dataclass
class SpanReport(Timed):
    """Sizes from ``first`` to ``last`` of a graph of dynamic sizes, which are served alike. Kernels
    compute regions if they are ``taken``. The times are those of a call of ``size``, perhaps in
    another span; nothing was timed where it is None."""

    first: int
    last: int
    taken: bool
    size: int | None = None

    def __str__(self) -> str:
        is_one = self.first == self.last
        sizes = f"size {self.first}" if is_one else f"sizes {self.first}-{self.last}"
        by = "with kernels" if self.taken else "torch alone"
        speed = "" if self.gain is None else f", {self.gain:.2f} x torch at {self.size}"
        return f"{sizes}: {by}{speed}"


@dataclass
class JoinReport:
    """Products of one left factor of ``rows`` and ``depth``, each with its number of ``columns``.
    One product computes them all if that is ``taken``; ``gain`` is how many times as fast that is,
    None where nobody measured it. ``places`` counts equal ones. If ``later``, kernels are being
    built and the next compilation decides."""

    rows: int
    depth: int
    columns: tuple[int, ...]
    taken: bool = False
    gain: float | None = None
    places: int = 1
    later: bool = False

    def __str__(self) -> str:
        columns = ", ".join(map(str, self.columns))
        speed = "" if self.gain is None else f", one product is {self.gain:.2f} x as fast"
        if self.later:
            speed = ", until the kernels are built and the next compilation decides"
        return (
            f"{self.places} x products of {self.rows} x {self.depth} by {columns} columns: "
            f"{'joined' if self.taken else 'apart'}{speed}"
        )


@dataclass
class GraphReport(Timed):
    """One graph that Inductor compiled: of inference, or forward or backward in training.

    ``by`` is ``tilewright`` if kernels compute some of its regions, and ``why`` the reason if
    not. ``left`` counts the nodes that torch computes, by operator and reason. ``stages``
    says whether branches run side by side; it is empty where nobody asked for that. ``joins`` are
    products with constant weights that may be one. ``sizes`` are those of a dynamic size at which
    kernels compute regions; torch computes the whole graph at others. ``spans`` has the times and
    the verdict of each span of sizes.
    """

    kind: str
    by: str = TORCH
    why: str = ""
    seconds: float = 0.0
    regions: list[RegionReport] = field(default_factory=list)
    left: Mapping[tuple[str, str], int] = field(default_factory=Counter)
    stages: str = ""
    joins: list[JoinReport] = field(default_factory=list)
    sizes: str = ""
    spans: list[SpanReport] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The graph in one line."""
        own = [region.places for region in self.regions if region.by == OURS]
        places = sum(region.places for region in self.regions)
        gain = "" if self.gain is None else f", {self.gain:.2f} times as fast as torch alone"
        why = f" ({self.why})" if self.why else ""
        count = sum(own) if self.by == OURS else 0
        return (
            f"{self.kind}: kernels compute {count} of {places} regions{gain}{why}, "
            f"in {self.seconds:.1f} s"
        )


@dataclass
class Explanation:
    """The graphs of a compiled ``model``, in the order in which they were compiled; ``str()`` is a
    text for people."""

    graphs: list[GraphReport] = field(default_factory=list)
    model: str = ""

    def __str__(self) -> str:
        return "\n".join(line for graph in self.graphs for line in _lines(graph))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tilewright.scheduler.report.small import regions  # draws only where it is shown

        figure = regions(self)
        words = f"<pre>{escape(str(self))}</pre>"
        return words if figure.is_empty else words + figure.svg()


def _lines(graph: GraphReport) -> Iterator[str]:
    yield graph.line
    for region in graph.regions:
        times = region.gain
        speed = "" if times is None else f", {times:.2f} x torch"
        spent = "" if region.ours_seconds is None else f" {region.ours_seconds * 1e6:.1f} us"
        yield f"  {region.places} x {brief(region.program, 1, 100)}"
        yield f"      {region.by}: {region.why}{spent}{speed}{_packed(region)}"
        if region.table:
            yield f"      table: {brief(region.table, 1, 100)}"
    if graph.by == OURS:
        yield from (f"  {join}" for join in graph.joins)
    for (name, why), count in sorted(graph.left.items()):
        yield f"  left to torch: {count} x {name} ({brief(why, 1, 90)})"
    if graph.sizes:
        yield f"  with kernels at the sizes {brief(graph.sizes, 1, 100)}"
    yield from (f"    {span}" for span in graph.spans)
    if graph.stages:
        yield f"  stages: {graph.stages}"


def _packed(region: RegionReport) -> str:
    if region.by != OURS or not region.packed_bytes:
        return ""
    return f", {region.packed_bytes / 1e6:.2g} MB of packed weights beside the model's"


_known: WeakKeyDictionary[Any, Explanation] = WeakKeyDictionary()


def explain(compiled: Any) -> Explanation:
    """Say of a model that ``torch.compile(model, backend="tilewright")`` gave which regions kernels
    compute, which torch does, and why.

    Example::

        fast = torch.compile(model, backend="tilewright")
        fast(x)  # compiles
        print(explain(fast))

    Raises :class:`InputError` for what this backend has not compiled: nothing is before the first
    call.
    """
    owner = _owner(compiled)
    try:
        return _known[owner]
    except (KeyError, TypeError):
        raise InputError(
            f"{shown(compiled)} has no graph that this backend compiled; "
            "allowed: a compiled model or function after its first call"
        ) from None


def explanation_of_caller() -> Explanation:
    """Return the explanation of the model that is being compiled: the one whose call is on the
    stack."""
    owner = _caller()
    if owner is None:
        return Explanation()
    return _known.setdefault(owner, Explanation(model=_named(owner)))


def _named(owner: Any) -> str:
    """Return the name of a function, or of the class of a module."""
    return str(getattr(owner, "__qualname__", type(owner).__qualname__))


def _caller() -> Any:
    """Return the outermost compiled object of the innermost call by Dynamo; None if there is
    none."""
    from torch._dynamo.eval_frame import OptimizedModule

    frame, function = sys._getframe(), None
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_globals.get("__name__") != DYNAMO:
            continue
        given = frame.f_locals
        if isinstance(given.get("self"), OptimizedModule):
            return _owner(given["self"])
        if function is None and frame.f_code.co_name in ("compile_wrapper", "_fn"):
            function = given.get("fn")
    return _owner(function)


def _owner(compiled: Any) -> Any:
    """Find what a compiled object was made from: the same for all that wrap it."""
    found = getattr(compiled, "_orig_mod", compiled)
    found = getattr(found, "_torchdynamo_orig_callable", found)
    return getattr(found, "__self__", found)
