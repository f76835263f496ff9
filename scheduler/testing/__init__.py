"""Tests that every search must pass, for yours to inherit, and the simulated machine they use.

See ``measure.testing`` for how to inherit; the class is
``scheduler.testing.search.SearchContract``.
"""
