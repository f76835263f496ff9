"""The calls that a model is captured for: one for each phase, number of rows and number of shards.

A model is a module, or a function that returns one and its arguments. The function takes what it
names of ``rows`` (or ``tokens``), ``phase``, ``draft`` and ``tp``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.scheduler.torch.extraction.blame import failed
from tilewright.scheduler.torch.extraction.shards import MOST_SHARDS, fake_group
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.checks import positive, whole

PHASES = ("decode", "prefill")
"""The phases of serving a model, which have numbers of rows of their own."""
ROWS = ("rows", "tokens")
"""The names that the number of rows may have."""
MOST_ROWS = 1 << 24

Numbers = Sequence[int] | Mapping[int, float]
"""Numbers of rows or of tokens, perhaps with weights."""
Rows = Mapping[str, Numbers]
"""Numbers of rows by phase."""
Model = Callable[..., Any]
"""A module, or a function that returns one and its arguments."""


@dataclass(frozen=True)
class Call:
    """A call that is captured: its section of the suite, the words before the places in it, and how
    much it counts."""

    section: str
    label: str
    weight: float
    module: torch.nn.Module
    args: Sequence[Any]


def calls(
    model: Model,
    args: Sequence[Any],
    rows: Rows | None = None,
    shards: Sequence[int] | None = None,
    draft: Numbers | None = None,
) -> Generator[Call, None, None]:
    """Yield the calls of ``model``; a process group of as many ranks as a call has shards is there
    until the next one is asked for.

    With speculative decoding, a step verifies a ``draft`` of some tokens and one more, so that
    decoding has as many rows as the batch times one more than the draft. :class:`InputError` for
    what the model does not take.
    """
    if isinstance(model, torch.nn.Module):
        for what, asked in (("rows", rows), ("tp", shards)):
            if asked:
                raise InputError(f"{what} are for a function that takes {what}; a module was given")
        yield Call("", "", 1, model, args)
        return
    takes = inspect.signature(model).parameters
    _check(takes, title_of(model), rows, shards)
    for count in shards or [1]:
        for phase, number, length, weight in _numbers(rows, draft):
            given: dict[str, Any] = dict.fromkeys(ROWS, number) if phase else {}
            given |= {"tp": count} | ({"phase": phase, "draft": length} if phase else {})
            named = {name: value for name, value in given.items() if name in takes}
            words = [phase, *([f"tp{count}"] if shards else [])]
            section = "-".join(filter(None, words))
            label = " ".join([section, *([str(number)] if phase else [])])
            with fake_group(count):
                yield Call(section, label, weight, *_called(model, named))


def title_of(model: Model) -> str:
    """Return the name of a model."""
    return str(getattr(model, "__name__", type(model).__name__))


def _check(
    takes: Mapping[str, inspect.Parameter],
    title: str,
    rows: Rows | None,
    shards: Sequence[int] | None,
) -> None:
    """Raise :class:`InputError` if a function that takes these parameters cannot be called so."""
    wanted = [takes[name] for name in ROWS if name in takes]
    if rows and not wanted:
        raise InputError(f"the function {title} takes no rows; allowed: a parameter rows")
    if not rows and any(each.default is each.empty for each in wanted):
        raise InputError(f"the function {title} takes rows; give their numbers, such as decode=1,8")
    for count in shards or ():
        whole("tp", count, 1, MOST_SHARDS)
    if shards and "tp" not in takes:
        raise InputError(f"the function {title} takes no tp; allowed: a parameter tp")


def _numbers(rows: Rows | None, draft: Numbers | None) -> Iterator[tuple[str, int, int, float]]:
    """Yield each phase with its numbers of rows, the tokens of a draft, and weights; without rows,
    a phase of no name."""
    if draft and "decode" not in (rows or {}):
        raise InputError("a draft is for decoding; give rows of decode, too")
    for phase, counts in (rows or {"": [0]}).items():
        if rows and phase not in PHASES:
            raise InputError(f"unknown phase {shown(phase)}; allowed: {', '.join(PHASES)}")
        drafts = draft if draft and phase == "decode" else [0]
        for count, weight in _weighed(counts, f"rows of {phase}", 1 if rows else 0):
            for length, share in _weighed(drafts, "draft", 0):
                number = whole(f"rows of {phase}", count * (length + 1), 0, MOST_ROWS)
                yield phase, number, length, weight * share


def _weighed(numbers: Numbers, what: str, least: int) -> Iterator[tuple[int, float]]:
    """Yield the numbers with their weights; :class:`InputError` for what is out of range."""
    pairs = numbers.items() if isinstance(numbers, Mapping) else ((n, 1) for n in numbers)
    for number, weight in pairs:
        yield whole(what, number, least, MOST_ROWS), positive(f"weight of {what}", weight)


def _called(model: Model, named: Mapping[str, Any]) -> tuple[torch.nn.Module, Sequence[Any]]:
    """Call a function of the user's; :class:`InputError` with its line if it fails."""
    try:
        found = model(**named)
    except InputError:
        raise
    except Exception as error:  # anything that the function may raise
        raise failed(error) from error
    match found:
        case (torch.nn.Module() as module, tuple() | list() as args):
            return module, args
    raise InputError(
        f"the function returns a {type(found).__name__}; allowed: a module and a tuple of arguments"
    )
