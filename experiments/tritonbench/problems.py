"""The operators of TritonBench-T as torch functions, downloaded by git at one commit."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

REPOSITORY = "https://github.com/thunlp/TritonBench"
COMMIT = "603e28a5050e8c268f6883a69709d477a272d49a"
RULE = "#" * 40
"""The begin of the line between an operator and its tests, which need a GPU."""


@dataclass(frozen=True)
class Problem:
    """An operator, and the file that times it: this has its inputs, from small to large, and says
    how it is called."""

    operator: Path
    timing: Path
    size: int = -1
    """The number of the inputs that are meant: the largest."""
    level: str = "T"
    kept: bool = True

    @property
    def name(self) -> str:
        return self.operator.stem

    def load(self) -> Any:
        """Execute both files and return what a problem of KernelBench has: a ``Model`` and its
        inputs. Their modules stay known to this process, as Dynamo asks for them."""
        sys.modules.update(_imported(self._operator()))
        spec = importlib.util.spec_from_file_location(f"time_{self.name}", self.timing)
        assert spec is not None
        assert spec.loader is not None
        timing = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(timing)
        metrics = timing.performance_metrics()
        metrics.get_input_tensors()
        return SimpleNamespace(
            Model=lambda: _Call(metrics.call_op),
            get_init_inputs=list,
            get_inputs=lambda: [metrics.input_tensors[self.size]],
        )

    def _operator(self) -> ModuleType:
        """The module of the operator without its tests."""
        made = ModuleType(f"TorchBench_v1.{self.name}")
        text = self.operator.read_text().partition(RULE)[0]
        exec(compile(text, str(self.operator), "exec"), vars(made))
        return made


class _Call(torch.nn.Module):
    """A module that calls a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, given: Any) -> Any:
        return self.function(given)


class _Metrics:
    """The class that the timing files inherit, as far as inputs go."""

    def __init__(self, name: str, dtype: torch.dtype | None = None, **settings: Any) -> None:
        self.dtype = dtype or torch.float32
        self.input_tensors: list[Any] = []


def _imported(operator: ModuleType) -> dict[str, ModuleType]:
    """Return the modules that a timing file imports."""
    utilities, triton = ModuleType("performance_utils"), ModuleType("triton")
    language = ModuleType("triton.language")
    vars(utilities).update(Performance_Metrics=_Metrics, do_bench_config=dict)
    vars(triton).update(language=language)
    made = (ModuleType("TorchBench_v1"), utilities, operator, triton, language)
    return {module.__name__: module for module in made}


def problems(folder: Path) -> Iterator[Problem]:
    """Yield all operators that have a file that times them, by name."""
    timings = folder / "performance_metrics" / "perf_T" / "golden_metrics"
    for operator in sorted((folder / "data" / "TritonBench_T_v1").glob("*.py")):
        timing = timings / f"{operator.stem}_perf.py"
        if timing.exists():
            yield Problem(operator, timing)
