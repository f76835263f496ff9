"""What every template does, as tests that yours inherit.

See ``measure.testing`` for how; here it is ``spaces.testing.template.TemplateContract``.
"""
