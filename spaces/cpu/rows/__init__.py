"""CPU kernels of reductions along rows, some of which depend on others, and of outputs that use
them.

``code`` shares rows among workers, ``row`` writes the passes and outputs of one row, ``reducing``
one pass. ``columns`` walks along a row, ``access`` loads and stores, ``scopes`` writes expressions
on vectors, ``held`` finds values to keep between passes, and ``column_sums`` adds up over all rows.
``work`` counts the operations of a walk.
"""
