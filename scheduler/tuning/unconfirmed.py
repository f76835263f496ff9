"""Results from earlier records, used until this run has measured the schedule itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.measure.records.measurement import Measurement
from tilewright.measure.records.record import Record
from tilewright.spaces.schedule import Schedule

FAR = 2.0
"""Says how many times as long as recorded a schedule may take before the record is doubted.

Another process on the same core takes half of it, and a lower clock some more; a sound record
that is doubted for that loses nothing, since what was measured instead stands in its place.
"""


class UnconfirmedRecords:
    """Records of earlier runs about schedules that this run has not measured itself.

    A record may be mistaken or forged. So candidates need not beat it, and the best claim is
    measured again. A claim is false if the schedule turns out to be far slower.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._open: dict[Schedule, list[Record]] = {}
        for record in records:
            if record.measurement.score is not None and not record.doubted:
                self._open.setdefault(record.schedule, []).append(record)

    def __contains__(self, schedule: Schedule) -> bool:
        """Return True if a claim about ``schedule`` is unchecked in this run."""
        return schedule in self._open

    def confirm(self, measurement: Measurement) -> list[Record]:
        """Close the claims about the measured schedule, and return those that are false.

        A kernel that fails is a false claim too. A lost attempt proves nothing.
        """
        if measurement.lost:
            return []
        claims = self._open.pop(measurement.schedule, [])
        return [record for record in claims if _is_false(record, measurement)]


def _is_false(record: Record, measurement: Measurement) -> bool:
    claimed, found = record.measurement.score, measurement.score
    return claimed is not None and (found is None or found > FAR * claimed)
