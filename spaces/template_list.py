"""The list of the templates for a kind of target, which loads each template when it is asked for.

Most questions about a measured schedule concern one template, and to load all takes a while.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from tilewright.spaces.template import Template


class TemplateList(Mapping[str, type[Template]]):
    """Maps the names of templates to their classes, in the order in which templates are listed.

    ``classes`` gives for each name where its class is: ``blocked:BlockedTemplate`` is that class
    of the module ``blocked.template`` in ``package``.
    """

    def __init__(self, package: str, classes: Mapping[str, str]) -> None:
        self._package = package
        self._classes = classes

    def __getitem__(self, name: str) -> type[Template]:
        folder, _, class_name = self._classes[name].partition(":")
        module = import_module(f"{self._package}.{folder}.template")
        found: type[Template] = getattr(module, class_name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)
