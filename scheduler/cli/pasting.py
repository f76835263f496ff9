"""Lines to paste at the end of a run: the call of what was found, and the command again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.scheduler.cli.text import without_passwords
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.spelling import short_text
from tilewright.spaces.workloads.workload import Workload

Found = tuple[Workload, Target, Numerics]
"""A workload that was tuned, the target, and the promise about errors."""


def lines_to_paste(found: Iterable[Found], db: str, command: str) -> Iterator[str]:
    """Yield the calls in Python of what was found, and the ``command`` that repeats the run, if
    there is one."""
    yield "to call it in Python:"
    for workload, target, numerics in found:
        yield f"  {best_call(workload, target, db, numerics)}"
    if command:
        yield from ("to repeat the run:", f"  {command}")


def best_call(workload: Workload, target: Target, db: str, numerics: Numerics) -> str:
    """Return the call of ``tilewright.best`` that returns the kernel, without passwords."""
    arguments = [_quoted(short_text(workload)), _quoted(target.text)]
    arguments.append(_quoted(without_passwords(db)))
    if numerics is not Numerics.STRICT:
        arguments.append(f"numerics={_quoted(str(numerics))}")
    return f"best({', '.join(arguments)})"


def _quoted(text: str) -> str:
    """Return ``text`` as a literal of Python, in double quotes where that is possible."""
    found = repr(text)
    return f'"{found[1:-1]}"' if found.startswith("'") and '"' not in text else found
