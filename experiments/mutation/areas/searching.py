"""Code that proposes schedules, predicts their speed, and hands out the best one."""

from __future__ import annotations

from experiments.mutation.areas.area import Area

AREAS = (
    Area(
        "tuning",
        (
            "scheduler/tuning/pace.py",
            "scheduler/tuning/scoreboard.py",
            "scheduler/limits.py",
            "scheduler/strategies/history.py",
            "scheduler/strategies/evolutionary.py",
            "scheduler/tuning/tuner.py",
            "scheduler/tuning/task.py",
            "scheduler/tuning/loop.py",
            "scheduler/tuning/transfer.py",
            "scheduler/strategies/trust.py",
            "scheduler/tuning/unconfirmed.py",
            "scheduler/suites/allocation.py",
            "scheduler/suites/objective.py",
            "scheduler/suites/shared_model.py",
            "scheduler/suites/suite.py",
            "scheduler/tuning/study.py",
            "scheduler/suites/tune.py",
        ),
        (
            "tests/scheduler/tuning/test_pace.py",
            "tests/scheduler/tuning/test_scoreboard.py",
            "tests/scheduler/test_limits.py",
            "tests/scheduler/tuning/test_tuner.py",
            "tests/scheduler/strategies/test_search.py",
            "tests/scheduler/tuning/test_transfer.py",
            "tests/scheduler/strategies/test_trust.py",
            "tests/scheduler/tuning/test_unconfirmed.py",
            "tests/scheduler/suites/test_allocation.py",
            "tests/scheduler/suites/test_*.py",
        ),
        30,
    ),
    Area(
        "functions",
        (
            "scheduler/functions/arrays.py",
            "scheduler/best.py",
            "scheduler/query.py",
            "scheduler/unmeasured.py",
            "scheduler/functions/caller.*",
            "scheduler/functions/cpu_function.py",
            "scheduler/machine.py",
        ),
        (
            "tests/scheduler/test_query.py",
            "tests/scheduler/functions/test_arrays.py",
            "tests/scheduler/functions/test_caller.py",
            "tests/scheduler/test_best*.py",
        ),
        15,
    ),
    Area(
        "processes",
        (
            "measure/cpu/keeper.*",
            "measure/cpu/native/ending/reap.c",
            "scheduler/functions/launcher.*",
        ),
        (
            "tests/measure/cpu/test_keeper.py",
            "tests/measure/cpu/test_orphans.py",
            "tests/scheduler/functions/test_launcher.py",
        ),
        15,
    ),
    Area("predictions", ("costmodel/**/*.py",), ("tests/costmodel/**/test_*.py",), 10),
    Area(
        "ensembles",
        ("costmodel/predictors/ensemble.py", "costmodel/shortlist.py"),
        ("tests/costmodel/predictors/test_ensemble.py", "tests/costmodel/test_shortlist.py"),
        5,
    ),
)
