"""Show the course of a run that a Python program starts, if it asks for that."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tilewright.scheduler.cli.display.choice import Display
    from tilewright.scheduler.tuning.events import Event


class SilentDisplay:
    """The display of a run that nobody watches."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing was begun."""

    def tell(self, event: Event) -> None:
        """Say nothing."""


def watching(asked: bool) -> AbstractContextManager[Display]:
    """Return the display of a run: that of the command line or of a notebook, if it is ``asked``
    for."""
    if not asked:
        return SilentDisplay()
    from tilewright.scheduler.cli.display.choice import display_in_python  # takes a while

    return display_in_python()


def each_of(
    first: Callable[[Any], None], second: Callable[[Any], None] | None
) -> Callable[[Any], None]:
    """Return a function that hands what it is told to both."""
    if second is None:
        return first

    def tell(progress: Any) -> None:
        first(progress)
        second(progress)

    return tell
