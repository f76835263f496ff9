"""``tilewright show``, ``tilewright operators`` and ``tilewright targets``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scheduler.cli.asked import Operator, Parameters, ProgramFile, extents_of, program_text
from scheduler.cli.options import TargetName, Threads
from spaces.errors import InputError
from spaces.operators import parameters_of

if TYPE_CHECKING:
    from spaces.language import Program


def show_command(
    operator: Operator = None,
    parameters: Parameters = None,
    file: ProgramFile = None,
    target: TargetName = "cpu",
    threads: Threads = None,
) -> None:
    """Print an operator's program, what is derived of it, and which templates serve it.

    \b
    Examples:
      tilewright show layernorm r=4096 c=1024
      tilewright show "y[r, c] = softmax[c](x[r, c])" r=4096 c=1024 dtype=bfloat16
      tilewright show --file my.tw r=4096 c=1024
    """
    made = _program(operator, parameters or [], file)

    from scheduler.cli.output import put
    from spaces.derivation.facts import describe
    from spaces.target import detect_target
    from spaces.workloads.served import served

    machine = detect_target(target, threads)
    put(f"{made}\n\nidentity: {made.digest}")
    put("\n".join(["", *describe(made).lines, "", f"templates on {machine.summary}:"]))
    for name, reason in served(made, machine):
        put(f"  {name}: {'serves it' if reason is None else reason}")


def operators_command() -> None:
    """Print the operators that have a name, with an example each."""
    from scheduler.cli.output import print_table
    from spaces.named import named, names

    found = [named(name) for name in names()]
    rows = [(o.name, o.summary, f"tilewright show {o.name} {o.example}") for o in found]
    print_table(("operator", "what it gives", "example"), rows)


def targets_command() -> None:
    """Print the targets that have a name, what they are here, and an example each."""
    from scheduler.cli.output import print_table
    from spaces.target import detect_target, target_names

    rows = []
    for name in target_names():
        try:
            example = f"tilewright show matmul m=512 n=512 k=512 --target {name}"
            rows.append((name, detect_target(name).summary, example))
        except InputError as reason:
            rows.append((name, str(reason).partition(" (")[0], ""))
    print_table(("target", "what it is", "example"), rows)


def _program(operator: str | None, words: list[str], file: Path | None) -> Program:
    """What the command line names: an operator, a program's text, or a file of it."""
    from spaces.language import program
    from spaces.named import operator as named_operator

    if file is not None:
        return program(program_text(file), **extents_of(operator, words))
    if operator is None:
        raise InputError("no operator is given; allowed: a name, a program's text, or --file")
    if operator.isidentifier():
        return named_operator(operator, **parameters_of(words))
    return program(operator, **parameters_of(words))
