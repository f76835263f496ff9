"""Faults that show at the edge alone, planted into the text of kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space

_TOTAL = r"tw_set\(tw_across_max\((s0_\d)\)\)"


@dataclass(frozen=True)
class Fault:
    """A ``name`` of what is wrong, what is replaced in a kernel's text, and by what. It shows in
    ``cases`` and in ``schedules`` whose texts these patterns are found in."""

    name: str
    pattern: str
    replacement: str
    cases: str = ""
    schedules: str = ""

    def planted(self, kernel: Kernel) -> Kernel | None:
        """Return the kernel with the fault; None if it has no place for it."""
        body, places = re.subn(self.pattern, self.replacement, kernel.source.body)
        return replace(kernel, source=replace(kernel.source, body=body)) if places else None


FAULTS = (
    Fault("no maximum (CPU)", _TOTAL, "tw_set(0.0f)"),
    Fault("one lane's maximum (CPU)", _TOTAL, r"tw_set(\1[0])"),
    Fault("a correction of 2 % more (CPU)", r"tw_exp\((n\w+ - o\w+)\)", r"tw_exp((\1) * 1.02f)"),
    Fault("a count of 1 % less (CPU)", r"n0_0 / n0_1", "n0_0 / (n0_1 * 0.99f)"),
    Fault("the last element for the maximum", r"tw::max_nan\(s0\[k\], v0\[i\]\)", "v0[i]"),
    Fault("lanes do not merge maxima", r"s0\[k\] = tw::max_nan\(a0, b0\)", "s0[k] = a0"),
    Fault("no maximum", r"tw::max_nan\(part0\[h\], state0\[r\]\)", "0.0f"),
    Fault("half of a maximum", r"tw::max_nan\(part0\[h\], part0\[h \+ 2\]\)", "part0[h]"),
    Fault("no guard of -inf (CPU)", r"tw_begun_max\((\w+)\)", r"\1", "softmax"),
    Fault("a contracted subtraction (CPU)", r"g0_0 - x(\d)_1", r"tw_fma(-x\1_0, x\1_0, g0_0)"),
    Fault(
        "a product of indices in 32 bits (CPU)",
        r"16000001 \* a0\)",
        "(unsigned)(16000001u * (unsigned)a0))",
    ),
    Fault(
        "hidden elements times zero (CPU)",
        r"while \(!careful && hidden",
        "while (0",
        "causal",
        r" rows=(?!1 )",
    ),
    Fault("no guard of -inf", r"tw_reference\((\w+\[\w\]), -TW_INFINITY\)", r"\1", "mask"),
    Fault(  # a product does not make -inf beside finite logits, which would show it
        "no guard of -inf in rows",
        r"tw_change\(\(-a0\), \(-(s0\[k\])\)\)",
        r"(a0 - \1)",
        "^(?!loss)",
    ),
    Fault(
        "a contracted subtraction",
        r"\(h0\[k\] - \((v0\[i\]) \* v0\[i\]\)\)",
        r"tw::fused(-\1, \1, h0[k])",
    ),
    Fault(
        "a product of indices in 32 bits",
        r"\(16000001L \* a0 \+ (\w+)\)",
        r"(i64)(u32)(16000001u * (u32)a0 + (u32)\1)",
    ),
    Fault(
        "hidden elements times zero",
        r"(next_tile [^,;?]*) >= first_key && next_tile [^,;?]* < last_key \?",
        r"\1 < 200 ?",
        "lengths",
    ),
    Fault(
        "a correction of 2 % more",
        r"(change0\[h\] = .*\* )1\.44269504\w+",
        r"\g<1>1.4715f",
        "decode|lengths",
        # of one part, which has several tiles
        r"^(?!.*(warp_splits=[2-9]|keys=1\d\d|keys=2)).* splits=1 ",
    ),
)


class Planted(Space):
    """A space whose kernels have a fault."""

    def __init__(self, space: Space, fault: Fault) -> None:
        super().__init__(space.workload, space.target, tuple(space.templates.values()))
        self._fault = fault

    def lower(self, schedule: Schedule) -> Kernel:
        """Return a kernel of :meth:`served` schedules, with the fault."""
        kernel = self._fault.planted(super().lower(schedule))
        assert kernel is not None
        return kernel

    def served(self, schedules: Sequence[Schedule]) -> list[Schedule]:
        """Return the schedules whose kernels have a place for the fault, and show it."""
        fault, lower = self._fault, super().lower
        shown = [s for s in schedules if re.search(fault.schedules, str(s))]
        return [s for s in shown if fault.planted(lower(s))]
