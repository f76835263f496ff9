"""Multicast and distributed shared memory in clusters, and what happens too early."""

from __future__ import annotations

import numpy as np

from tests.measure.cuda.cuda_kernels import kernel, operand, outcomes, output_of, small_integers
from tilewright.measure.cuda.emulator import Interleaving
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.cuda.tensor_map import TensorMapSpec

MULTICAST = """
  const u32 s = tw::shared_base(), b = s + 512, rank = tw::cluster_rank();
  if (threadIdx.x == 0) {
    tw::mbarrier_init(b, 1);
    tw::fence_barrier_init();
    tw::mbarrier_arrive_expect(b, 512);
  }
  tw::sync_cluster();
  if (threadIdx.x == 0)  // each block brings one row of four to all
    tw::tma_multicast_2d(s + rank * 128, &map, b, 15, 0, blockIdx.x);
  tw::mbarrier_wait(b, 0);
  float sum = 0;
  for (int i = 0; i < 4; i++) sum = 3 * sum + tw::load_shared<float>(s + i * 128 + threadIdx.x * 4);
  C[blockIdx.x * 32 + threadIdx.x] = sum;"""
CLUSTER_INPUT = small_integers(8, (8, 32), np.float32)
CLUSTER_MAP = TensorMapSpec("A", "float32", (32, 8), (128,), (32, 1))


def cluster_kernel(entry, body, shared=520):
    out = operand("C", "float32", (8, 32))
    options = {"blocks": 8, "cluster": 4, "shared": shared, "maps": {"map": CLUSTER_MAP}}
    return kernel(entry, body, {"A": CLUSTER_INPUT}, out, **options)


def test_multicast_reaches_every_block_of_the_cluster(emulator):
    weights = 3.0 ** np.arange(3, -1, -1)
    expected = np.repeat(np.stack([weights @ CLUSTER_INPUT[:4], weights @ CLUSTER_INPUT[4:]]), 4, 0)
    made = cluster_kernel("multicast", MULTICAST)
    for result in outcomes(emulator, made, {"A": CLUSTER_INPUT}).values():
        np.testing.assert_array_equal(output_of(result), expected)


def test_multicast_before_the_cluster_is_ready_shows(emulator):
    made = cluster_kernel("unready", MULTICAST.replace("tw::sync_cluster();", "tw::sync_block();"))
    found = outcomes(emulator, made, {"A": CLUSTER_INPUT}).values()
    assert any("not initialised" in r.error_text for r in found)


EXCHANGE = """
  const u32 s = tw::shared_base(), b = s + 128, rank = tw::cluster_rank(), next = (rank + 1) % 4;
  if (threadIdx.x == 0) { tw::mbarrier_init(b, 32); tw::fence_barrier_init(); }
  tw::store_shared(s + threadIdx.x * 4, tw::load_global(A + blockIdx.x * 32 + threadIdx.x));
  tw::sync_cluster();
  const u32 there = tw::map_shared(s + threadIdx.x * 4, next);
  const float x = tw::bits_float(tw::load_remote(there));
  tw::sync_cluster();
  tw::store_remote(there, tw::float_bits(2 * x));
  tw::mbarrier_arrive_remote(tw::map_shared(b, next));
  tw::mbarrier_wait(b, 0);
  C[blockIdx.x * 32 + threadIdx.x] = x + tw::load_shared<float>(s + threadIdx.x * 4);
  tw::sync_cluster();"""


def test_distributed_shared_memory(emulator):
    """Each thread doubles its right neighbour's element in place; all see both."""
    made = cluster_kernel("exchange", EXCHANGE, shared=136)
    neighbour = CLUSTER_INPUT.reshape(2, 4, 32)[:, [1, 2, 3, 0]].reshape(8, 32)
    for result in outcomes(emulator, made, {"A": CLUSTER_INPUT}).values():
        np.testing.assert_array_equal(output_of(result), neighbour + 2 * CLUSTER_INPUT)


def test_leaving_a_cluster_too_early_shows(emulator):
    body = EXCHANGE[: EXCHANGE.rindex("tw::sync_cluster();")].replace(
        "tw::mbarrier_wait(b, 0);", "if (rank == 3) return;\n  tw::mbarrier_wait(b, 0);"
    )
    made = cluster_kernel("left", body, shared=136)
    orders = [Interleaving("random", seed) for seed in range(8)]
    found = [emulator.run(made, {"A": CLUSTER_INPUT}, order) for order in orders]
    assert any("block that has ended" in r.error_text for r in found)


def test_a_mapped_address_is_for_remote_functions_only(emulator):
    body = "tw::store_shared(tw::map_shared(tw::shared_base(), tw::cluster_rank() ^ 1), 1.f);"
    result = emulator.run(cluster_kernel("mapped", body), {"A": CLUSTER_INPUT})
    assert result.error_kind is ErrorKind.CRASH
    assert "another block's shared memory" in result.error_text
