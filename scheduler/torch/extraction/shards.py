"""Shards of a model under tensor parallelism: a process group of one process that stands for many.

No tensor is communicated: PyTorch's ``fake`` backend answers for the other ranks, so the graph of
rank 0 has its own shards of the weights and the collectives between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from tilewright.spaces.errors import InputError

MOST_SHARDS = 1 << 10


@contextmanager
def fake_group(shards: int) -> Iterator[None]:
    """Make a process group of ``shards`` ranks, of which this process is the first. For one shard
    there is none. :class:`InputError` if this process is of a group already."""
    if shards == 1:
        yield
        return
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore

    if dist.is_initialized():
        raise InputError("tp is for a process of no group, and this one has a process group")
    dist.init_process_group("fake", rank=0, world_size=shards, store=FakeStore())
    try:
        yield
    finally:
        dist.destroy_process_group()


def sharded_like(
    tensor: torch.Tensor, make: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor | None:
    """Return a distributed tensor whose local shard is made from that of ``tensor``; None for a
    tensor that is not distributed. :class:`InputError` if its shards differ in size."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    from torch.distributed.tensor import DTensor, Shard

    if not isinstance(tensor, DTensor):
        return None
    for axis, placement in enumerate(tensor.placements):
        if isinstance(placement, Shard):
            check_divides(tensor.shape[placement.dim], tensor.device_mesh.size(axis), "a weight")
    made: torch.Tensor = DTensor.from_local(
        make(tensor.to_local().detach()),
        tensor.device_mesh,
        tensor.placements,
        run_check=False,
        shape=tensor.shape,
        stride=tensor.stride(),
    )
    return made


def check_divides(extent: int, shards: int, what: str) -> None:
    """Raise :class:`InputError` if ``shards`` do not divide an extent evenly."""
    if extent % shards:
        raise InputError(f"tp={shards} does not divide {what} of {extent} evenly")
