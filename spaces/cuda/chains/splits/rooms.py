"""The memory in which parts of keys are left, and the threads that share a tile of rows."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.blocks.last_to_come import LastToCome


@dataclass(frozen=True)
class Room:
    """A memory in which parts are left, in C.

    Fields are the type of its addresses, the step of an address from one float to the next, a load
    and a store of several neighbouring floats.
    """

    address: str
    step: int
    load: str
    store: str

    def loaded(self, count: int, to: str, at: str) -> str:
        """Return the statement that fills the array ``to``."""
        return self.load.format(count, to, at)

    def stored(self, count: int, at: str, array: str) -> str:
        """Return the statement that stores an array."""
        return self.store.format(count, at, array)


_LAST = LastToCome("ticket", "shared")
GLOBAL = Room("float *const", 1, "tw::load_global<{}>({}, {});", "tw::store_global<{}>({}, {});")
SHARED = Room("const u32", 4, "tw::load_shared<{}>({}, {});", "tw::store_shared<{}>({}, {});")


@dataclass(frozen=True)
class Crew:
    """The threads that share a tile, in C.

    Fields are the numbers of the tile, of a part, and of a thread among those that share it; the
    protocol by which they find out who is the last to come; and the addresses of the workspace and
    of parts in shared memory.
    """

    tile: str = "tile_number"
    part: str = "part"
    thread: str = "threadIdx.x"
    last: LastToCome = _LAST
    workspace: str = "workspace"
    room: str = "shared"


BLOCK = Crew()
"""All threads of a block."""
