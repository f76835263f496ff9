"""Programs that several CPU kernels compute, one after the other.

``spaces.staged`` cuts programs into parts; ``code`` calls the kernels of the parts.
"""
