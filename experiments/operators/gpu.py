"""A case on a GPU: the best of its space, eager torch, compiled torch, and a copy. Needs a GPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from experiments.operators.exploring.explore import Explorer
from experiments.operators.exploring.finals import compare
from experiments.operators.exploring.known import known_schedules
from experiments.operators.exploring.tensors import inputs_like
from experiments.operators.families import recurrences, saved, steps
from experiments.operators.families.case import Case
from experiments.operators.families.windows import other_layout
from experiments.operators.references import references
from experiments.operators.summary import COPY, UNTUNED
from experiments.rivals import Call, compiled, gpu_copy, usable
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.query import answers
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload


def target(threads: int) -> Target:
    """Return the GPU here; :class:`spaces.errors.InputError` if there is none. Threads are a
    CPU's."""
    return detect_target("cuda")


def facts(target: Target) -> dict[str, Any]:
    """Return no facts beside the target."""
    return {}


def measure(
    case: Case, target: Target, seconds: float, known: Sequence[Path] = ()
) -> dict[str, Any]:
    """Return the case's row of the results, after ``seconds`` of search that begin with what is
    ``known``."""
    workload, reference, explorer = (
        case.workload,
        references(case)["eager"],
        explorer_of(case, target),
    )
    tensors, untuned = explorer.tensors, next(answers(workload, target, None)).schedule
    explorer.explore(seconds, known=[untuned, *known_schedules(known, case.name, explorer.space)])
    makers: dict[str, Callable[[], Call]] = {
        **recurrences.libraries(case, tensors),
        **steps.libraries(case, tensors),
        **_of_other_templates(case, explorer, seconds),
        **_in_two_kernels(case, target, seconds),
    }
    if not isinstance(case, steps.Stepwise):
        makers["compiled"] = lambda: compiled(reference, tensors, "max-autotune-no-cudagraphs")
    rivals, unavailable = usable(makers)
    rivals |= {COPY: gpu_copy(workload.least_bytes), "eager": lambda: reference(**tensors)}
    if untuned in explorer.seconds:
        rivals[UNTUNED] = explorer.calls[untuned]
    row: dict[str, Any] = {"bytes": workload.least_bytes}
    row |= {"unavailable": unavailable} if unavailable else {}
    return row | compare(explorer, rivals | other_layout(case, tensors))


def _of_other_templates(
    case: Case, explorer: Explorer, seconds: float
) -> dict[str, Callable[[], Call]]:
    """Return the makers of our fastest kernels of a recurrence that have no state, and of those
    that go step by step."""
    if not isinstance(case, recurrences.Recurrent):
        return {}
    space = explorer.space

    def fastest(names: Collection[str]) -> Call:
        own = Space(space.workload, space.target, [space.templates[name] for name in names])
        found = Explorer(own, explorer.tensors, explorer.exact, slack=explorer.slack)
        return found.calls[found.explore(seconds)[0]]

    of_steps = {recurrences.STEPPED} & space.templates.keys()
    others = space.templates.keys() - {recurrences.TEMPLATE} - of_steps
    kinds = {recurrences.OTHERS: others, recurrences.BY_STEPS: of_steps}
    return {kind: partial(fastest, names) for kind, names in kinds.items() if names}


def _in_two_kernels(case: Case, target: Target, seconds: float) -> dict[str, Callable[[], Call]]:
    """Return the maker of our fastest kernels of a sum and of its activation, one after the
    other."""
    if not isinstance(case, saved.Saved):
        return {}

    def both() -> Call:
        first, second = (_fastest(each, target, seconds) for each in case.alone)

        def run() -> None:
            first()
            second()

        return run

    return {"two kernels": both}


def _fastest(workload: Workload, target: Target, seconds: float) -> Call:
    """Return the fastest kernel of a product with a bias, or of its activation."""
    tensors = inputs_like(workload)
    a, *others = (tensor.double() for tensor in tensors.values())
    exact = torch.addmm(others[1], a, others[0]) if others else torch.nn.functional.gelu(a)
    explorer = Explorer(space_for(workload, target), tensors, [exact], slack=saved.ROUNDED)
    return explorer.calls[explorer.explore(seconds)[0]]


def explorer_of(case: Case, target: Target) -> Explorer:
    """Make the explorer of the case's kernels, with random inputs; exact outputs are torch's."""
    tensors = inputs_like(case.workload)
    reference = references(case)["eager"]
    exact = _outputs(reference(**{name: _wide(t) for name, t in tensors.items()}))
    space = space_for(case.workload, target)
    model = roofline(target) if "staged" in space.templates else None  # few of so many are good
    return Explorer(space, tensors, exact, model, case.slack, case.elsewhere)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _outputs(found: Any) -> list[torch.Tensor]:
    return list(found) if isinstance(found, tuple) else [found]
