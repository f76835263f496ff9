"""Compute the allowed bounds of a product of matrices in float64 on the device: a plain kernel that
shares no code with the templates.
"""

from __future__ import annotations

from tilewright.measure.cuda.trusted.oracle import (
    THREADS,
    allowed_operand,
    signature,
    trusted_kernel,
)
from tilewright.measure.cuda.trusted.statements import MATHEMATICS, Statements, as_double
from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.errors import InputError
from tilewright.spaces.kernel import Kernel, Launch
from tilewright.spaces.numerics.allowance import ends
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Product, product_of
from tilewright.spaces.workloads.workload import Workload

TILE, DEPTH = 64, 16
"""Rows and columns of a block's tile, and terms of a step: a thread has 4 x 4 sums."""
_MULTIPLIED = f"""\
    tw::sync_block();
    for (int k = 0; k < {DEPTH}; k++) {{
      double x[4], y[4];
      for (int i = 0; i < 4; i++) {{
        x[i] = tw::load_shared<double>(left + 8 * (k * {TILE} + down + 16 * i));
        y[i] = tw::load_shared<double>(right + 8 * (k * {TILE} + across + 16 * i));
      }}
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = tw::fused(x[i], y[j], sum[i][j]);
    }}
    tw::sync_block();
"""
"""A step: both tiles in shared memory are multiplied once all threads have stored them."""


def expect(workload: Workload, scale: float = 1.0) -> Kernel:
    """Return ``(inputs, epilogue inputs, allowed)``: the workload in float64, and what is allowed.

    :class:`InputError` where it is no product of two matrices.
    """
    product = product_of(workload)
    if isinstance(product, str):
        raise InputError(f"{workload} cannot be verified on a GPU: {product}")
    left, right = (_fetch(product, operand) for operand in (product.left, product.right))
    across, down = (int(ceil_div(extent, TILE)) for extent in (product.columns, product.rows))
    blocks = (across * product.batches, down, 1)
    entry = f"tw_expect_{workload.digest}"
    operands = (*workload.inputs, allowed_operand(product.output))
    finish = "\n".join(f"        {line}" for line in _finish(product, operands, scale))
    source = f"""\
extern "C" __global__ void __launch_bounds__({THREADS}) {entry}({signature(operands)}) {{
  const i64 number = (i64)(blockIdx.x / {across});
  const i64 row0 = (i64)blockIdx.y * {TILE}, column0 = (i64)(blockIdx.x % {across}) * {TILE};
  const int t = threadIdx.x, down = t / 16, across = t % 16;
  const u32 left = tw::shared_base(), right = left + {TILE * DEPTH * 8};
  double sum[4][4] = {{}};
  for (i64 k0 = 0; k0 < {product.terms}; k0 += {DEPTH}) {{
{left}
{right}
{_MULTIPLIED}  }}
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {{
      const i64 row = row0 + down + 16 * i, column = column0 + across + 16 * j;
      if (row < {product.rows} && column < {product.columns}) {{
{finish}
      }}
    }}
}}
"""
    launch = Launch(blocks, (THREADS, 1, 1), shared_bytes=2 * TILE * DEPTH * 8)
    return trusted_kernel(entry, MATHEMATICS, source, operands, launch)


def _fetch(product: Product, operand: Operand) -> str:
    """Return a thread's share of a step's tile of ``operand`` into shared memory, zeros beyond
    it."""
    name = "left" if operand is product.left else "right"
    edge, extent = ("row", product.rows) if name == "left" else ("column", product.columns)
    deep = operand.stride(product.depth) == 1
    split = (f"e % {DEPTH}", f"e / {DEPTH}") if deep else (f"e / {TILE}", f"e % {TILE}")
    axis = product.row if name == "left" else product.column
    source = f"(k0 + k) * {operand.stride(product.depth)} + side * {operand.stride(axis)}"
    source += _start(product, operand)
    number = product.matmul.factors.index(operand)
    loaded = as_double(f"tw::load_global(in{number} + {source})", operand.dtype)
    return f"""\
    for (int e = t; e < {TILE * DEPTH}; e += {THREADS}) {{
      const int k = {split[0]}, at = {split[1]};
      const i64 side = {edge}0 + at;
      double x = 0.0;
      if (side < {extent} && k0 + k < {product.terms}) x = {loaded};
      tw::store_shared({name} + 8 * (k * {TILE} + at), x);
    }}"""


def _place(product: Product, operand: Operand) -> str:
    place = f"row * {operand.stride(product.row)} + column * {operand.stride(product.column)}"
    return place + _start(product, operand)


def _start(product: Product, operand: Operand) -> str:
    """Write the offset of product ``number`` of a batch within ``operand``."""
    start = product.start(operand, index("number", product.batches))
    return "" if start.value == 0 else f" + {start.text}"


def _finish(product: Product, operands: tuple[Array, ...], scale: float) -> list[str]:
    """Return the statements that store both ends of what is allowed for ``sum[i][j]``."""
    matmul, code = product.matmul, Statements()
    beside = {}
    for number, operand in enumerate(operands):
        if operand in matmul.epilogue_inputs:
            place = f"in{number} + {_place(product, operand)}"
            beside[operand.name] = code.variable(
                as_double(f"tw::load_global({place})", operand.dtype)
            )
    low, high = ends(matmul, code, code.variable("sum[i][j]"), beside, scale)
    kind, output = C_TYPES[operands[-1].dtype], matmul.output
    return [
        *code.lines,
        f"const i64 place = {_place(product, output)};",
        f"tw::store_global(out + place, ({kind}){low});",
        f"tw::store_global(out + {output.size} + place, ({kind}){high});",
    ]
