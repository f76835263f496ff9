"""Packages of AOTInductor with kernels in them, for processes that have neither a compiler nor the
database.

A package is torch's own ``.pt2`` file. Beside what torch keeps in it there is a table of the
kernels that its graph calls, with their binaries. Whoever loads a package runs code of it, as
everybody does who loads a model that AOTInductor compiled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend.compiler import choose, warn_of
from tilewright.scheduler.torch.backend.explanation import OURS, Explanation, GraphReport
from tilewright.scheduler.torch.backend.options import Options, options_of
from tilewright.scheduler.torch.backend.replacing import replace_regions
from tilewright.scheduler.torch.backend.whole import compiled_aside
from tilewright.scheduler.torch.kernels.functions import functions
from tilewright.scheduler.torch.serving import shipping
from tilewright.spaces.errors import InputError, shown

TABLE = "tilewright.json"
"""The name of the table in a package."""
BUILDS = ("never", "background", "wait")


def package(
    exported: Any, path: str | os.PathLike[str], options: Mapping[str, Any] | None = None
) -> Explanation:
    """Compile an exported model with kernels in it, and write a package of AOTInductor.

    Example::

        exported = torch.export.export(model, (x,))
        print(package(exported, "model.pt2"))
        fast = load_package("model.pt2")  # in any process

    ``options`` are those of ``torch.compile(..., backend="tilewright")``. Regions compete as they
    do there; the whole graph is not compared. Raises :class:`InputError` for another path than that
    of a ``.pt2`` file, for a model without example inputs, and for unknown options.
    """
    from torch._inductor import aot_compile
    from torch.export.pt2_archive._package import package_pt2

    if Path(path).suffix != ".pt2":
        raise InputError(f"a package at {shown(str(path))}; allowed: a file that ends in .pt2")
    if exported.example_inputs is None:
        raise InputError("the exported model has no example inputs; export it with them")
    keeping = _Keeping(options_of(options))
    args, kwargs = exported.example_inputs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of torch, to itself
        module = exported.module(check_guards=False)
        files = aot_compile(module, args, kwargs, options=keeping.settings)
    package_pt2(os.fspath(path), aoti_files=files, extra_files={TABLE: keeping.table})
    return keeping.explanation


def load_package(path: str | os.PathLike[str], build: str = "never") -> Callable[..., Any]:
    """Load a model that :func:`package` wrote, as a function of its inputs.

    Its kernels are those of the package. Where one does not fit this machine or torch's number of
    threads, torch computes its region, and one warning says so. With ``build="background"`` a
    process builds such kernels meanwhile, and with ``"wait"`` the first call does. Raises
    :class:`InputError` for a file that is no such package.
    """
    if build not in BUILDS:
        raise InputError(f"build={shown(build)}; allowed: {', '.join(BUILDS)}")
    if not Path(path).is_file():
        raise InputError(f"there is no package at {shown(str(path))}")
    try:
        table, model = _opened(os.fspath(path))
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{shown(str(path))} is no package of tilewright.package: {type(error).__name__}"
        ) from None
    functions.build = build
    shipping.take(table)
    return model


def _opened(path: str) -> tuple[str, Callable[..., Any]]:
    """Return the table of a package and its model. Torch's own loader would ask a compiler for the
    name of this machine's vector instructions."""
    from torch.export.pt2_archive._package import AOTICompiledModel, PT2ArchiveReader
    from torch.export.pt2_archive.constants import EXTRA_DIR

    with PT2ArchiveReader(path) as reader:
        table: str = reader.read_string(f"{EXTRA_DIR}{TABLE}")
    loader = torch._C._aoti.AOTIModelPackageLoader(path, "model", False, 1, -1)
    return table, AOTICompiledModel(loader)


class _Keeping:
    """Tells Inductor what to do with a graph, and knows the kernels that the graph then calls."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._places: dict[str, tuple[str, int]] = {}
        self.explanation = Explanation()

    @property
    def settings(self) -> dict[str, Any]:
        """The options of Inductor. It copies them deeply, a function as it is."""

        def replaced(graph: fx.Graph) -> None:
            self._replace(graph)

        own = {"aot_inductor.package": True, "post_grad_custom_pre_pass": replaced}
        return {**self._options.others, **own}

    @property
    def table(self) -> str:
        """The kernels that the graph calls."""
        return shipping.table(self._places)

    def _replace(self, graph: fx.Graph) -> None:
        """Let kernels compute regions of the graph; what fails leaves all to torch."""
        report = GraphReport("package")
        self.explanation.graphs.append(report)
        try:
            module = graph.owning_module
            assert module is not None
            found = choose(module, self._options, report, _compiled)
            if found is None:
                return
            for choice in found.choices:
                if choice.ours and choice.is_open:
                    choice.leave("a package has no tables of dynamic sizes")
                if choice.ours:
                    report.by = OURS
                    self._places[choice.key] = found.place
            ours = [region for c in found.choices if c.ours for region in c.regions]
            replace_regions(graph, list(map(found.partition.in_graph, ours)))
        except Exception as error:  # a fault of ours must not keep a model from being packaged
            warn_of(error)


def _compiled(module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """Return a piece of a graph, compiled for this process."""
    with _for_this_process():
        return compiled_aside(module, inputs)


@contextmanager
def _for_this_process() -> Iterator[None]:
    """Compile as if no package were being made."""
    from torch._inductor import config
    from torch._inductor.virtualized import V

    patches = {
        "cpp_wrapper": False,
        "post_grad_custom_pre_pass": None,
        "aot_inductor.package": False,
        "aot_inductor.output_path": "",
    }
    with V.set_aot_compilation(False), config.patch(patches):
        yield
