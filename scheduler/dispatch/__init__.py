"""Serve all sizes of one axis by a few kernels.

A :class:`~scheduler.dispatch.table.Table` says which kernel computes how many rows of a call. It
is made from a profile of sizes and from the records of a database, by
:mod:`scheduler.dispatch.making`. A :class:`~scheduler.dispatch.function.Dispatch` calls kernels by
it. Each kernel computes a fixed number of rows. A call of more rows is cut into such pieces, where
the last one may begin before the end of the piece before it; a call of fewer rows is copied and
padded. No kernel reads or writes outside the arrays of the caller.
"""
