"""Read the operator that a command line names: a name, a program's text, or a file with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.scheduler.cli import completing
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.files import open_now

if TYPE_CHECKING:
    from tilewright.spaces.language.program import Program
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
GradientNames = Annotated[
    str | None,
    typer.Option(
        "--gradient",
        metavar="NAMES",
        help="Take the gradient by these operands instead, such as x,weight.",
    ),
]
SavedNames = Annotated[
    str | None,
    typer.Option(
        "--saved",
        metavar="NAMES",
        help="Stages that the gradient reads and does not compute again, such as y,lse; or search.",
    ),
]
SolvedNames = Annotated[
    str | None,
    typer.Option(
        "--solved",
        metavar="NAMES",
        help="Operands that the gradient solves for in what is saved, such as a norm's x.",
    ),
]
HeldNames = Annotated[
    str | None,
    typer.Option(
        "--held",
        metavar="NAMES",
        help="With --saved search: arrays that are there anyway and count for no memory.",
    ),
]
MemoryBytes = Annotated[
    int | None,
    typer.Option(
        "--memory",
        metavar="BYTES",
        min=0,
        help="With --saved search: the most that a forward pass keeps for the gradient.",
    ),
]
SEARCH = "search"
"""The value of ``--saved`` that leaves the stages to the search."""


Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=FILE",
        help="The entries of a table, or the elements of a constant, from a .npy file.",
    ),
]


@dataclass(frozen=True)
class Differentiated:
    """The values of ``--gradient`` and the options that go with it, as they were given.
    :class:`InputError` if one of them has no use."""

    wrt: str | None = None
    saved: str | None = None
    solved: str | None = None
    memory: int | None = None
    held: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("saved", self.saved), ("solved", self.solved)):
            if self.wrt is None and value is not None:
                raise InputError(f"--{name} {value} is for a gradient; give --gradient, too")
        for name, given in (("memory", self.memory), ("held", self.held)):
            if given is not None and not self.is_searched:
                raise InputError(f"--{name} {given} is for a search; give --saved search, too")

    @property
    def is_asked(self) -> bool:
        """Tell whether a gradient is asked for."""
        return self.wrt is not None

    @property
    def is_searched(self) -> bool:
        """Tell whether it is to be found out what the gradient reads."""
        return self.saved == SEARCH

    def program(self, made: Program) -> Program:
        """Return a program, or its gradient if that is asked for."""
        from tilewright.spaces.workloads.gradients import gradient

        if self.wrt is None:
            return made
        if self.is_searched:
            raise InputError("--saved search is for tune and query; allowed here: names of stages")
        return gradient(made, self.wrt, self.saved or "", solved=self.solved or "")

    def workload(self, made: Workload) -> Workload:
        """Return a workload, or that of its gradient if that is asked for."""
        from tilewright.spaces.workloads.served import workload_of

        return workload_of(self.program(made.written)) if self.is_asked else made


NEITHER = Differentiated()


def workload_from_arguments(
    operator: str | None,
    words: Sequence[str] | None,
    file: Path | None = None,
    differentiated: Differentiated = NEITHER,
    tables: Sequence[str] | None = None,
) -> Workload:
    """Return the workload that a command line names; :class:`InputError` if it names none."""
    from tilewright.spaces.operators import parameters_of, program_workload, workload  # with NumPy

    if file is not None:
        found = program_workload(program_text(file), extents_of(operator, words))
    elif operator is None:
        raise InputError("Missing argument 'OPERATOR', or --file")
    else:
        found = workload(operator, **parameters_of(words or ()))
    made = differentiated.workload(found)
    if not tables:
        return made
    from tilewright.spaces.workloads.served import workload_of

    return workload_of(with_tables_of(made.written, tables))


def with_tables_of(made: Program, words: Sequence[str] | None) -> Program:
    """Return a program with the tables that ``NAME=FILE`` words name."""
    from tilewright.spaces.language.given import read_table
    from tilewright.spaces.workloads.tables import with_tables

    tables = {}
    for word in words or ():
        name, equals, file = word.partition("=")
        if not (name and equals and file):
            raise InputError(f"--table {shown(word)} names no file; allowed: row=graph.npy")
        tables[name] = read_table(Path(file))
    return with_tables(made, tables)


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
