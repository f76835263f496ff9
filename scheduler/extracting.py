"""The workloads of a PyTorch model. Torch is loaded with the first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.extras import extra
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.scheduler.torch.extraction.extraction import Extraction


def extract(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    rows: Mapping[str, Sequence[int] | Mapping[int, float]] | None = None,
    dtype: str | None = None,
    target: Target | str = Default.TARGET,
    training: bool = False,
    tp: Sequence[int] | None = None,
    draft: Sequence[int] | Mapping[int, float] | None = None,
    frozen: bool = False,
) -> Extraction:
    """Find the workloads of a PyTorch model: the regions that the backend hands to kernels.

    Example::

        found = extract(model, (torch.randn(128, 768),))
        tune_suite(found.suite(), "cpu", seconds=240)

    ``model`` is a module that is called with ``args``, or a function that returns both; with
    ``rows``, such as ``{"decode": [1, 8], "prefill": [2048]}``, one that takes the number of
    ``rows`` (or ``tokens``), and ``phase`` if it wants to know it. Each phase is a section of the
    suite. ``{"decode": {1: 0.3, 8: 0.7}}`` weighs numbers of rows, and ``draft``, such as
    ``{3: 0.5, 7: 0.5}``, lengths of speculative decoding: a step then has as many rows as the batch
    times one more than the draft. ``tp``, such as ``[1, 8]``, calls a function that takes ``tp`` in
    a process group of so many ranks, which stands for them and communicates nothing.

    Weights and inputs may be on ``meta``; those of floating point are taken for ``dtype``, such as
    ``"bfloat16"``. ``training`` asks for forward and backward in training mode. ``frozen`` asks for
    what the backend computes under Inductor's ``freezing``: products with packed weights, and
    those of one left factor both joined and apart, with half of their weight each. No kernel is
    built, and none runs.

    Raises :class:`InputError` for a model that cannot be captured, with the line of its code, for
    an unknown phase, and for a model that no kernel computes any part of.
    """
    extra("torch", "torch", "extract")
    from tilewright.scheduler.torch.extraction.extraction import extraction_of

    return extraction_of(model, args, rows, dtype, target, training, tp, draft, frozen=frozen)
