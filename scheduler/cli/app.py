"""All commands, and how they end: a result, or one line on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import cast

import typer

from scheduler.cli.bundle import bundle_command
from scheduler.cli.data import export_command, import_command, list_command
from scheduler.cli.doctor import doctor_command
from scheduler.cli.model import evaluate_command, train_command
from scheduler.cli.query import query_command
from scheduler.cli.text import say
from scheduler.cli.tune import tune_command
from scheduler.cli.verify import verify_command
from spaces.errors import InputError

BAD_INPUT = 2
INTERRUPTED = 130
# What Typer raises for a wrong command line; its module depends on the version of Typer.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])

app = typer.Typer(
    name="tilewright",
    help="Find the fastest kernel for an operator on the hardware at hand.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
app.command("tune")(tune_command)
app.command("query")(query_command)
app.command("verify")(verify_command)
app.command("train")(train_command)
app.command("evaluate")(evaluate_command)
app.command("export")(export_command)
app.command("import")(import_command)
app.command("list")(list_command)
app.command("doctor")(doctor_command)
app.command("bundle")(bundle_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Bad input is one line on standard error and code 2."""
    try:
        code = app(list(arguments), prog_name="tilewright", standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except UsageError as error:
        if not error.format_message():  # no command at all
            error.show()
            return BAD_INPUT
        return _fail(error.format_message(), BAD_INPUT)
    except MemoryError as error:
        return _fail(f"not enough memory: {error}", BAD_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    say(message)
    return code
