"""The operators ``torch.ops.tilewright``, which importing this package defines."""

from tilewright.scheduler.torch.kernels.functions import key_of
from tilewright.scheduler.torch.operator import definition

__all__ = ["definition", "key_of"]
