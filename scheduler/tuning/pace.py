"""Divide the time of a tuning run between search and comparison."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from tilewright.measure.cuda.heating import HEAT_SECONDS, SHORT
from tilewright.measure.records.measurement import Measurement
from tilewright.measure.timing import FINAL, TimingProtocol
from tilewright.spaces.workloads.workload import Workload

LEAST_BATCH = 4  # candidates of the smallest batch: compiling several together is cheaper
LEAST_SHARE = 1 / 4  # the smallest batch, as a share of the largest: it keeps the compilers busy
LEAST_BATCHES = 4  # the trials allowed are asked for in so many batches at least
BATCH_SHARE = 0.08  # largest share of the time allowed that one batch may take
CALLS = 6  # kernel calls to verify and time one candidate
CANDIDATE_SECONDS = 0.06  # everything but the calls of one candidate: compiling, mostly
PROCESS_SECONDS = 0.01  # for the process in which one is checked
WINDOW = 7  # times that results came, which tell how long a candidate takes
RESERVE = 0.15  # share of the time that timing finalists may take at most
LEAST_FINALISTS = 2
MOST_RESERVE = 0.5  # the same share, where even two finalists take longer


@dataclass(frozen=True)
class Comparison:
    """The plan of the final comparison.

    It compares ``most`` schedules, each with ``calls`` of its kernel, the samples of ``protocol``
    if there is one, and ``seconds`` for the rest. It heats the device for ``heat`` seconds before,
    once, if calls are longer than :data:`measure.cuda.heating.SHORT`. Then the share ``kept`` goes
    on and is compared ``times`` times, and so on (successive halving), until one is left and
    compared once. If ``kept`` is 0, one comparison decides.
    """

    most: int
    calls: int
    seconds: float
    heat: float = 0.0
    protocol: TimingProtocol | None = None
    kept: float = 0.0
    times: int = 1

    def next(self, count: int) -> int:
        """Say how many of ``count`` schedules go on to the next round; 0 after the deciding one."""
        return ceil(self.kept * count) if count > 1 else 0

    def finalist(self, call: float) -> float:
        """Return the seconds to compare one schedule whose kernel takes ``call`` seconds."""
        return self.seconds + self.calls * call + self._sampling(call)

    def _sampling(self, call: float) -> float:
        rounds = self.protocol
        if rounds is None:
            return 0.0
        all_samples = rounds.samples * max(rounds.sample_seconds, call)
        return max(min(rounds.budget, all_samples), rounds.contender_samples * call)


@dataclass(frozen=True)
class Worth:
    """The worth of a final comparison, which sets its number of finalists.

    It is ``times`` the usual number, or the ``share`` of all right schedules if that is more.
    """

    times: float = 1.0
    share: float = 0.0

    def finalists(self, usual: int, right: int) -> int:
        """Return the largest number of finalists, from the ``usual`` number and that of ``right``
        schedules."""
        return max(LEAST_FINALISTS, round(self.times * usual), int(self.share * right))


USUAL = Worth()


@dataclass(frozen=True)
class Expected:
    """Estimates before anything is measured, in seconds.

    ``call`` is one call of a good kernel, ``setup`` the inputs and reference of each batch, and
    ``check`` the check of each candidate. The setup of the final comparison takes ``last`` more.
    Finalists are also checked on ``others`` further sets of inputs. Each of these takes ``other``
    once, for all finalists. Libraries that are timed beside them start in ``rivals`` seconds.
    """

    call: float
    setup: float = 0.0
    check: float = 0.0
    last: float = 0.0
    others: int = 0
    other: float = 0.0
    rivals: float = 0.0

    @property
    def candidate(self) -> float:
        """Seconds for one candidate: mostly compiling, then the calls to verify and time it."""
        return CANDIDATE_SECONDS + CALLS * self.call + self.check

    def thorough(self, count: int) -> float:
        """Return the seconds to check so many finalists on other inputs, and to start their
        rivals."""
        checks = self.others * (self.other + count * (PROCESS_SECONDS + self.call + self.check))
        return self.rivals + checks


SETUP_SECONDS = 60e-9  # per output element: sums, their bounds, and their copies
SETUP_TERM_SECONDS = 1 / 10e9  # per product summed up in float64
CHECK_SECONDS = 12e-9  # per output element: poisoned, written and compared, three times each
CUDA_SETUP_SECONDS = 0.2  # the device makes inputs and reference, most of it whatever their size
CUDA_DRAW_SECONDS = 25e-9  # per element that the host draws and uploads
CUDA_MOVE_SECONDS = 4e-9  # per element that the host reads, changes and uploads
CUDA_TERM_SECONDS = 1 / 5e11  # per operation of a program that is evaluated in float64
CUDA_CALLS = 25  # kernel calls per candidate: each timed call of a long one follows another


@dataclass(frozen=True)
class Pacing:
    """The cost of measuring on one kind of target.

    ``comparison`` is the plan of the final one. ``expected`` estimates a workload from the seconds
    of one call.
    """

    comparison: Comparison
    expected: Callable[[Workload, float], Expected]


def _on_cpu(workload: Workload, call: float) -> Expected:
    written = sum(output.size for output in workload.outputs)
    writing, check = SETUP_SECONDS * written, CHECK_SECONDS * written
    from tilewright.measure.drawing.further_draws import EDGE_SHARE, count_further_draws
    from tilewright.measure.drawing.programs import (
        FINAL_POINTS,
        POINT_SECONDS,
        SEARCH_POINTS,
        evaluation_seconds,
    )
    from tilewright.measure.drawing.tables import SHARE

    if workload.matmul:
        other = POINT_SECONDS * FINAL_POINTS / SHARE / EDGE_SHARE
        product = SETUP_TERM_SECONDS * workload.work / 2
        return Expected(
            call, writing + product, check, 0.0, count_further_draws(workload), writing + other
        )
    usual, last, other = (
        evaluation_seconds(workload.program, most)
        for most in (SEARCH_POINTS, FINAL_POINTS, FINAL_POINTS // SHARE)
    )
    others = count_further_draws(workload)
    return Expected(call, writing + usual, check, last - usual, others, writing + other)


def _on_cuda(workload: Workload, call: float) -> Expected:
    """Return the estimates on a GPU. The check runs on the device and takes almost no time.

    Inputs are drawn on the host, once for all batches and once more at the end.
    """
    from tilewright.measure.drawing.further_draws import count_further_draws

    check = (CUDA_CALLS - CALLS) * call
    drawn, others = sum(operand.size for operand in workload.inputs), count_further_draws(workload)
    if workload.matmul:
        moves = CUDA_MOVE_SECONDS * drawn
        return Expected(call, CUDA_SETUP_SECONDS, check, 0.0, others, moves)
    evaluation = CUDA_TERM_SECONDS * workload.work
    last = CUDA_DRAW_SECONDS * drawn + evaluation
    return Expected(call, CUDA_SETUP_SECONDS, check, last, others, evaluation)


CPU = Pacing(Comparison(8, 3, 0.1, protocol=FINAL, kept=1 / 2, times=2), _on_cpu)
CUDA = Pacing(Comparison(48, 100, 0.03, HEAT_SECONDS), _on_cuda)
"""A GPU at work for long is slower than one that waits for compilers between candidates, and not as
much with every kernel, so more of them are compared there."""


class Rate:
    """The recent time per candidate, in seconds; None before the first result.

    Wall time is less than running time if several candidates are under way at once.
    """

    def __init__(self) -> None:
        self._noted: deque[tuple[float, int, float, float]] = deque(maxlen=WINDOW)

    def note(self, seconds: float, measured: Sequence[Measurement]) -> None:
        """Take note of results that came after so many seconds without any."""
        run = sum(m.run_seconds for m in measured)
        built = sum(m.build_seconds for m in measured)
        self._noted.append((seconds, len(measured), run, built))

    @property
    def each(self) -> float | None:
        """Wall time per candidate."""
        return self._for_each([seconds for seconds, *_ in self._noted])

    @property
    def run(self) -> float | None:
        """Running time per candidate."""
        return self._for_each([run for *_, run, _ in self._noted])

    @property
    def work(self) -> float | None:
        """Time to build and run one candidate, as if it were alone."""
        return self._for_each([run + built for *_, run, built in self._noted])

    def _for_each(self, times: Sequence[float]) -> float | None:
        count = sum(count for _, count, *_ in self._noted)
        return sum(times) / count if count else None


@dataclass(frozen=True)
class Pace:
    """Decides how many candidates of a workload are worth starting.

    ``seconds`` of wall time are its share of the run. ``expected`` holds the estimates before any
    measurement, ``batch`` the most candidates per ask, ``final`` the plan of the last comparison.
    Methods take the seconds that are ``left``, the time per candidate from :class:`Rate`, the
    ``best`` latency so far in seconds, the ``worth`` of the final comparison, and the number of
    ``right`` schedules.
    """

    seconds: float
    expected: Expected
    batch: int
    final: Comparison

    def batch_size(self, run: float | None, devices: int = 1) -> int:
        """Return the number of candidates per ask.

        It is small for slow kernels, so that many asks profit from results. Several ``devices`` run
        as many candidates side by side.
        """
        each = self.candidate_seconds(run) / devices
        wanted = int((BATCH_SHARE * self.seconds - self.expected.setup) / each)
        return min(self.batch, max(LEAST_BATCH, int(LEAST_SHARE * self.batch), wanted))

    def affordable(
        self,
        left: float,
        each: float | None,
        best: float | None,
        worth: Worth = USUAL,
        right: int = 0,
    ) -> int:
        """Say how many candidates can be built and run before the final comparison must begin."""
        setup = self.expected.setup if each is None else 0.0  # part of what others took
        free = left - self.reserve(each, best, worth, right) - setup
        return max(0, int(free / self.candidate_seconds(each)))

    def first(self, left: float) -> int:
        """Say how many candidates to begin with if time allows none beside a final comparison.

        At least one: a small result is better than none.
        """
        free = left - self.expected.setup
        return max(1, min(LEAST_FINALISTS, int(free / self.expected.candidate)))

    def reserve(
        self, each: float | None, best: float | None, worth: Worth = USUAL, right: int = 0
    ) -> float:
        """Seconds reserved at the end for the final comparison.

        More are reserved if candidates took longer than expected, as on a busy machine.
        """
        finalist, before = self._finalist_seconds(each, best), self._before_final(best)
        before += self.expected.rivals
        share = before + max(worth.times * RESERVE * self.seconds, LEAST_FINALISTS * finalist)
        most = worth.finalists(self.final.most, right)
        return min(self.comparing(most, each, best), share, MOST_RESERVE * self.seconds)

    def comparing(
        self, count: int, each: float | None, best: float | None, finalist: float | None = None
    ) -> float:
        """Return the seconds to compare so many once, and then the best of them until one wins.

        ``finalist`` is the measured time per finalist so far.
        """
        before = self._before_final(best)
        finalist = finalist or self._finalist_seconds(each, best)
        seconds, times = self._with(best).thorough(count), 1
        while count:
            seconds += times * (before + count * finalist)
            count = self.final.next(count)
            times = self.final.times if count > 1 else 1
        return seconds

    def comparable(
        self,
        left: float,
        late: float,
        each: float | None,
        best: float | None,
        worth: Worth = USUAL,
        right: int = 0,
    ) -> int:
        """Say how many finalists fit into the time that is left.

        At least two, because they may take less than expected. None if these could not even begin
        ``late`` seconds after the end. At most the usual number if there is no time to compare the
        best again.
        """
        free = left - self._before_final(best) - self._with(best).thorough(LEAST_FINALISTS)
        if free <= -late:
            return 0
        wanted = int(free / self._finalist_seconds(each, best))
        count = min(worth.finalists(self.final.most, right), max(LEAST_FINALISTS, wanted))
        while count > self.final.most and self.comparing(count, each, best) > left:
            count -= 1
        return count

    def _before_final(self, best: float | None) -> float:
        """Seconds of a final comparison before any finalist is timed."""
        heats = (best or self.expected.call) > SHORT
        return self.expected.setup + self.expected.last + heats * self.final.heat

    def candidate_seconds(self, each: float | None) -> float:
        """Return the seconds for one candidate: measured so far, or estimated from one call."""
        return each or self.expected.candidate

    def _finalist_seconds(self, each: float | None, best: float | None) -> float:
        usual = self._with(best)
        slowness = max(1.0, each / (usual.candidate + usual.setup / LEAST_BATCH)) if each else 1.0
        return slowness * (self.expected.check + self.final.finalist(usual.call))

    def _with(self, best: float | None) -> Expected:
        """Return the estimates, corrected by the ``best`` latency if it is known."""
        return replace(self.expected, call=best or self.expected.call)
