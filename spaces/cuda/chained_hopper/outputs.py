"""What becomes of a row's sums and states: outputs, stored at once or by way of shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from spaces.cuda.chains.finish import Finish
from spaces.derivation.chained.view import ChainedOutput


@dataclass(frozen=True)
class PackedFinish(Finish):
    """Keeps pairs of the wide output's elements in ``packed``, as ``stmatrix`` takes them."""

    def _store_pair(self, output: ChainedOutput, pair: str) -> list[str]:
        return [f"packed[j * 2 + r] = (u32){pair}[0].bits | (u32){pair}[1].bits << 16;"]
