"""A sweep along rows: each step reads vectors to registers and uses their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.long_sums import per_row
from tilewright.spaces.cuda.rows.values import Ahead, Scope
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Level:
    """Uses of elements that may all happen at the same time.

    ``use`` takes C texts of the ``expressions`` of element ``i`` of row ``k`` and returns
    statements. ``before`` are lines of row ``k`` that come before the elements in each step but the
    first; ``declare`` and ``after`` come before and after the elements of a vector.
    """

    scope: Scope
    expressions: Sequence[Expression]
    use: Callable[[Sequence[str]], Sequence[str]]
    before: Sequence[str] = ()
    declare: Sequence[str] = ()
    after: Sequence[str] = ()


@dataclass(frozen=True)
class Sweep:
    """The sweep of ``levels``, one after the other in each step.

    A step begins with the lines ``begin``, after its loads, and ends with ``end``.
    """

    context: Context
    levels: Sequence[Level]
    begin: Sequence[str] = field(default=())
    end: Sequence[str] = field(default=())

    def lines(self) -> list[str]:
        """Print the sweep, as a block if it has one step, else as a loop."""
        context = self.context
        body = [
            f"const {context.integer} first = {context.first};",
            *self._fetch(),
            *self.begin,
            *(line for level in self.levels for line in self._level(level)),
            *self.end,
        ]
        return over_steps(context, body)

    @property
    def _reads(self) -> list[Read]:
        use = self.context.use
        return use.reads([e for level in self.levels for e in level.expressions])

    @property
    def _beside(self) -> list[Read]:
        """The reads that come one vector at a time, since registers are full of held elements."""
        if self.context.values["row_storage"] != "registers":
            return []
        held = {*self.context.held, *self.context.common}
        return [read for read in self._reads if read not in held]

    def _fetch(self) -> list[str]:
        """Print the reads, for all vectors of a step at once, of what registers do not hold yet."""
        if self.context.values["row_storage"] == "registers":
            return []
        reads = [read for read in self._reads if read not in self.context.common]
        lines = [declaration(self.context, read, self.context.unroll) for read in reads]
        body = [line for read in reads for line in self._fetched(read)]
        return lines + vectors(self.context, body)

    def _fetched(self, read: Read) -> list[str]:
        held = read in self.context.held
        return _taken(self.context, read) if held else loaded(self.context, read)

    def _level(self, level: Level) -> list[str]:
        context = self.context
        ahead = Ahead(context.rows.varies, "h")
        texts = [level.scope.number(e, ahead) for e in level.expressions]
        found = {name: level.scope.value(e) for e, name in ahead.found.items()}
        plain = [f"{name}[k] = {value};" for name, value in found.items()]
        names = [
            f"{'i64' if value.whole else context.real} {name}[{context.at_once}];"
            for name, value in found.items()
        ]
        elements = [
            *self._numbers(level),
            *level.declare,
            *CUDA.loop("i", context.number("vector"), level.use(texts), unroll=True),
            *level.after,
        ]
        corrected = per_row(context.at_once, level.before) if context.steps > 1 else []
        body = [
            *_guarded("step", corrected),
            *names,
            *per_row(context.at_once, plain),
            *vectors(context, [*self._late(level), *per_row(context.at_once, elements)]),
        ]
        return CUDA.block(*body)

    def _vector(self, read: Read) -> str:
        """Return which of a read's vectors in registers is number ``u`` of the step."""
        if read in self._beside:
            return "0"
        return _turn(self.context) if read in self.context.common else "u"

    def _late(self, level: Level) -> list[str]:
        """Print the reads of those elements of vector ``u`` that were not read before."""
        context, lines = self.context, []
        for read in context.use.reads(list(level.expressions)):
            if read in self._beside:
                lines += [declaration(context, read, 1), *loaded(context, read, "0")]
        return lines

    def _numbers(self, level: Level) -> list[str]:
        """Print the declarations of ``v0[i]``, ``v1[i]``, ...: the elements of a vector of row
        ``k``."""
        context = self.context
        lines = []
        for read in context.use.reads(list(level.expressions)):
            access, n = context.accesses[read], context.name(read)
            kind = "int" if access.array.element.is_integer else context.real
            words = words_of(context, read, self._vector(read))
            lines.append(f"{kind} v{n}[{access.vector}];")
            again = read in context.held and context.values["convert"] == "again"
            # numbers of common reads would stay in registers for all tiles
            again |= read in context.common
            lines += access.unpack(f"v{n}", words, context.real, again)
        return lines


