"""Summary of a database's records of one workload on one target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from tilewright.measure.records.fields import Fields
from tilewright.measure.tables.rows import target_from_column
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target


@dataclass(frozen=True)
class Summary:
    """Counts and best latency of one workload on one target.

    ``workload`` is its text, and ``flops`` its floating-point operations. ``trials`` counts
    schedules, however often each was measured; ``failures`` counts failed attempts of schedules;
    ``lost`` counts attempts that the machine failed. ``score`` is the latency of the best schedule
    in seconds, None if there is none. ``doubted`` tells whether a run found it false.
    """

    workload: str
    flops: float
    target: Target
    trials: int
    failures: int
    lost: int
    score: float | None
    doubted: bool

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object."""
        return {
            "workload": self.workload,
            "target": self.target.to_json(),
            "trials": self.trials,
            "failures": self.failures,
            "lost": self.lost,
            "latency_s": self.score,
            "gflops": self.flops / self.score / 1e9 if self.score else None,
            "doubted": self.doubted,
        }


def summary_from_row(row: Row[Any]) -> Summary:
    """Return the summary in a row of ``measure.tables.queries.summaries_query``;
    :class:`InputError` if it is malformed."""
    # unpacked, since thousands of rows are read: an attribute of a row takes its time
    trials, failures, lost, text, flops, fingerprint, description, id, score, doubted = tuple(row)
    counts = {"trials": trials, "failures": failures, "lost": lost}
    fields = Fields({"text": text, "flops": flops, "score": score, **counts})
    trials, failures, lost = map(fields.integer, counts)
    text, flops = fields.prose("text"), fields.number("flops")
    target = target_from_column(description)
    if target.fingerprint != fingerprint:
        raise InputError("its key is not that of its target")
    if not text or flops < 0:
        raise InputError(f"not a workload: {text!r:.80} with {flops:g} operations")
    score = None if id is None else fields.number("score")
    if score is not None and score <= 0:
        raise InputError(f"score={score!r} is not allowed; allowed: positive seconds")
    return Summary(text, flops, target, trials, failures, lost, score, bool(doubted))
