"""Contract tests of templates, for your classes to inherit.

See ``measure.testing`` for how; here it is ``spaces.testing.template.TemplateContract``.
"""
