"""Chains over the columns of a product on a CPU: attention, and what is like it.

``code`` writes the loops over blocks of rows and tiles of keys. Within them, ``keys`` computes
scores, ``chain`` turns the scores of a row into weights and updates its states, ``values`` adds
weighted rows to the sums, ``merging`` joins parts of the keys, and ``finish`` writes the outputs;
``places`` is about ``argmax`` and ``argmin``. ``access`` reads and stores what they need.
"""
