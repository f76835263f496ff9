"""Constants of heating a device before it is timed, for who measures and for who plans the time."""

from __future__ import annotations

HEAT_SECONDS = 0.5
"""Seconds of work before timing. The clock of an H200 under load stays at its highest for 0.05 to
0.4 seconds; then it is down by an eighth, to where the chip draws no more power than it may, and
not as much with every kernel. A search's candidates are timed with too many pauses for that, heated
or not, so they rank as on a cool chip: among two dozen leaders, ranks agreed by 0.4 (Spearman's)
with those under load. Which of them is best on a chip at work, the long final comparison says."""

SHORT = 20e-6
"""Seconds of a short call. Shorter ones are timed by a graph of several, and heat no device."""
