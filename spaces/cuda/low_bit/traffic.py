"""Work and memory traffic of a product with packed codes on a GPU; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

import numpy as np

from tilewright.spaces.cuda.low_bit.decoding import Decoding
from tilewright.spaces.cuda.low_bit.sizes import FLOAT, CodedSizes
from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.workload import Workload

DECODING = 3
"""Instructions for a value, about: a shift, a mask, a subtraction."""
SHARING = 12
"""Instructions for a zero point or a scale, about."""
ACTIVATION = 12
"""Instructions to lay an activation into shared memory, about."""


def coded_quantities(
    workload: Workload,
    product: CodedProduct,
    decoding: Decoding,
    target: CudaTarget,
    columns: Columns,
) -> dict[str, np.ndarray]:
    """Return every quantity as a float64 array with one entry for each schedule."""
    c = widened(columns)
    sizes = CodedSizes(product, c)
    rows, threads, splits = sizes.rows, sizes.threads, c["splits"]
    codes = float(sizes.tiles * sizes.deep * ROWS * DEPTH)
    decoded = codes * sizes.row_blocks
    multiplies = decoded * rows
    early = (c["scales"] == "early") * 1.0 * (product.scale is not None)
    zero = 1.0 * (product.zero is not None and not decoding.folds_zero)
    shared = zero + 1.0 * (product.scale is not None)
    shares = decoded / DEPTH * sizes.parts * 4 * shared
    loads = multiplies / (ROWS // HALVES * c["warp_tiles"]) * 4 / 2
    laid = sizes.blocks * rows * sizes.share * 1.0 * DEPTH
    sums = 1.0 * sizes.blocks * sizes.rows * sizes.columns
    occupancy = Occupancy(target, sizes.blocks, threads, sizes.registers, sizes.shared_bytes)
    work = multiplies + loads + decoded * (DECODING + zero + early) + laid * ACTIVATION
    filled_bytes, laid_bytes = FLOAT * 2 * loads, FLOAT * laid
    work = work + shares * SHARING
    bytes = codes * decoding.bits / 8
    merged = 2.0 * FLOAT * sums * (splits > 1)
    main = float(workload.least_bytes)
    flight = FLOAT * decoding.bits * c["in_flight"] * c["warp_tiles"]
    chunks = np.ceil(sizes.share / c["block_depth"])
    quantities = {
        "flops": 2.0 * multiplies,
        "useful_flops": 2.0 * product.row_count * product.columns * product.terms,
        "instructions": work * occupancy.starved / WARP + occupancy.waits(chunks * 2),
        "register_bytes": filled_bytes + laid_bytes,
        "near_bytes": filled_bytes + laid_bytes,
        "middle_bytes": bytes * sizes.row_blocks + laid_bytes + merged,
        "main_bytes": main,
        "packing_bytes": merged,
        "epilogue_elements": sums / splits,
        "far_fraction": main / target.l2_bytes,
        "vector_fraction": product.columns * product.terms / codes,
        "intensity": multiplies / (loads + bytes / FLOAT),
        "main_loop_trips": sizes.share / (c["warp_depth"] * c["in_flight"]),
        "tile_visits": sizes.blocks / occupancy.resident,
        "synchronisations": 2.0 * chunks + 2 + 2.0 * (splits > 1),
        **occupancy.quantities(HALVES * c["warp_tiles"] * rows),
        **occupancy.flight(flight),
    }
    return filled(quantities, rows.shape)
