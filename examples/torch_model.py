"""Compile a PyTorch model with kernels in the place of what they compute faster than torch.

Needs the extra ``torch``. Each region of the model competes with torch compiled on the same nodes.
``explain`` says who computes it and why. On small blocks, and without tuning, that is often torch.
"""

import os

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from tilewright import explain

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48"))


class Block(nn.Module):
    """The second half of a layer of a transformer."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return two layers, a residual and a norm."""
        return self.norm(x + self.down(F.gelu(self.up(x))))


torch.manual_seed(0)
torch.set_num_threads(1)
model = Block(96, 384).eval()
x = torch.randn(64, 96)

options = {"untuned": "tune", "seconds": TRIALS / 4, "db": "tuning.db"}
fast = torch.compile(model, backend="tilewright", options=options)
with torch.no_grad():
    difference = (fast(x) - model(x)).abs().max().item()
print(f"largest difference from torch: {difference:.1e}\n")
print(explain(fast))

every = torch.compile(model, backend="tilewright", options={"judge": "always", "db": "tuning.db"})
torch.compiler.reset()
with torch.no_grad():
    every(x)
print("\nwith each region that has a kernel replaced:")
print(explain(every).graphs[-1].line)
