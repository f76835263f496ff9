"""All commands, and how they end: a result, or one line on standard error."""

from __future__ import annotations

import resource
import sys
import time
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from tilewright.scheduler.cli.completing import words_before
from tilewright.scheduler.cli.exit_codes import BAD_INPUT, exit_code_of
from tilewright.scheduler.cli.standard_streams import discard_output, flush_output
from tilewright.scheduler.cli.text import say
from tilewright.scheduler.cli.usage import UsageError, complaint, is_help, summary
from tilewright.scheduler.tuning.interrupt import Ended, exit_code
from tilewright.spaces.errors import InputError
from tilewright.spaces.settings import default_database, default_target
from tilewright.spaces.version import VERSION

NO_THREAD = "can't start new thread"  # what Python says then

COMMANDS = {
    "tune": "tune.tune_command",
    "resume": "sessions.resume_command",
    "query": "query.query_command",
    "verify": "verify.verify_command",
    "train": "model.train_command",
    "evaluate": "model.evaluate_command",
    "replay": "replay.replay_command",
    "explain": "explain.explain_command",
    "show": "show.show_command",
    "operators": "show.operators_command",
    "targets": "show.targets_command",
    "extract": "extract.extract_command",
    "dispatch": "dispatch.dispatch_command",
    "suite": "suite.app",
    "export": "data.export_command",
    "import": "data.import_command",
    "list": "data.list_command",
    "report": "report.report_command",
    "dashboard": "dashboard.dashboard_command",
    "db": "db.app",
    "status": "status.status_command",
    "doctor": "doctor.doctor_command",
    "cache": "cache.cache_command",
    "pack": "pack.pack_command",
    "bundle": "bundle.bundle_command",
    "completion": "completion.completion_command",
}
"""The module of each command, within ``scheduler.cli.commands``."""


def app(arguments: Sequence[str]) -> typer.Typer:
    """Return the command line: the one command that is asked for, or else all, which take long to
    load."""
    made = typer.Typer(
        name="tilewright",
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,  # it would eat what stands in brackets
        pretty_exceptions_enable=False,
        no_args_is_help=True,
    )
    made.callback()(_tilewright)
    asked = [name for name in (arguments or words_before())[:1] if name in COMMANDS]
    for name in asked or COMMANDS:
        module, _, what = COMMANDS[name].partition(".")
        command = getattr(import_module(f"tilewright.scheduler.cli.commands.{module}"), what)
        if isinstance(command, typer.Typer):
            made.add_typer(command, name=name)
        else:
            made.command(name, short_help=summary(command))(command)
    return made


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tilewright {VERSION}")
        raise typer.Exit


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

    Exit codes: 0 done, 1 no kernel was right, 2 bad input, 3 the database's server went away; 130,
    143 and 129 ended by Ctrl-C, SIGTERM and SIGHUP.
    """


def run(arguments: Sequence[str], began: float | None = None) -> int:
    """Run one command; its exit code. Bad input is one line on standard error and code 2.

    What it has seconds for counts them from ``began`` (by ``time.monotonic``), by default from now.
    """
    began = time.monotonic() if began is None else began
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: say(str(message))
        return _run(arguments, began)


def _run(arguments: Sequence[str], began: float) -> int:
    options: dict[str, Any] = {"prog_name": "tilewright", "standalone_mode": False, "obj": began}
    options |= {"default_map": _settings()}
    try:
        code = app(arguments)(list(arguments), **options)
        sys.stdout.flush()
    except InputError as error:
        return _fail(str(error), exit_code_of(error))
    except UsageError as error:
        if is_help(error):
            error.show()
            return BAD_INPUT
        return _fail(complaint(error), BAD_INPUT)
    except MemoryError as error:
        return _fail(f"not enough memory: {error}", BAD_INPUT)
    except (SystemError, ImportError) as error:  # modules in C raise these instead
        if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
            raise
        return _fail(f"not enough memory: {error}", BAD_INPUT)
    except (KeyboardInterrupt, Ended, typer.Abort):
        return _fail("interrupted", exit_code())
    except UnicodeError as error:
        return _fail(f"this text cannot be written here: {error}", BAD_INPUT)
    except BrokenPipeError:  # whoever read the output has seen enough
        discard_output(1)
        return 1
    except OSError as error:
        flush_output()
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"the system refuses: {where}{error.strerror or error}", BAD_INPUT)
    except RuntimeError as error:
        if str(error) != NO_THREAD:
            raise
        return _fail("the system gives no more threads: see ulimit -u and -v", BAD_INPUT)
    return code if isinstance(code, int) else 0


def _settings() -> dict[str, Any]:
    """Return the defaults of commands that the settings give, read when a command needs them."""
    one: dict[str, Any] = {"db": default_database, "target": default_target}
    usual = dict.fromkeys(COMMANDS, one)
    several = {"tune": one | {"target": lambda: [default_target()]}}
    own_rule = {"explain": {"target": default_target}}  # its database depends on what it explains
    groups = {"db": {"stats": one, "vacuum": one}, "suite": {"seal": one, "match": one}}
    return usual | several | own_rule | groups


def _fail(message: str, code: int) -> int:
    say(message)
    return code
