"""Where parts of keys are left, and who has a tile of rows together."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.blocks.last_to_come import LastToCome


@dataclass(frozen=True)
class Room:
    """Memory that parts are left in, as C: the type of its addresses, the steps of those from one
    float to the next, a load and a store of so many that lie together."""

    address: str
    step: int
    load: str
    store: str

    def loaded(self, count: int, to: str, at: str) -> str:
        """The line that fills the array ``to``."""
        return self.load.format(count, to, at)

    def stored(self, count: int, at: str, array: str) -> str:
        """The line that stores an array."""
        return self.store.format(count, at, array)


_LAST = LastToCome("ticket", "shared")
GLOBAL = Room("float *const", 1, "tw::load_global<{}>({}, {});", "tw::store_global<{}>({}, {});")
SHARED = Room("const u32", 4, "tw::load_shared<{}>({}, {});", "tw::store_shared<{}>({}, {});")


@dataclass(frozen=True)
class Crew:
    """Who has a tile, as C: the number of the tile, of a part and of a thread among those that have
    it, how they find out who is the last to come, where the workspace begins, and where parts in
    shared memory do."""

    tile: str = "tile_number"
    part: str = "part"
    thread: str = "threadIdx.x"
    last: LastToCome = _LAST
    workspace: str = "workspace"
    room: str = "shared"


BLOCK = Crew()
"""All threads of a block."""
