"""Show what a database knows: figures, tables, and a page in one file.

The data (:mod:`scheduler.report.material`, :mod:`scheduler.report.figures`) is separate from its
drawing (:mod:`scheduler.report.drawing.svg`, :mod:`scheduler.report.pages.page`).
"""
