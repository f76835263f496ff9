"""The public Python interface: ``from tilewright import best, query, tune, workload``.

Every function takes workloads and targets as objects or as text::

    tune('matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"', "cpu", seconds=60)

The work is done by four packages: ``tilewright.spaces``, ``tilewright.measure``,
``tilewright.costmodel`` and ``tilewright.scheduler``.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if not Path(__file__).with_name("spaces").is_dir():  # a checkout keeps the packages at its root
    __path__.append(str(Path(__file__).resolve().parents[3]))

from tilewright.spaces.linux import complaint
from tilewright.spaces.version import VERSION

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.scheduler.answer import Answer, Provenance
    from tilewright.scheduler.best import best
    from tilewright.scheduler.data.frame import trials
    from tilewright.scheduler.dispatch.function import Dispatch, dispatch
    from tilewright.scheduler.extracting import extract
    from tilewright.scheduler.gradient_plans import best_gradient_plan
    from tilewright.scheduler.query import query
    from tilewright.scheduler.suites.suite import Suite
    from tilewright.scheduler.suites.tune import tune_suite
    from tilewright.scheduler.torch.backend.explanation import Explanation, explain
    from tilewright.scheduler.torch.serving.graphs import graphs
    from tilewright.scheduler.torch.serving.packaging import load_package, package
    from tilewright.scheduler.tuning.events import (
        Progress,
        SuiteProgress,
        SuiteResult,
        TuningResult,
    )
    from tilewright.scheduler.tuning.states import Stop
    from tilewright.scheduler.tuning.study import Study, Trial
    from tilewright.scheduler.tuning.tuner import tune
    from tilewright.spaces.errors import InputError
    from tilewright.spaces.language import Program, program
    from tilewright.spaces.named import operator
    from tilewright.spaces.operators import workload
    from tilewright.spaces.schedule import Schedule
    from tilewright.spaces.target import Target, detect_target
    from tilewright.spaces.workloads.gradients import gradient, gradient_plans, saving
    from tilewright.spaces.workloads.packing import pack, unpack
    from tilewright.spaces.workloads.sparse_weights import pack_sparse
    from tilewright.spaces.workloads.workload import Workload

__all__ = [
    "Answer",
    "Database",
    "Dispatch",
    "Explanation",
    "InputError",
    "Program",
    "Progress",
    "Provenance",
    "Schedule",
    "Stop",
    "Study",
    "Suite",
    "SuiteProgress",
    "SuiteResult",
    "Target",
    "Trial",
    "TuningResult",
    "Workload",
    "__version__",
    "best",
    "best_gradient_plan",
    "detect_target",
    "dispatch",
    "explain",
    "extract",
    "gradient",
    "gradient_plans",
    "graphs",
    "load_package",
    "operator",
    "pack",
    "pack_sparse",
    "package",
    "program",
    "query",
    "saving",
    "trials",
    "tune",
    "tune_suite",
    "unpack",
    "workload",
]

__version__ = VERSION

_HOMES = {
    "Answer": "tilewright.scheduler.answer",
    "Database": "tilewright.measure.database",
    "Dispatch": "tilewright.scheduler.dispatch.function",
    "Explanation": "tilewright.scheduler.torch.backend.explanation",
    "InputError": "tilewright.spaces.errors",
    "Program": "tilewright.spaces.language",
    "Progress": "tilewright.scheduler.tuning.events",
    "Provenance": "tilewright.scheduler.answer",
    "Schedule": "tilewright.spaces.schedule",
    "Stop": "tilewright.scheduler.tuning.states",
    "Study": "tilewright.scheduler.tuning.study",
    "Suite": "tilewright.scheduler.suites.suite",
    "SuiteProgress": "tilewright.scheduler.tuning.events",
    "SuiteResult": "tilewright.scheduler.tuning.events",
    "Target": "tilewright.spaces.target",
    "Trial": "tilewright.scheduler.tuning.study",
    "TuningResult": "tilewright.scheduler.tuning.events",
    "Workload": "tilewright.spaces.workloads.workload",
    "best": "tilewright.scheduler.best",
    "best_gradient_plan": "tilewright.scheduler.gradient_plans",
    "detect_target": "tilewright.spaces.target",
    "dispatch": "tilewright.scheduler.dispatch.function",
    "explain": "tilewright.scheduler.torch.backend.explanation",
    "extract": "tilewright.scheduler.extracting",
    "gradient": "tilewright.spaces.workloads.gradients",
    "gradient_plans": "tilewright.spaces.workloads.gradients",
    "graphs": "tilewright.scheduler.torch.serving.graphs",
    "load_package": "tilewright.scheduler.torch.serving.packaging",
    "operator": "tilewright.spaces.named",
    "pack": "tilewright.spaces.workloads.packing",
    "pack_sparse": "tilewright.spaces.workloads.sparse_weights",
    "package": "tilewright.scheduler.torch.serving.packaging",
    "program": "tilewright.spaces.language",
    "query": "tilewright.scheduler.query",
    "saving": "tilewright.spaces.workloads.gradients",
    "trials": "tilewright.scheduler.data.frame",
    "tune": "tilewright.scheduler.tuning.tuner",
    "tune_suite": "tilewright.scheduler.suites.tune",
    "unpack": "tilewright.spaces.workloads.packing",
    "workload": "tilewright.spaces.operators",
}


def __getattr__(name: str) -> Any:
    """Import a name of ``__all__`` from its module when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if words := complaint():
        raise ImportError(words)
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
