"""What users import: ``from tilewright import best, query, tune, workload``.

Every function takes workloads and targets as objects or as text::

    tune('matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"', "cpu", seconds=60)

The work is done by four packages, ``spaces``, ``measure``, ``costmodel`` and ``scheduler``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

_PACKAGES = ("spaces", "measure", "costmodel", "scheduler")
_ROOT = next(p for p in Path(__file__).resolve().parents if (p / "spaces/errors.py").is_file())


def _import_packages() -> None:
    """Import Tilewright's own packages, even where the user's folder has a ``measure.py``.

    Once they are imported, their modules find each other whatever ``sys.path`` says.
    """
    sys.path.insert(0, str(_ROOT))
    try:
        for name in _PACKAGES:
            found = import_module(name).__file__
            if found is None or Path(found).resolve().parent != _ROOT / name:
                raise ImportError(
                    f"Tilewright has a package named {name!r}, but {found} was imported under "
                    "that name before; rename that module"
                )
    finally:
        sys.path.remove(str(_ROOT))


_import_packages()

from spaces.version import VERSION  # noqa: E402

if TYPE_CHECKING:
    from measure.database import Database
    from scheduler.best import best
    from scheduler.data.frame import trials
    from scheduler.query import Answer, Provenance, query
    from scheduler.suites.progress import SuiteProgress, SuiteResult
    from scheduler.suites.suite import Suite
    from scheduler.suites.tune import tune_suite
    from scheduler.tuning.progress import Progress, Stop, TuningResult
    from scheduler.tuning.tuner import tune
    from spaces.errors import InputError
    from spaces.language import Program, program
    from spaces.named import operator
    from spaces.operators import workload
    from spaces.schedule import Schedule
    from spaces.target import Target, detect_target
    from spaces.workloads.workload import Workload

__all__ = [
    "Answer",
    "Database",
    "InputError",
    "Program",
    "Progress",
    "Provenance",
    "Schedule",
    "Stop",
    "Suite",
    "SuiteProgress",
    "SuiteResult",
    "Target",
    "TuningResult",
    "Workload",
    "__version__",
    "best",
    "detect_target",
    "operator",
    "program",
    "query",
    "trials",
    "tune",
    "tune_suite",
    "workload",
]

__version__ = VERSION

_HOMES = {
    "Answer": "scheduler.query",
    "Database": "measure.database",
    "InputError": "spaces.errors",
    "Program": "spaces.language",
    "Progress": "scheduler.tuning.progress",
    "Provenance": "scheduler.query",
    "Schedule": "spaces.schedule",
    "Stop": "scheduler.tuning.progress",
    "Suite": "scheduler.suites.suite",
    "SuiteProgress": "scheduler.suites.progress",
    "SuiteResult": "scheduler.suites.progress",
    "Target": "spaces.target",
    "TuningResult": "scheduler.tuning.progress",
    "Workload": "spaces.workloads.workload",
    "best": "scheduler.best",
    "detect_target": "spaces.target",
    "operator": "spaces.named",
    "program": "spaces.language",
    "query": "scheduler.query",
    "trials": "scheduler.data.frame",
    "tune": "scheduler.tuning.tuner",
    "tune_suite": "scheduler.suites.tune",
    "workload": "spaces.operators",
}


def __getattr__(name: str) -> Any:
    """What ``__all__`` names, from the module it lives in: loaded when it is asked for first."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
