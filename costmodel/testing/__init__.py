"""What every cost model does, as tests that yours inherit, and the toy spaces they run on.

See ``measure.testing`` for how; here it is ``costmodel.testing.cost_model.CostModelContract``.
"""
