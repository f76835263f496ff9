"""What every search does, as tests that yours inherit, and the made-up machine they run on.

See ``measure.testing`` for how; here it is ``scheduler.testing.search.SearchContract``.
"""
