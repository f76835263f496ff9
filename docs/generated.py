"""Reference pages that are written from the code itself, so that they are never out of date.

``write(folder)`` makes ``functions.md``, ``operators.md``, ``command-line.md`` and ``tables.inc``
in it. They are not kept in the repository.
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright import __version__


def write(folder: Path) -> None:
    """Write all generated pages into ``folder``."""
    pages = {
        "functions.md": functions(),
        "operators.md": operators(),
        "command-line.md": command_line(),
        "tables.inc": tables(),  # database.md includes it
    }
    for name, lines in pages.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def functions() -> Iterator[str]:
    """The functions, casts and reducers of the language, with their bounds on errors."""
    from tilewright.spaces.language.functions import FUNCTIONS, REDUCERS
    from tilewright.spaces.language.reading.spelt import CONDITIONS
    from tilewright.spaces.language.reading.spelt import FUNCTIONS as SPELT
    from tilewright.spaces.language.tree import Read

    yield from ("# Functions and reducers", "")
    yield "Generated code computes functions in float32. The bound on its error is relative plus"
    yield from ("absolute; both are 0 where the result is exact.", "")
    rows = [
        (f"`{f.name}`", str(f.arity), *(f"{error:g}" for error in f.error))
        for f in FUNCTIONS.values()
    ]
    yield from table(("function", "arguments", "relative error", "absolute error"), rows)
    yield from ("", "These are written with others as a program is read:", "")
    x = Read("x", ())
    spelt = {name: known.meaning(x) for name, known in {**SPELT, **CONDITIONS}.items()}
    yield from table(("function", "stands for"), [(f"`{n}`", f"`{v}`") for n, v in spelt.items()])
    yield from ("", "## Reducers", "")
    yield "`reducer[axes](expression)` takes the values along some axes to one value."
    yield "`mean`, `var`, `softmax`, `log_softmax` and `logsumexp` are written with these."
    yield ""
    reducers = [
        (f"`{r.name}`", "place" if r.argument else "value", f"{r.identity:g}")
        for r in REDUCERS.values()
    ]
    yield from table(("reducer", "gives a", "over nothing"), reducers)


def operators() -> Iterator[str]:
    """The operators that have a name, with the program of an example each."""
    from tilewright.spaces.named import named, names, operator
    from tilewright.spaces.operators import parameters_of

    yield from ("# Operators", "")
    yield "Each named operator is a short program. `tilewright show OPERATOR ...` prints it."
    for name in names():
        known = named(name)
        made = operator(name, **parameters_of(shlex.split(known.example)))
        yield from (
            "",
            f"## {name}",
            "",
            f"{known.summary[:1].upper()}{known.summary[1:].rstrip('.')}.",
        )
        yield from ("", "```text", f"tilewright show {name} {known.example}", "```")
        yield from ("", "```text", *str(made).splitlines(), "```")


def command_line() -> Iterator[str]:
    """The commands with their arguments, options and examples."""
    import typer

    from tilewright.scheduler.cli.app import app

    root: Any = typer.main.get_command(app(()))
    yield from ("# Command line", "", f"`tilewright` {__version__}. Bad input gives one line on")
    yield from ("standard error and exit code 2.", "")
    yield from _commands("tilewright", root)


def _commands(path: str, group: Any) -> Iterator[str]:
    for name, command in group.commands.items():
        if getattr(command, "commands", None):
            yield from _commands(f"{path} {name}", command)
        elif not command.hidden:
            yield from _command(f"{path} {name}", command)


def _command(path: str, command: Any) -> Iterator[str]:
    text, _, examples = (command.help or "").partition("\b\n")
    examples = examples.partition(":\n")[2]  # without the heading
    yield from ("", f"## {path}", "", *text.strip().splitlines(), "")
    if examples:
        yield from ("```text", *map(str.rstrip, examples.strip().splitlines()), "```", "")
    rows = [(_spelled(p), _meaning(p)) for p in command.params if p.name != "help"]
    if rows:
        yield from table(("option", "meaning"), rows)


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name or '').upper()}`"
    return ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))


def _meaning(parameter: Any) -> str:
    text = getattr(parameter, "help", None) or ""
    shown = getattr(parameter, "show_default", None)
    default = shown if isinstance(shown, str) else parameter.default
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"{text} Default: `{default}`." if plain and str(default) else text


def tables() -> Iterator[str]:
    """The tables of a tuning database, their columns and indexes, and the migrations."""
    from tilewright.measure.tables.schema import MEANING, metadata

    for made in metadata.tables.values():
        yield from ("", f"## {made.name}", "", made.info[MEANING], "")
        rows = [(f"`{c.name}`", _type(c), str(c.doc)) for c in made.columns]
        yield from table(("column", "type", "meaning"), rows)
        indexes = [f"`{i.name}` ({', '.join(i.columns.keys())})" for i in made.indexes]
        if indexes:
            yield from ("", f"Indexes: {', '.join(sorted(indexes))}.")
    yield from ("", "## Migrations", "")
    yield from table(("revision", "what it does"), _migrations())


def _type(column: Any) -> str:
    words = [str(column.type).lower()]
    if not column.nullable:
        words.append("not null")
    if column.primary_key or column.unique:
        words.append("primary key" if column.primary_key else "unique")
    words += [f"to `{key.target_fullname}`" for key in column.foreign_keys]
    return ", ".join(words)


def _migrations() -> Iterator[tuple[str, str]]:
    """The revisions with the first line of each, oldest first."""
    from tilewright.measure.tables import migrations

    for path in sorted(Path(migrations.__path__[0]).glob("versions/r*.py")):
        said = str(ast.get_docstring(ast.parse(path.read_text())))
        yield f"`{path.stem[1:5]}`", said.partition("\n")[0]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
