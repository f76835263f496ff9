"""All commands, and how they end: a result, or one line on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, cast

import typer

from scheduler.cli.codes import BAD_INPUT
from scheduler.cli.commands.bundle import bundle_command
from scheduler.cli.commands.data import export_command, import_command, list_command
from scheduler.cli.commands.db import app as db_app
from scheduler.cli.commands.doctor import doctor_command
from scheduler.cli.commands.explain import explain_command
from scheduler.cli.commands.model import evaluate_command, train_command
from scheduler.cli.commands.query import query_command
from scheduler.cli.commands.replay import replay_command
from scheduler.cli.commands.sessions import resume_command
from scheduler.cli.commands.show import operators_command, show_command, targets_command
from scheduler.cli.commands.status import status_command
from scheduler.cli.commands.tune import tune_command
from scheduler.cli.commands.verify import verify_command
from scheduler.cli.streams import flush, silence
from scheduler.cli.text import say
from scheduler.tuning.interrupt import Ended, exit_code
from spaces.errors import InputError
from spaces.version import VERSION

NO_THREAD = "can't start new thread"  # what Python says then
# What Typer raises for a wrong command line; its module depends on the version of Typer.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])

app = typer.Typer(
    name="tilewright",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # it would eat what stands in brackets
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {VERSION}")
        raise typer.Exit


@app.callback()
def _tilewright(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Find the fastest kernel for an operator on the hardware at hand.

    \b
    Examples:
      tilewright tune matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"
      tilewright query matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"

    Exit codes: 0 done, 1 no kernel was right, 2 bad input; 130, 143 and 129 ended by Ctrl-C,
    SIGTERM and SIGHUP.
    """


app.command("tune")(tune_command)
app.command("resume")(resume_command)
app.command("query")(query_command)
app.command("verify")(verify_command)
app.command("train")(train_command)
app.command("evaluate")(evaluate_command)
app.command("replay")(replay_command)
app.command("explain")(explain_command)
app.command("show")(show_command)
app.command("operators")(operators_command)
app.command("targets")(targets_command)
app.command("export")(export_command)
app.command("import")(import_command)
app.command("list")(list_command)
app.add_typer(db_app, name="db")
app.command("status")(status_command)
app.command("doctor")(doctor_command)
app.command("bundle")(bundle_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Bad input is one line on standard error and code 2."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(str(message))
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
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
    except (KeyboardInterrupt, Ended, typer.Abort):
        return _fail("interrupted", exit_code())
    except UnicodeError as error:
        return _fail(f"this text cannot be written here: {error}", BAD_INPUT)
    except BrokenPipeError:  # whoever read the output has seen enough
        silence(1)
        return 1
    except OSError as error:
        flush()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"the system refuses: {where}{error.strerror or error}", BAD_INPUT)
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        return _fail("the system gives no more threads: see ulimit -u and -v", BAD_INPUT)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    say(message)
    return code
