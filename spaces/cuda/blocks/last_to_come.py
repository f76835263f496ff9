"""A protocol of blocks that share work: the last one to come goes on with the parts of all.

    each block:   part -> workspace, fence, ticket += 1 -> was it the last?
    the last:     fence, parts <- workspace, ticket = 0 for the next call

The fence before the ticket makes a block's part visible before its ticket is; the one after it
keeps the last block from reading parts before it knows that it is the last.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.kernels.body import Body

TICKET = 16
"""Bytes of shared memory for the ticket of a block."""
TICKETS = 256
"""Alignment in bytes of what follows the tickets in the workspace."""


@dataclass(frozen=True)
class LastToCome:
    """The protocol of blocks, or groups of threads, that share the C pointer ``ticket``.

    All threads of each ``meet`` by a call, and one ``leads``, a C test. ``word`` is the address of
    a word of shared memory that nothing else uses in between.
    """

    ticket: str
    word: str
    leads: str = "threadIdx.x == 0"
    meet: tuple[str, ...] = ("tw::sync_block",)

    def publish(self, body: Body) -> None:
        """Write how a part in the workspace is made visible to all blocks."""
        body.call("tw::fence_global")
        body.call(*self.meet)

    def take(self, body: Body) -> None:
        """Write how a ticket is taken, which :attr:`number` reads."""
        with body.when(self.leads, brief=True):
            body.call("tw::store_shared", self.word, f"tw::take_ticket({self.ticket})")
        body.call(*self.meet)

    @property
    def number(self) -> str:
        """C text of the number of tickets that were taken before."""
        return f"tw::load_shared<u32>({self.word})"

    def wait(self, body: Body, parts: int) -> None:
        """Write how all blocks end here but the last of the ``parts`` to come."""
        self.publish(body)
        self.take(body)
        with body.when(f"{self.number} != {parts - 1}", brief=True):
            body.leave()
        body.call("tw::fence_global")

    def reset(self, body: Body) -> None:
        """Write how the ticket is reset for the next call."""
        with body.when(self.leads, brief=True):
            body.call("tw::store_global", self.ticket, "0u")
