"""The backend of ``torch.compile``: its regions compete with Inductor, and the faster one stays."""

from tilewright.scheduler.torch.backend.compiler import tilewright

__all__ = ["tilewright"]
