"""Contract of a database's ranking: the best schedule, and its words on the others."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from tilewright.measure.busy import BUSY, why_busy
from tilewright.measure.estimates import latency, over_rival, pooled, rivals_info
from tilewright.measure.records.measurement import NUMPY, ErrorKind, Status
from tilewright.measure.records.ranking import Ranking
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import (
    FEW,
    TARGET,
    WORKLOAD,
    DatabaseTests,
    attempt,
    failed,
    histories,
    lost,
    measured,
    schedule,
    shape_of,
)
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule


class RankingContract(DatabaseTests):
    def test_the_fastest_wins(self, database):
        self.put(database, measured(1, 3.0), measured(2, 1.0), failed(3), measured(4, 2.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)
        found = database.best_few(WORKLOAD, TARGET, 2)
        assert [record.schedule["mc"] for record in found] == [2, 4]

    def test_of_equals_the_first_wins(self, database):
        self.put(database, measured(7, 1.0), measured(3, 1.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(7)

    def test_slow_and_failed_never_win(self, database):
        self.put(database, replace(measured(1, 1.0), status=Status.SLOW), failed(2))
        assert database.best(WORKLOAD, TARGET) is None

    def test_other_workloads_and_targets_do_not_count(self, database):
        self.put(database, measured(1, 0.1), target=replace(TARGET, threads=2))
        self.put(database, measured(2, 0.1), workload=workload("matmul", m=64, n=96, k=128))
        self.put(database, measured(3, 1.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(3)

    def test_a_final_score_replaces_the_search_score_of_its_schedule(self, database):
        self.put(database, measured(1, 0.5), measured(2, 0.9))
        self.put(database, measured(1, 1.0, "final"), measured(2, 0.95, "final"))
        best = database.best(WORKLOAD, TARGET)
        assert (best.schedule, best.measurement.score) == (schedule(2), 0.95)
        assert len(database.best_few(WORKLOAD, TARGET, 9)) == 2

    def test_luck_in_the_search_does_not_beat_a_final_winner(self, database):
        self.put(database, measured(1, 1.0), measured(2, 0.98), measured(1, 1.02, "final"))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(1)

    def test_a_search_score_far_ahead_wins_without_a_final_round(self, database):
        self.put(database, measured(1, 1.0, "final"), measured(2, 0.5))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_a_schedule_found_wrong_in_the_final_round_is_out(self, database):
        wrong = replace(failed(1, ErrorKind.WRONG), round="final")
        self.put(database, measured(1, 0.5), measured(2, 1.0), wrong)
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_only_the_last_comparison_of_a_schedule_counts(self, database):
        finals = [measured(1, 0.8, "final", 2.0), measured(1, 1.0, "final", 1.0)]
        self.put(database, measured(1, 0.7), *finals, measured(2, 0.9, "final", 1.0))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [(r.schedule, r.measurement.score) for r in found] == [
            (schedule(2), 0.9),
            (schedule(1), 1.0),
        ]

    def test_several_comparisons_rank_by_the_samples_of_all_and_are_kept_with_them(self, database):
        rounds = [
            replace(
                measured(1, score, "final"),
                samples=(score,) * 5,
                reference_samples=(score,) * 5,
                info=rivals_info({NUMPY: [2.0 * score]}, [score]),
            )
            for score in (1.0, 1.1, 1.2, 3.0)
        ]
        made = pooled(rounds)
        self.put(database, measured(2, 1.5, "final"), made, measured(3, 1.4, "final"))
        best = database.best(WORKLOAD, TARGET)
        assert best.schedule == schedule(1)
        assert best.measurement == made
        assert 1.0 <= made.score < 1.2
        assert why_busy(best.measurement) == made.info[BUSY] != ""
        assert over_rival(best.measurement, NUMPY).value == 2.0
        assert latency(best.measurement).value == made.score

    def test_who_lost_a_preliminary_comparison_is_out_whatever_was_known_before(self, database):
        lost = [measured(1, 0.7), measured(1, 0.8, "final"), measured(1, 0.9, "preliminary")]
        self.put(database, *lost, measured(2, 0.85, "preliminary"), measured(2, 1.0, "final"))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [(r.schedule, r.measurement.score) for r in found] == [
            (schedule(2), 1.0),
            (schedule(1), 0.9),
        ]

    def test_a_preliminary_comparison_counts_where_none_decided(self, database):
        self.put(database, measured(1, 0.5), measured(2, 0.9))
        self.put(database, measured(1, 1.0, "preliminary"), measured(2, 0.95, "preliminary"))
        best = database.best(WORKLOAD, TARGET)
        assert (best.schedule, best.measurement.score) == (schedule(2), 0.95)

    def test_a_schedule_found_wrong_when_compared_again_is_out(self, database):
        wrong = replace(failed(1, ErrorKind.WRONG), round="final", started_at=2.0)
        self.put(database, measured(1, 0.5, "final", 3.0), wrong, measured(2, 1.0))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(2)

    def test_a_clock_that_was_ahead_wins_nothing(self, database):
        self.put(database, measured(1, 1e-9, "final", at=4e9), measured(1, 5e-6, "final", at=2e9))
        best = database.best(WORKLOAD, TARGET)
        assert best.measurement.score == 5e-6

    def test_a_final_round_that_the_machine_lost_says_nothing(self, database):
        self.put(database, measured(1, 0.5), measured(2, 1.0), replace(lost(1), round="final"))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(1)

    def test_what_a_comparison_passed_over_does_not_beat_it(self, database):
        self.put(database, measured(1, 1.0), measured(2, 1.01), measured(3, 0.2))
        self.put(database, measured(1, 1.3, "final"), measured(4, 1.2))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [record.schedule["mc"] for record in found] == [3, 1, 4, 2]

    def test_a_schedule_is_known_by_its_last_search(self, database):
        self.put(database, measured(1, 1.0, at=1.0), measured(2, 1.2), measured(1, 1.5, at=2.0))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [record.measurement.score for record in found] == [1.2, 1.5]

    def test_what_was_compared_is_known_by_a_search_since_as_well(self, database):
        self.put(database, measured(1, 1.0), measured(1, 1.3, "final"))
        self.put(database, measured(1, 0.99, at=1.0), measured(2, 1.0))
        best = database.best(WORKLOAD, TARGET)
        assert (best.schedule, best.measurement.score) == (schedule(1), 0.99)

    @FEW
    @given(history=histories)
    def test_what_ranks_is_said_by_one_rule(self, database, history):
        target = replace(TARGET, threads=len(database.summaries()) + 1)  # that no other example has
        database.record_all(
            [
                replace(attempt(replace(m, started_at=float(i)), target=target), doubted=doubted)
                for i, (m, doubted) in enumerate(history)
            ]
        )
        sound = [measurement for measurement, doubted in history if not doubted]
        expected: dict[Schedule, float] = {}
        for _, m in Ranking(sound).standing:
            expected.setdefault(m.schedule, m.score)
        found = database.best_few(WORKLOAD, target, 99)
        first = [(r.schedule, r.measurement.score) for r in found if not r.doubted]
        assert first == list(expected.items())
        assert not any(record.doubted for record in found[: len(first)])
        best = database.best(WORKLOAD, target)
        (summary,) = (s for s in database.summaries() if s.target == target)
        assert summary.score == (best.measurement.score if best else None)
        if first:
            assert list(database.nearest(shape_of(64), target)) == [best]

    def test_what_is_doubted_ranks_last(self, database):
        self.put(database, measured(1, 1e-9, "final"), measured(2, 2.0), measured(3, 1.0))
        database.doubt(database.best(WORKLOAD, TARGET))
        found = database.best_few(WORKLOAD, TARGET, 9)
        assert [(r.schedule["mc"], r.doubted) for r in found] == [(3, False), (2, False), (1, True)]
        (summary,) = database.summaries()
        assert (summary.score, summary.doubted) == (1.0, False)

    def test_what_is_doubted_replaces_nothing(self, database):
        self.put(database, measured(1, 1.0), measured(1, 1e-9, "final"))
        database.doubt(database.best(WORKLOAD, TARGET))
        best = database.best(WORKLOAD, TARGET)
        assert (best.measurement.score, best.doubted) == (1.0, False)

    def test_what_is_doubted_is_not_what_is_known_of_others(self, database):
        self.put(database, measured(1, 1e-9), workload=shape_of(128))
        self.put(database, measured(1, 1.0), workload=shape_of(512))
        database.doubt(database.best(shape_of(128), TARGET))
        found = list(database.nearest(shape_of(64), TARGET))
        assert [record.workload for record in found] == [shape_of(512)]

    def test_some_versions_of_templates(self, database):
        self.put(database, measured(1, 0.5))
        database.record(Record(WORKLOAD, TARGET, "contraction.2", measured(2, 1.0)))
        assert database.best(WORKLOAD, TARGET).schedule == schedule(1)
        assert database.best(WORKLOAD, TARGET, ["contraction.2"]).schedule == schedule(2)
        assert database.best(WORKLOAD, TARGET, ["contraction.3"]) is None
        assert database.best(WORKLOAD, TARGET, []) is None
        found = database.best_few(WORKLOAD, TARGET, 9, {"contraction.2", "thin.1"})
        assert [record.schedule for record in found] == [schedule(2)]

    def test_nearest_shapes_first(self, database):
        for m in (1024, 128, 2048):
            self.put(database, measured(m, 1.0), workload=shape_of(m))
        self.put(database, failed(1), workload=shape_of(60))
        self.put(database, measured(64, 1.0), workload=shape_of(64))
        self.put(
            database, measured(1, 1.0), workload=shape_of(100), target=replace(TARGET, cores=8)
        )
        found = list(database.nearest(shape_of(64), TARGET))
        assert [record.workload.extents["m"] for record in found] == [128, 1024, 2048]
        assert len(list(database.nearest(shape_of(64), TARGET, 1))) == 1

    def test_a_workload_of_which_nothing_right_is_left_takes_no_place(self, database):
        wrong = replace(failed(1, ErrorKind.WRONG), round="final")
        self.put(database, measured(1, 1.0), wrong, workload=shape_of(128))
        self.put(database, measured(2, 1.0), workload=shape_of(512))
        (found,) = database.nearest(shape_of(64), TARGET, 1)
        assert found.workload == shape_of(512)

    def test_the_same_types_are_nearer_than_the_sameshape_of(self, database):
        self.put(database, measured(1, 1.0), workload=shape_of(64, dtype="bfloat16"))
        self.put(database, measured(2, 1.0), workload=shape_of(4096))
        found = list(database.nearest(shape_of(64), TARGET))
        assert [record.schedule["mc"] for record in found] == [2, 1]

    def test_the_same_epilogue_in_another_spelling_is_nearer_than_another_one(self, database):
        plain, fused = workload("matmul", m=64, n=96, k=128), "max(b[n] + x, 0)"
        self.put(database, measured(1, 1.0), workload=plain)
        spelt = workload("matmul", m=512, n=96, k=128, epilogue=fused)
        self.put(database, measured(2, 1.0), workload=spelt)
        found = list(database.nearest(WORKLOAD, TARGET))
        assert [record.workload for record in found] == [spelt, plain]

    def test_words_that_only_some_workloads_have(self, database):
        self.put(database, measured(1, 1.0), workload=shape_of(64, dtype="float16"))
        half = shape_of(64, dtype="float16", accumulator="float16")
        self.put(database, measured(2, 1.0), workload=half)
        found = list(database.nearest(shape_of(32, dtype="float16"), TARGET))
        assert [record.schedule["mc"] for record in found] == [1, 2]
        found = list(database.nearest(shape_of(32, dtype="float16", accumulator="float16"), TARGET))
        assert [record.schedule["mc"] for record in found] == [2, 1]

    def test_related_shapes_devices_and_kinds_of_the_same_templates(self, database):
        near, far = replace(TARGET, cores=8), replace(TARGET, cores=64)
        cuda = cuda_target("sm_80")
        plain = workload("matmul", m=64, n=96, k=128)
        self.put(database, measured(1, 1.0))  # the very workload and target
        self.put(database, measured(2, 1.0), target=near)
        self.put(database, measured(3, 1.0), target=far)
        self.put(database, measured(4, 1.0), workload=shape_of(256))
        self.put(database, measured(5, 1.0), workload=shape_of(256), target=far)
        self.put(database, measured(6, 1.0), workload=plain)
        self.put(database, measured(7, 1.0), target=cuda)
        self.put(database, failed(8), workload=shape_of(65))
        other = Record(shape_of(66), TARGET, "thin.1", measured(9, 1.0))
        database.record(other)
        found = database.related(WORKLOAD, TARGET, ["contraction.1"])
        assert [record.schedule["mc"] for record in found] == [2, 3, 6, 4, 5]
        found = database.related(WORKLOAD, TARGET, ["contraction.1"], 2)
        assert [record.schedule["mc"] for record in found] == [2, 3]
        (thin,) = database.related(WORKLOAD, TARGET, ["thin.1"])
        assert thin.schedule["mc"] == 9
        assert database.related(WORKLOAD, TARGET, []) == []

    def test_siblings_the_nearest_first(self, database):
        near, far, older = (replace(TARGET, cores=n) for n in (8, 64, 16))
        self.put(database, measured(1, 1.0))
        self.put(database, measured(2, 1e-3), target=far)
        self.put(database, measured(3, 2.0), measured(4, 1.0), failed(5), target=near)
        database.record(Record(WORKLOAD, older, "contraction.0", measured(6, 1.0)))
        self.put(database, measured(7, 1.0), workload=shape_of(64), target=near)
        self.put(database, measured(8, 1.0), target=replace(TARGET, threads=2))
        self.put(database, failed(9), target=replace(TARGET, cores=4))
        found = database.of_siblings(WORKLOAD, TARGET, ["contraction.1"])
        assert [record.schedule["mc"] for record in found] == [4, 2]
        assert list(database.of_siblings(WORKLOAD, TARGET, [])) == []

    def test_the_same_machine_for_other_numbers_of_threads(self, database):
        two, four = (replace(TARGET, threads=n) for n in (2, 4))
        self.put(database, measured(1, 1.0))
        self.put(database, measured(2, 2.0), measured(3, 1.0), target=four)
        self.put(database, measured(4, 1.0), target=two)
        self.put(database, measured(5, 1.0), target=replace(TARGET, threads=2, cores=8))
        self.put(database, failed(6), target=replace(TARGET, threads=3))
        self.put(database, measured(7, 1.0), workload=shape_of(64), target=two)
        found = database.of_other_threads(WORKLOAD, TARGET, ["contraction.1"])
        assert [record.schedule["mc"] for record in found] == [3, 4]
        found = database.of_other_threads(WORKLOAD, two, ["contraction.1"])
        assert [record.schedule["mc"] for record in found] == [1, 3]
        assert database.of_other_threads(WORKLOAD, TARGET, []) == []

    def test_summaries(self, database):
        self.put(database, measured(1, 2.0), measured(1, 1.5, "final"), failed(2))
        self.put(database, failed(1), target=replace(TARGET, threads=2))
        one, two = database.summaries()
        assert database.pairs() == [(WORKLOAD, one.target), (WORKLOAD, two.target)]
        assert (one.workload, one.flops) == (str(WORKLOAD), WORKLOAD.flops)
        assert (one.target, one.trials, one.failures) == (TARGET, 2, 1)
        assert one.score == 1.5
        assert (two.target.threads, two.trials, two.failures, two.score) == (2, 1, 1, None)
