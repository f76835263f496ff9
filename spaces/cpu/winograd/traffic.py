"""Work and memory traffic of sums over short windows, computed for whole populations at once.

A panel of filters stays in L1 while a block of squares streams past it from L2, element by element;
transformed arrays are written once and read again. Names and units are those of
``spaces.quantities``.
"""

from __future__ import annotations

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.cpu.traffic import USABLE, footprints, packing_passes, shares
from tilewright.spaces.cpu.winograd.blocking import Blocking, blocking
from tilewright.spaces.cpu.winograd.transforms import operations
from tilewright.spaces.cpu.winograd.view import SquareWindows
from tilewright.spaces.derivation.products.short_windows import MOST_READS, Matrix, short_windows
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns


def winograd_quantities(
    view: SquareWindows, target: CpuTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Compute every quantity of ``spaces.quantities``, one float64 array each."""
    lanes = target.lanes(FLOAT)
    values = widened(columns)
    b = blocking(view, lanes, values)
    quantities = {
        **_work(view, b, lanes, values),
        **_traffic(view, b, target, values),
        **_workers(view, b, target),
    }
    return filled(quantities, values["tile_rows"].shape)


def _work(view: SquareWindows, b: Blocking, lanes: int, values: Columns) -> dict[str, np.ndarray]:
    channels, extent = float(view.channels.extent), view.column.extent
    vectors = ceil_div(extent, b.tile_columns) * (b.tile_columns // lanes)
    elements, squares = np.asarray(b.reads**2, np.float64), np.asarray(b.squares, np.float64)
    row_tiles, column_tiles = ceil_div(b.squares, b.tile_rows), ceil_div(extent, b.tile_columns)
    multiplies = elements * squares * vectors * channels
    broadcasts = elements * squares * column_tiles * channels
    loads = elements * row_tiles * vectors * channels
    trips = elements * row_tiles * column_tiles * channels / values["unroll"]
    stores = elements * squares * vectors
    transforms = _transforms(view, b, lanes, values)
    outputs = squares * values["output_tile"] ** 2
    chains = b.tile_rows * (b.tile_columns // lanes)
    rows = float(np.prod([part.extent for part in view.product.rows]))
    return {
        "flops": 2 * multiplies * lanes + transforms * lanes,
        "useful_flops": 2 * rows * extent * channels * view.taps**2,
        "instructions": multiplies + broadcasts + loads + 3 * trips + 2 * stores + 2 * transforms,
        "register_bytes": FLOAT * lanes * (broadcasts + loads + 2 * stores + transforms),
        "epilogue_elements": outputs * vectors * lanes * view.product.fused,
        "independent_chains": chains,
        "registers": registers(b.tile_rows, b.tile_columns // lanes),
        "vector_fraction": extent / (vectors * lanes),
        "intensity": chains / (b.tile_rows + b.tile_columns // lanes),
        "main_loop_trips": channels / values["unroll"],
        "tile_visits": elements * row_tiles * column_tiles,
    }


def _transforms(view: SquareWindows, b: Blocking, lanes: int, values: Columns) -> np.ndarray:
    """Compute the vector operations of all transforms."""
    kinds = range(2, MOST_READS - view.taps + 2)
    tables = {"image": [0.0, 0.0], "filter": [0.0, 0.0], "output": [0.0, 0.0]}
    for outputs in kinds:
        short = short_windows(outputs, view.taps)
        for name, table in tables.items():
            matrix: Matrix = getattr(short, name)
            table.append(operations(matrix) * (len(matrix) + len(matrix[0])))
    image, filters, output = (np.array(t)[values["output_tile"]] for t in tables.values())
    channel_vectors = ceil_div(view.channels.extent, lanes)
    column_vectors = ceil_div(view.column.extent, lanes)
    again = np.where(b.square_blocks > 1, b.column_blocks, 1) * b.column_workers
    found: np.ndarray = (
        image * b.squares * channel_vectors * again
        + filters * float(view.channels.extent) * column_vectors * b.row_workers
        + output * b.squares * column_vectors
    )
    return found


def _traffic(
    view: SquareWindows, b: Blocking, target: CpuTarget, values: Columns
) -> dict[str, np.ndarray]:
    channels, extent = float(view.channels.extent), view.column.extent
    elements = FLOAT * np.asarray(b.reads**2, np.float64)
    squares, filters = elements * b.squares * channels, elements * channels * extent
    products = 2 * elements * b.squares * extent
    column_tiles = ceil_div(extent, b.tile_columns)
    blocks = ceil_div(b.squares, b.block_squares)
    block = elements * b.block_squares * (channels + b.tile_columns)
    panel = elements * channels * b.tile_columns
    fits = block + panel <= USABLE * target.l2_bytes
    product = view.product
    operand_bytes = float(sum(array.bytes for array in product.program.operands))
    given = operand_bytes + product.output.bytes
    copies = _copy_bytes(view, values)
    again = np.where(b.square_blocks > 1, b.column_blocks, 1) * b.column_workers
    passes = packing_passes(target, elements * channels * b.block_columns)
    moved = 2 * squares * again + passes * filters * b.row_workers + 2 * copies
    tile = FLOAT * channels * (b.tile_rows + b.tile_columns)
    footprint = b.workers * (block + elements * channels * b.block_columns) + copies
    return {
        "near_bytes": squares * column_tiles + filters * blocks + products,
        "middle_bytes": np.where(fits, squares, squares * column_tiles) + filters * blocks,
        "main_bytes": given + np.where(footprint > target.l3_bytes, filters, 0.0),
        "packing_bytes": moved,
        **footprints(target, tile, block + panel),
        "far_fraction": footprint / target.l3_bytes,
        "register_fraction": registers(b.tile_rows, b.tile_columns // target.lanes(FLOAT))
        / target.vector_registers,
    }


def _copy_bytes(view: SquareWindows, values: Columns) -> np.ndarray:
    """Compute the bytes of the padded copy, which depends on the squares."""
    known, where = np.unique(values["output_tile"], return_inverse=True)
    copies = [view.squares(int(n)).copy for n in known]
    return np.array([float(copy.bytes) if copy else 0.0 for copy in copies])[where]


def _workers(view: SquareWindows, b: Blocking, target: CpuTarget) -> dict[str, np.ndarray]:
    share = np.minimum(b.chunk_squares, b.squares) * np.minimum(b.chunk_columns, view.column.extent)
    return {
        **shares(target, b.workers, share * b.workers / (b.squares * view.column.extent)),
        "synchronisations": b.workers > 1,
    }
