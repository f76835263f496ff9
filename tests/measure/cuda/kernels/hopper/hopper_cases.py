"""Right kernels of Hopper, hard cases of all kinds."""

from __future__ import annotations

from tests.measure.cuda.kernels.hopper.hopper_problems import Problem

SIZES: dict[str, int | str] = {"m": 200, "n": 264, "k": 264, "dtype": "bfloat16"}
EPILOGUE = {**SIZES, "epilogue": "gelu(x + bias[n]) + r[m, n]"}
TURNS = {"schedule": "pingpong", "block_n": 64}
FETCH = {"fetch": True}
SMALL = {"block_m": 64, "consumers": 1, "producer_registers": 0}
CHOSEN = {
    "cooperative": Problem(SIZES),
    "three warpgroups, a lone loading warp": Problem(
        SIZES, {"consumers": 3, "block_m": 192, "producer_registers": 0}
    ),
    "one warpgroup with two blocks": Problem(
        SIZES, {"consumers": 1, "block_n": 80, "producer_registers": 0}
    ),
    "two blocks each": Problem(EPILOGUE, {"block_m": 256, "block_n": 48}, 1),
    "two blocks on a multiprocessor": Problem(
        EPILOGUE, {**SMALL, "block_n": 80, "blocks_per_sm": 2}, 1
    ),
    "two of them in turns": Problem(
        {**SIZES, "m": 128},
        {**TURNS, "block_m": 64, "producer_registers": 0, "blocks_per_sm": 2, "splits": 2},
        8,
    ),
    "products in flight": Problem(SIZES, {"in_flight": 1, "stages": 2}),
    "in turns": Problem(EPILOGUE, TURNS, 1),
    "three in turns, products in flight": Problem(
        {**SIZES, "k": 600},
        {**TURNS, "consumers": 3, "block_m": 64, "producer_registers": 32, "in_flight": 1},
        1,
    ),
    "cluster along rows": Problem(EPILOGUE, {"cluster": "2x1"}),
    "cluster along columns": Problem(EPILOGUE, {"cluster": "1x2", "block_n": 48}, 4),
    "clusters in turns, in flight": Problem(SIZES, {**TURNS, "cluster": "2x1", "in_flight": 1}),
    "cluster of tiles past the end": Problem(
        {**SIZES, "m": 384}, {"cluster": "2x1", "store_buffers": 0}
    ),
    "swap_ab": Problem(
        {**EPILOGUE, "c": "col", "m": 264, "n": 24}, {"swap_ab": True, "block_n": 32}
    ),
    "swapped, direct": Problem(
        {**EPILOGUE, "m": 24}, {"swap_ab": True, "block_n": 32, "store_buffers": 0}
    ),
    "swapped float32 cluster": Problem(
        {**EPILOGUE, "m": 72, "out": "float32"},
        {"swap_ab": True, "block_n": 80, "cluster": "2x1", "block_m": 64, "consumers": 1}
        | {"producer_registers": 0},
    ),
    "float32 staged twice": Problem(
        {**SIZES, "out": "float32"}, {"store_buffers": 2, "block_n": 208}
    ),
    "staged four times": Problem(SIZES, {"store_buffers": 4, "block_n": 160}),
    "direct odd stores": Problem(
        {**EPILOGUE, "m": 199, "n": 263, "b": "col"}, {"store_buffers": 0}
    ),
    "left across": Problem({**SIZES, "a": "col", "b": "col"}, {"cluster": "1x2"}),
    "right across in narrow panels": Problem(SIZES, {"block_n": 144, "cluster": "2x1"}),
    "half rows of depth": Problem({**SIZES, "a": "col"}, {"depth": 32, "cluster": "2x1"}),
    "steps of two slabs": Problem(
        {**SIZES, "a": "row", "b": "col", "k": 600},
        {"depth": 128, "block_n": 80, "cluster": "1x2", "stages": 2, "in_flight": 1},
    ),
    "steps of two slabs across": Problem(
        {**SIZES, "a": "col", "b": "col", "k": 520}, {"depth": 128, "block_n": 64, "splits": 2}, 8
    ),
    "odd depth": Problem({**SIZES, "a": "col", "k": 129}, {"splits": 3}, 8),
    "shared depth in a cluster": Problem(EPILOGUE, {"splits": 2, "cluster": "2x1"}, 4),
    "shared depth in turns": Problem(EPILOGUE, {**TURNS, "splits": 2, "store_buffers": 0}, 6),
    "two blocks meet in a tile": Problem({**SIZES, "m": 128, "n": 128}, {"splits": 2}),
    "hilbert": Problem({**SIZES, "m": 500}, {"raster": "hilbert", "block_n": 48}),
    "bands of rows": Problem({**SIZES, "m": 500}, {"raster_group": 2, "block_n": 64}),
    "bands of columns in a cluster": Problem(
        {**SIZES, "m": 500},
        {"raster": "along_rows", "raster_group": 4, "cluster": "1x2", "block_n": 32},
    ),
    "float8": Problem(
        {**SIZES, "dtype": "float8_e4m3fn", "b": "col", "k": 112}, {"depth": 128, "stages": 2}
    ),
    "float8 added up in float32": Problem(
        {**SIZES, "dtype": "float8_e4m3fn", "b": "col", "k": 720},
        {"promotion_interval": 2, "block_m": 256, "block_n": 48},
        1,
    ),
    "float8 added up at each step, in turns": Problem(
        {**SIZES, "dtype": "float8_e5m2", "b": "col", "k": 272},
        {**TURNS, "promotion_interval": 1, "block_m": 64, "cluster": "2x1"},
    ),
    "tfloat32": Problem(
        {**SIZES, "dtype": "tfloat32", "b": "col", "k": 268, "epilogue": "x + bias[n]"},
        {"depth": 32, "cluster": "2x1", "store_buffers": 2},
    ),
    "tfloat32, swapped, half rows": Problem(
        {**SIZES, "dtype": "tfloat32", "b": "col", "m": 40},
        {"depth": 16, "swap_ab": True, "block_n": 48, "store_buffers": 0},
    ),
    "residual fetched": Problem(EPILOGUE, {**FETCH, "store_buffers": 2}),
    "residual fetched by two blocks each": Problem(
        EPILOGUE, {**FETCH, "block_m": 256, "block_n": 64, "store_buffers": 2}, 1
    ),
    "residual fetched in turns": Problem(EPILOGUE, {**TURNS, **FETCH, "store_buffers": 2}, 1),
    "residual fetched in clusters": Problem(EPILOGUE, {**FETCH, "cluster": "2x1", "block_n": 64}),
    "residual fetched, two blocks on a multiprocessor": Problem(
        EPILOGUE, {**SMALL, **FETCH, "store_buffers": 2, "blocks_per_sm": 2, "stages": 2}, 1
    ),
    "residual fetched, swapped": Problem(
        {**EPILOGUE, "m": 24}, {**FETCH, "swap_ab": True, "block_n": 32}
    ),
    "residual of float32 fetched": Problem(
        {**EPILOGUE, "out": "float32"}, {**FETCH, "block_n": 64, "store_buffers": 2}
    ),
    "residual of float32 fetched, swapped": Problem(
        {**EPILOGUE, "m": 72, "out": "float32"},
        {**SMALL, **FETCH, "swap_ab": True, "block_n": 64},
    ),
    "residuals of a batch fetched": Problem(
        {"batch": 3, **SIZES, "epilogue": "x + r[batch, m, n]"}, {**FETCH, "block_n": 64}
    ),
    "other float8, half rows": Problem(
        {**SIZES, "dtype": "float8_e5m2", "out": "float16", "b": "col", "k": 272},
        {"cluster": "1x2", "promotion_interval": 2},
    ),
}
