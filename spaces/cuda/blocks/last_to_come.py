"""Blocks leave their parts in the workspace; the last one to come goes on with all of them.

    each block:   part -> workspace, fence, ticket += 1 -> was it the last?
    the last:     fence, parts <- workspace, ticket = 0 for the next call

The fence before the ticket makes a block's part visible before its ticket is; that after it keeps
the last block from reading parts before it knows that it is the last.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.kernels.body import Body

_LEADS = "threadIdx.x == 0"


@dataclass(frozen=True)
class LastToCome:
    """``blocks`` share the C pointer ``ticket``; all threads of each meet here. ``word`` is the
    address of a word of shared memory that nothing else uses in between."""

    blocks: int
    ticket: str
    word: str

    def wait(self, body: Body) -> None:
        """End all blocks here but the last to come, whose parts are in the workspace."""
        body.call("tw::fence_global")
        body.call("tw::sync_block")
        with body.when(_LEADS, brief=True):
            body.call("tw::store_shared", self.word, f"tw::take_ticket({self.ticket})")
        body.call("tw::sync_block")
        with body.when(f"tw::load_shared<u32>({self.word}) != {self.blocks - 1}", brief=True):
            body.leave()
        body.call("tw::fence_global")

    def reset(self, body: Body) -> None:
        """Make the ticket what it was before the first block came."""
        with body.when(_LEADS, brief=True):
            body.call("tw::store_global", self.ticket, "0u")
