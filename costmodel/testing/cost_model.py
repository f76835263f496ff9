"""Tests that every cost model must pass. Inherit, and say how one is made and loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.costmodel.interfaces import CostModel
from tilewright.costmodel.testing.toys import examples, points, product, toy_space, true_latency
from tilewright.spaces.errors import InputError
from tilewright.spaces.testing.targets import made_up_cpu


class CostModelContract:
    """``make`` gives a new, untrained model over toy spaces; ``load`` reads a saved one."""

    least_correlation = 0.5

    def make(self) -> CostModel:
        raise NotImplementedError

    def load(self, path: Path) -> CostModel:
        raise NotImplementedError

    @pytest.fixture
    def space(self):
        return toy_space(product(), made_up_cpu())

    @pytest.fixture
    def trained(self, space):
        model = self.make()
        model.fit(examples(space, points(space, 200), failing=9))
        return model

    def test_untrained_predictions_are_finite(self, space):
        rows = points(space, 50)
        score, uncertainty = self.make().predict(space, rows)
        assert score.shape == uncertainty.shape == (len(rows),)
        assert np.isfinite(score).all()
        assert np.isfinite(uncertainty).all()

    def test_fitting_nothing_leaves_predictions(self, space):
        model = self.make()
        model.fit([])
        assert np.isfinite(model.predict(space, points(space, 5))[0]).all()

    def test_fitting_only_failures_leaves_finite_predictions(self, space):
        model = self.make()
        model.fit(examples(space, points(space, 40), failing=1))
        assert np.isfinite(model.predict(space, points(space, 5))[0]).all()

    def test_predictions_have_the_shape_and_type_promised(self, space, trained):
        rows = points(space, 300, seed=1)
        score, uncertainty = trained.predict(space, rows)
        assert score.dtype == uncertainty.dtype == np.float64
        assert score.shape == uncertainty.shape == (len(rows),)
        assert np.isfinite(score).all()
        assert (uncertainty > 0).all()

    def test_an_empty_population_has_no_predictions(self, space, trained):
        score, uncertainty = trained.predict(space, points(space, 5)[:0])
        assert score.shape == uncertainty.shape == (0,)

    def test_a_row_is_judged_alone(self, space, trained):
        rows = points(space, 60, seed=2)
        together = trained.predict(space, rows)[0]
        backwards = trained.predict(space, rows[::-1])[0]
        np.testing.assert_allclose(together, backwards[::-1], rtol=1e-12)
        np.testing.assert_allclose(together[:1], trained.predict(space, rows[:1])[0], rtol=1e-12)

    def test_the_order_of_unseen_schedules_is_learned(self, space, trained):
        seen = {tuple(row) for row in points(space, 200)}
        rows = np.array([r for r in points(space, 3000, seed=3) if tuple(r) not in seen])
        score, _ = trained.predict(space, rows)
        truth = 1 / true_latency(space, rows)
        ranks = [np.argsort(np.argsort(values)) for values in (score, truth)]
        assert np.corrcoef(*ranks)[0, 1] > self.least_correlation

    def test_training_is_deterministic_whatever_the_order(self, space):
        known = examples(space, points(space, 80), failing=9)
        predictions = []
        for order in (known, known[::-1]):
            model = self.make()
            model.fit(order)
            predictions.append(model.predict(space, points(space, 100, seed=4))[0])
        np.testing.assert_array_equal(*predictions)

    def test_fitting_again_forgets_what_was_before(self, space, trained):
        other = examples(space, points(space, 30, seed=5))
        trained.fit(other)
        fresh = self.make()
        fresh.fit(other)
        rows = points(space, 50, seed=6)
        np.testing.assert_array_equal(
            trained.predict(space, rows)[0], fresh.predict(space, rows)[0]
        )

    def test_a_saved_model_predicts_the_same(self, space, trained, tmp_path):
        path = tmp_path / "model.json"
        trained.save(path)
        rows = points(space, 100, seed=7)
        for before, after in zip(
            trained.predict(space, rows), self.load(path).predict(space, rows), strict=True
        ):
            np.testing.assert_array_equal(before, after)

    @pytest.mark.parametrize("content", [b"", b"not a model", b"{}", b"[1]", b"\x80\x04N."])
    def test_a_foreign_file_is_refused(self, tmp_path, content):
        path = tmp_path / "model.json"
        path.write_bytes(content)
        with pytest.raises(InputError, match="not a Tilewright model"):
            self.load(path)

    def test_a_missing_file_is_refused(self, tmp_path):
        with pytest.raises(InputError, match=r"nowhere\.json"):
            self.load(tmp_path / "nowhere.json")
