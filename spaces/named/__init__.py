"""The operators that have a name, a short file each: parameters become a program. Those of
``matmul`` become matrices, which are one.

The file ``rows/softmax.py`` holds the function ``softmax``, whose parameters are whole numbers,
numbers or text, and an ``EXAMPLE`` of them. A file is found because it is there, in this folder or
in one below.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.spaces.epilogue.scalars import check_scalars, without_brackets
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language import Program
from tilewright.spaces.validation.nearest import suggestion
from tilewright.spaces.validation.signature import parameters, values
from tilewright.spaces.workloads.matmul import Matmul

MOST_NAMES = 8  # names of operators that a message lists


@dataclass(frozen=True)
class Operator:
    """A function from parameters to a program, and an example of them as words."""

    name: str
    function: Callable[..., Program | Matmul]
    example: str

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Parameters by name; one with a default may be left out."""
        return parameters(self.function)

    def values(self, given: Mapping[str, Any]) -> dict[str, int | float | str]:
        """Parameters as values, given as such or as text; :class:`InputError` for one that is
        unknown, missing, or no number where it must be one."""
        return values(self.name, self.function, given)

    def program(self, given: Mapping[str, int | float | str]) -> Program:
        """Write the program for these :meth:`values`; :class:`InputError` for values that it
        refuses.
        """
        made = self.made(given)
        return made.written if isinstance(made, Matmul) else made

    def made(
        self, given: Mapping[str, int | float | str], described: bool = False
    ) -> Program | Matmul:
        """Make the program or the matrices for these :meth:`values`, in whose epilogue scalars have
        brackets, unless they are ``described`` as databases keep them."""
        epilogue = given.get("epilogue")
        if not isinstance(epilogue, str):
            return self.function(**given)
        made = self.function(**{**given, "epilogue": without_brackets(epilogue)})
        if not described:
            scalars = [operand.name for operand in made.operands if not operand.shape]
            check_scalars(epilogue, scalars, "o" if "o" in given else "n")
        return made

    @property
    def summary(self) -> str:
        """The first line of what the operator says of itself."""
        return (self.function.__doc__ or "").strip().split("\n")[0].replace("``", "")


def names() -> list[str]:
    """The names of all operators."""
    return sorted(_modules(tuple(__path__)))


def named(name: str) -> Operator:
    """The operator called so; :class:`InputError` if there is none."""
    modules = _modules(tuple(__path__))
    if not isinstance(name, str) or name not in modules:
        near, first = suggestion(name, names()), ", ".join(names()[:MOST_NAMES])
        others = f" and {len(modules) - MOST_NAMES} others (tilewright operators)"
        raise InputError(f"unknown operator {shown(name)}; {near}known: {first}{others}")
    module = importlib.import_module(modules[name])
    return Operator(name, getattr(module, name), module.EXAMPLE)


def operator(name: str, /, **parameters: Any) -> Program:
    """The program of the operator ``name``; parameters are values, or their text.

    Raises :class:`InputError` for an unknown operator, a parameter that is unknown, missing or no
    number where it must be one, and for whatever the operator itself refuses.
    """
    found = named(name)
    return found.program(found.values(parameters))


@lru_cache(maxsize=4)
def _modules(folders: tuple[str, ...]) -> Mapping[str, str]:
    """The module of each operator by its name."""
    found = {}
    for top in pkgutil.iter_modules(folders):
        below = [str(Path(folder, top.name)) for folder in folders] if top.ispkg else []
        for module in pkgutil.iter_modules(below):
            found[module.name] = f"{__name__}.{top.name}.{module.name}"
        if not top.ispkg:
            found[top.name] = f"{__name__}.{top.name}"
    return {name: module for name, module in found.items() if not name.startswith("_")}
