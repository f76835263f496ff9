"""``tilewright tune``."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli.executors import (
    ClusterAddress,
    ExecutorName,
    ExecutorOption,
    Insecure,
    TargetNames,
    open_executors,
)
from tilewright.scheduler.cli.gradient_plans import plans_on, show_plans
from tilewright.scheduler.cli.options import (
    DatabaseName,
    EffortOption,
    Format,
    FormatOption,
    ModelOption,
    NumericsOption,
    Patience,
    Quiet,
    SearchName,
    Seconds,
    SectionName,
    Seed,
    SuiteFile,
    Threads,
    Trials,
    Verbose,
)
from tilewright.scheduler.cli.text import command_line
from tilewright.scheduler.cli.workload_arguments import (
    NEITHER,
    Differentiated,
    GradientNames,
    HeldNames,
    MemoryBytes,
    Operator,
    Parameters,
    ProgramFile,
    SavedNames,
    SolvedNames,
    Tables,
    workload_from_arguments,
)
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.suites.suite import Suite, read_suite
from tilewright.scheduler.tuning.budget import Budget, Effort, budget_for
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.validation.checks import positive
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.gradient_plans import GradientPlan

ObjectiveOption = Annotated[
    Objective,
    typer.Option(
        "--objective",
        help="Objective of a suite. latency: the weighted sum; speedup: the mean over NumPy.",
    ),
]


def tune_command(
    context: typer.Context,
    operator: Operator = None,
    parameters: Parameters = None,
    file: ProgramFile = None,
    gradient: GradientNames = None,
    saved: SavedNames = None,
    solved: SolvedNames = None,
    memory: MemoryBytes = None,
    held: HeldNames = None,
    table: Tables = None,
    suite: SuiteFile = None,
    section: SectionName = None,
    objective: ObjectiveOption = Objective.LATENCY,
    target: TargetNames = None,
    threads: Threads = None,
    effort: EffortOption = Effort.DEFAULT,
    trials: Trials = None,
    seconds: Seconds = None,
    patience: Patience = None,
    db: DatabaseName = "tuning.db",
    seed: Seed = 0,
    model: ModelOption = None,
    search: SearchName = "evolutionary",
    numerics: NumericsOption = Numerics.STRICT,
    format: FormatOption = Format.TABLE,
    quiet: Quiet = False,
    verbose: Verbose = False,
    executor: ExecutorOption = ExecutorName.LOCAL,
    address: ClusterAddress = None,
    insecure_cluster: Insecure = False,
) -> None:
    """Search for the fastest schedule, and record every result in the database.

    --suite tunes several workloads: trials go where the objective gains most. Several targets are
    tuned for at once, each with its own trials and seconds. --saved search tunes each set of stages
    that a gradient may read of the forward pass, and prints which of them is the fastest.

    A line reports each gain. Below the lines a terminal shows a live table; elsewhere a line
    reports the state every 30 seconds. Ctrl-C ends the search with the best found so far.

    \b
    Examples:
      tilewright tune matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])" --seconds 60
      tilewright tune softmax r=4096 c=1024
      tilewright tune "y[r, c] = softmax[c](x[r, c] / t)" r=4096 c=1024
      tilewright tune --file my.tw r=4096 c=1024
      tilewright tune softmax r=4096 c=1024 --gradient x --saved y
      tilewright tune layernorm r=4096 c=1024 --gradient x,weight --saved search
      tilewright tune --suite bert-base --seconds 600
      tilewright tune matmul m=512 n=512 k=512 --executor ray --address 10.0.0.1:6379
    """
    differentiated = Differentiated(gradient, saved, solved, memory, held)
    what = _what(operator, parameters, file, differentiated, table, suite, section, objective)
    limits = (effort, trials, seconds, patience)
    _budget(what, *limits)  # refuses a value before a cluster is asked
    session = secrets.token_hex(4)
    with open_executors(
        target or ["cpu"], threads, executor, address, insecure_cluster
    ) as executors:
        from tilewright.scheduler.cli.job import Request, RunOptions, run_requests

        searched = _plans(what, differentiated, executors.targets)
        how = (seed, session, objective, search, numerics)
        requests = [
            Request(each, machine, _budget(each, *limits), *how)
            for machine in executors.targets
            for each in [_asked(what, searched.get(machine))]
        ]
        run_options = RunOptions(db, model, format, quiet, verbose, command_line())
        code = run_requests(requests, run_options, executors, context.obj)
        for machine, found in searched.items():
            show_plans(found, machine, db, format)
        raise typer.Exit(code)


def _plans(
    what: Workload | Suite, differentiated: Differentiated, targets: Iterable[Target]
) -> dict[Target, list[GradientPlan]]:
    """Return what a gradient may read on each target; nothing where that is given."""
    if not differentiated.is_searched or isinstance(what, Suite):
        return {}
    return {machine: plans_on(what, differentiated, machine) for machine in targets}


def _asked(what: Workload | Suite, found: Sequence[GradientPlan] | None) -> Workload | Suite:
    """Return what is tuned: the programs of plans, where these are searched."""
    from tilewright.scheduler.gradient_plans import suite_of

    return what if found is None else suite_of(found)


def _budget(
    what: Workload | Suite,
    effort: Effort,
    trials: int | None,
    seconds: float | None,
    patience: int | None,
) -> Budget:
    """Return the budget for each target. Raises :class:`InputError` for a value that is not
    allowed."""
    count = len(what.members) if isinstance(what, Suite) else 1
    asked = None if seconds is None else positive("--seconds", seconds)
    return budget_for(count, effort, trials, asked, patience)


def _what(
    operator: str | None,
    parameters: list[str] | None,
    file: Path | None,
    differentiated: Differentiated,
    tables: list[str] | None,
    suite: str | None,
    section: str | None,
    objective: Objective,
) -> Workload | Suite:
    """Return the workload or suite to tune. Raises :class:`InputError` if none is named, or two
    are."""
    if suite is not None:
        if operator is not None or file is not None:
            other = f"the operator {shown(operator)}" if file is None else "--file"
            raise InputError(f"--suite and {other}; allowed: one of them")
        if differentiated.is_asked:
            raise InputError("--gradient is for an operator; in a suite's file say gradient = true")
        if tables:
            raise InputError("--table is for an operator, not for a suite")
        found = read_suite(suite)
        return found if section is None else found.section(section)
    if operator is None and file is None:
        raise InputError("Missing argument 'OPERATOR', or --file, or --suite")
    if section is not None:
        raise InputError(f"--section {shown(section)} is one of a suite; give --suite, too")
    if objective is not Objective.LATENCY:
        raise InputError(f"--objective {objective} is for a suite; allowed here: latency")
    known = NEITHER if differentiated.is_searched else differentiated
    return workload_from_arguments(operator, parameters, file, known, tables)
