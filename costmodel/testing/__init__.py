"""Tests that every cost model must pass, for yours to inherit, and the toy spaces they use.

See ``measure.testing`` for how to inherit; the class is
``costmodel.testing.cost_model.CostModelContract``.
"""
