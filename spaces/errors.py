"""The one exception that means "the input was wrong", as opposed to "the program is".

Everything a user can get wrong (an unknown operator, a negative size, a foreign file) raises
:class:`InputError` with one sentence: what was wrong, with which value, and what is allowed.
The command line prints that sentence and exits with code 2.
"""


class InputError(ValueError):
    """Input that cannot be used: the message says what, with which value, and what is allowed."""
