"""Read the operator that a command line names: a name, a program's text, or a file with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli import completing
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import open_now

if TYPE_CHECKING:
    from tilewright.spaces.workloads.workload import Workload

LARGEST_FILE = 1 << 16  # bytes of a program's text, at most

Operator = Annotated[
    str | None,
    typer.Argument(
        help="What to compute: an operator, such as matmul, or a program's text.",
        show_default=False,
        autocompletion=completing.operators,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME=VALUE...",
        help="Its parameters, such as m=512 n=512 k=512.",
        autocompletion=completing.parameters,
    ),
]
ProgramFile = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="A file with a program's text.")
]


def workload_from_arguments(
    operator: str | None, words: Sequence[str] | None, file: Path | None = None
) -> Workload:
    """Return the workload that a command line names; :class:`InputError` if it names none."""
    from tilewright.spaces.operators import parameters_of, program_workload, workload  # with NumPy

    if file is not None:
        return program_workload(program_text(file), extents_of(operator, words))
    if operator is None:
        raise InputError("Missing argument 'OPERATOR', or --file")
    return workload(operator, **parameters_of(words or ()))


def extents_of(operator: str | None, words: Sequence[str] | None) -> Mapping[str, Any]:
    """Return the ``name=value`` words beside a file: the first one stands where operators do."""
    from tilewright.spaces.operators import parameters_of

    return parameters_of([*([operator] if operator else []), *(words or ())])


def program_text(file: Path) -> str:
    """Return the text in a file; :class:`InputError` if it holds none."""
    try:
        with open_now(file) as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot read the program {file}: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise InputError(f"{file} is no program: over {LARGEST_FILE} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InputError(f"{file} is no program: its bytes are no text") from None
