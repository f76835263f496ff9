"""The error for what cannot be translated."""


class Gap(Exception):  # noqa: N818  # it is no fault: torch computes what is left
    """A node, or a use of it, that the language or the translation cannot say; the message names
    the feature."""
