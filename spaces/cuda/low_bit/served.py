"""Products with packed codes that GPUs multiply, and those of them that tensor cores do."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.low_bit.decoding import Decoding
from tilewright.spaces.cuda.low_bit.pairs import FRACTIONS, ByteDecoding, PairDecoding
from tilewright.spaces.cuda.low_bit.sizes import COLUMNS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import VECTOR_BYTES
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.language.program import Operand
from tilewright.spaces.language.tree import AxisValue, Read
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.low_bit.order import DEPTH
from tilewright.spaces.low_bit.served import ACTIVATION, known_zero, why_no_bytes, why_no_codes
from tilewright.spaces.workloads.workload import Workload

MATRIX_ROWS = 64
"""Rows of a block at most with tensor cores."""
SEGMENT_ROWS = (8, 16, 24, 32, 48, 64, 96, 128)
"""Rows that a tile of a segment of rows may have."""
SKEWED = 4
"""Segments may be so many times longer than the longest of a table drawn at random."""
NO_SEGMENTS = "rows differ in their matrices, zero points or scales; needs a sorted table of rows"


def coded_product(workload: Workload) -> CodedProduct:
    """Return the product of a workload that is one."""
    product = coded_product_of(workload.program)
    assert isinstance(product, CodedProduct)
    return product


def why_no_product(workload: Workload) -> str | None:
    """Say why a workload is no product of codes and activations, or reads its sums elsewhere; None
    if it is one."""
    return why_no_codes(workload, C_TYPES) or _why_not_at_once(coded_product(workload))


def decoding_of(product: CodedProduct) -> Decoding:
    """Return the way from codes to values."""
    table = product.table is not None
    return Decoding(name=product.codes.dtype, table=table, **known_zero(product))


def activation_kind(product: CodedProduct, kinds: Collection[str] = tuple(FRACTIONS)) -> str | None:
    """Return the dtype of activations, one of these ``kinds``, that tensor cores multiply as they
    lie, in rows that a table may choose; None if they do not."""
    activation = product.activation
    axes = tuple(map(AxisValue, (*product.rows, product.depth)))
    if not isinstance(activation, Read):
        return None
    if activation.indices != axes and product.chosen_row is None:
        return None
    operand = product.program.operand.get(activation.name)
    if operand is None or operand.dtype not in kinds or not _is_dense(operand):
        return None
    return operand.dtype


def pairs_of(product: CodedProduct) -> PairDecoding | str:
    """Return the way from codes to pairs of values that tensor cores multiply, or why they do
    not."""
    kind, group = activation_kind(product), product.group
    if kind is None:
        return f"{product.activation} is no row of {' or '.join(FRACTIONS)}"
    if group < product.terms and group % FRAGMENT:
        return f"groups of {group} along the depth; allowed: multiples of {FRAGMENT}"
    if product.differs_by_row and product.segments is None:
        return NO_SEGMENTS
    pairs = PairDecoding(decoding_of(product), kind)
    return pairs.why_not(product.zero is not None) or pairs


def bytes_of(product: CodedProduct) -> ByteDecoding | str:
    """Return the way from codes to bytes that tensor cores multiply, or why they do not."""
    if reason := why_no_bytes(product):
        return reason
    group, terms = product.group, product.terms
    if activation_kind(product, (ACTIVATION,)) is None:
        return f"{product.activation} is no row of {ACTIVATION}"
    if terms % VECTOR_BYTES:
        return f"{product.depth} is {terms}; allowed: multiples of {VECTOR_BYTES}"
    if group < terms and group % DEPTH:
        return f"groups of {group} along {product.depth}; allowed: multiples of {DEPTH}"
    if product.differs_by_row and product.segments is None:
        return NO_SEGMENTS
    return ByteDecoding(decoding_of(product), ACTIVATION)


def fragment_rows(product: CodedProduct) -> tuple[int, ...]:
    """List the rows a block may have on tensor cores, which multiply eight at once."""
    count = product.row_count
    if segments := product.segments:
        most = round_up(min(SKEWED * int(segments.drawn.max()), count), COLUMNS)
        return tuple(n for n in SEGMENT_ROWS if n <= most)
    parts = {round_up(ceil_div(count, tiles), COLUMNS) for tiles in range(1, count + 1)}
    return tuple(sorted(n for n in parts if n <= MATRIX_ROWS))


def _is_dense(operand: Operand) -> bool:
    """Tell whether elements lie one after the other, in the order of the dimensions."""
    plain = operand.order == tuple(range(len(operand.shape)))
    return plain and not operand.packed and operand.leading is None and operand.steps is None


def _why_not_at_once(product: CodedProduct) -> str | None:
    """Say why an element of the output does not follow from the sum at its own place."""
    axes = (*product.rows, product.column)
    own = Read(product.sums.name, tuple(map(AxisValue, axes)))
    stage = Plan(product.last).nests[-1].stage
    found = sorted(str(read) for read in stage.body.reads if read.name == own.name)
    if set(found) != {str(own)} or set(stage.axes) != set(axes):
        return f"{stage.name} reads the sum as {' and '.join(found)}; allowed: {own}"
    return None
