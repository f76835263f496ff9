"""The one exception that means "the input was wrong", as opposed to "the program is".

Everything a user can get wrong (an unknown operator, a negative size, a foreign file) raises
:class:`InputError` with one sentence: what was wrong, with which value, and what is allowed.
The command line prints that sentence and exits with code 2.
"""


class InputError(ValueError):
    """Input that cannot be used: the message says what, with which value, and what is allowed."""


SHOWN = 80  # characters of a value that a message repeats


def shown(value: object) -> str:
    """Return ``repr(value)`` for a message of one line, its middle left out where it is long.

    Some values have no ``repr``: whole numbers of thousands of digits, and foreign objects.
    """
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 20]}...{text[-10:]}"