def declaration(context: Context, read: Read, vectors: int) -> str:
    """Return the declaration of registers for ``vectors`` vectors of a read."""
    access = context.accesses[read]
    size = vectors * access.words
    return f"{access.kind} x{context.name(read)}[{context.rows_of(read)}][{size}];"


def words_of(context: Context, read: Read, vector: str = "u") -> str:
    """Return C text of where the registers of a vector of row ``k`` begin."""
    words = context.accesses[read].words
    many = f"({vector})" if " " in vector else vector
    place = f" + {many} * {words}" if vector != "0" else ""
    return f"x{context.name(read)}[{context.row_of(read)}]{place}"


def loaded(context: Context, read: Read, vector: str = "u") -> list[str]:
    """Print how vector ``u`` is read from memory, for all rows."""
    access, n, row = context.accesses[read], context.name(read), context.row_of(read)
    stream = context.values["loads"] == "stream" and row == "k"
    load = access.load(words_of(context, read, vector), f"from{n}[{row}]", "column", stream)
    return per_row(context.rows_of(read), load)


def hold(context: Context, is_copied: bool) -> list[str]:
    """Print how elements that stay between sweeps are read, unless shared memory has them
    already."""
    if not context.held:
        return []
    if context.values["row_storage"] == "shared":
        return (
            []
            if is_copied
            else [*copies(context, "0"), "tw::cp_async_commit();", "tw::cp_async_wait<0>();"]
        )
    declared = [declaration(context, read, context.unroll) for read in context.held]
    reads = _taken if is_copied else loaded
    body = [line for read in context.held for line in reads(context, read)]
    return [*declared, *CUDA.block(*_vectors_of_step(context, body))]


def shared_by_rows(context: Context) -> list[str]:
    """Print how elements that are the same for all rows are read, to stay for all tiles."""
    lines, body = [], []
    for read in context.common:
        access, n = context.accesses[read], context.name(read)
        start = f"{access.argument} + {access.start('0', {})}"
        lines += [
            f"const {C_TYPES[access.array.dtype]} *from{n}[1] = {{{start}}};",
            declaration(context, read, context.steps * context.unroll),
        ]
        body += loaded(context, read, _turn(context))
    return [*lines, *over_steps(context, _vectors_of_step(context, body))] if body else []


def copies(context: Context, buffer: str) -> list[str]:
    """Print how a thread copies to ``buffer`` in shared memory all elements that it is to find
    there."""
    body = [line for read in context.held for line in _copied(context, read, buffer)]
    return over_steps(context, _vectors_of_step(context, body))


def over_steps(context: Context, lines: Sequence[str]) -> list[str]:
    """Return a loop of the lines over each ``step``.

    It is unrolled if registers hold elements for all tiles, which are named by the step.
    """
    if context.steps == 1:
        return CUDA.block(*lines)
    return CUDA.loop("step", context.steps, lines, unroll=True if context.common else None)


def _vectors_of_step(context: Context, lines: Sequence[str]) -> list[str]:
    return [f"const {context.integer} first = {context.first};", *vectors(context, lines)]


def _turn(context: Context) -> str:
    """Return C text of the number of vector ``u`` among a thread's vectors."""
    return f"step * {context.unroll} + u" if context.steps > 1 else "u"


def _taken(context: Context, read: Read) -> list[str]:
    """Print how vector ``u`` is loaded from shared memory, for all rows."""
    access, to = context.accesses[read], words_of(context, read)
    place = context.shared_at(read, _turn(context))
    lines = [
        f"tw::load_shared<{size}>({to} + {start}, {place} + {at});"
        for (start, size), at in zip(access.chunks(), access.chunk_bytes(), strict=True)
    ]
    return per_row(context.rows_of(read), lines)


def _copied(context: Context, read: Read, buffer: str) -> list[str]:
    """Print how vector ``u`` is copied to shared memory, for all rows."""
    access = context.accesses[read]
    size = access.vector * access.array.element.bytes
    source = f"from{context.name(read)}[{context.row_of(read)}] + {access.along('column')}"
    to = context.shared_at(read, _turn(context), buffer)
    return per_row(context.rows_of(read), [f"tw::cp_async<{size}>({to}, {source});"])


def vectors(context: Context, lines: Sequence[str]) -> list[str]:
    """Return a loop of the lines over each vector ``u`` of a step that lies within the row."""
    if not lines:
        return []
    return [
        "#pragma unroll",
        f"for (int u = 0; u < {context.unroll}; u++) {{",
        f"  const {context.integer} column = first + u * {context.turn};",
        *indented(_guarded(context.inside, lines)),
        "}",
    ]


def _guarded(test: str, lines: Sequence[str]) -> list[str]:
    if not test or not lines:
        return list(lines)
    return CUDA.when(test, lines)
