"""Labels of the axes and arrays of a program, by which they are told apart without their names.

A label is a digest of the labels of what surrounds an axis or an array, made finer in rounds
(Weisfeiler and Leman, 1968).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilewright.spaces.language.identity.normal import Form
from tilewright.spaces.language.identity.normal_stages import NormalStage

MAX_ROUNDS = 8


def digest(*parts: object) -> str:
    """Return a short digest of values that print alike everywhere."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@dataclass
class Labels:
    """Labels of axes, each of one stage, and of arrays; one round makes them finer. With
    ``readers``, axes are told apart by what they are in other stages, too."""

    stages: Mapping[str, NormalStage]
    arrays: dict[str, str]
    axes: dict[tuple[str, str], str]
    readers: bool = False
    _forms: dict[tuple[str, int], str] = field(default_factory=dict)
    _contexts: dict[object, list[str]] = field(default_factory=dict)

    def refine(self) -> None:
        """Do rounds until they tell no more apart."""
        kinds = 0
        for _ in range(MAX_ROUNDS):
            before, kinds = kinds, len({*self.arrays.values(), *self.axes.values()})
            if kinds == before:
                return
            self._round()

    def tell_apart(self) -> bool:
        """Tell whether labels are unique: those of arrays, and those of axes within a stage."""
        axes = [(stage, label) for (stage, _), label in self.axes.items()]
        return all(len({*labels}) == len(labels) for labels in ([*self.arrays.values()], axes))

    def of(self, stage: str, form: Form) -> str:
        """Return the label of a form in a stage."""
        key = (stage, id(form))
        if key not in self._forms:
            self._forms[key] = digest(form.label, form.outside, *self._below(stage, form))
        return self._forms[key]

    def _below(self, stage: str, form: Form) -> list[str]:
        if form.label == "axis":
            return [self.axes[stage, form.name]]
        labels = [self.of(stage, child) for child in form.children]
        if form.name:
            places = self.places(form.name, len(labels))
            labels = [digest(*pair) for pair in zip(places, labels, strict=True)]
            return [self.arrays[form.name], *sorted(labels)]
        return labels if form.ordered else sorted(labels)

    def places(self, name: str, rank: int) -> list[str]:
        """Label the dimensions of an array; the dimensions of a stage are labelled by its axes."""
        if name not in self.stages:
            return [str(place) for place in range(rank)]
        return [self.axes[name, axis] for axis in self.stages[name].stage.axes]

    def _round(self) -> None:
        self._forms, self._contexts = {}, {}
        for name, stage in self.stages.items():
            own = self.arrays[name]
            self._visit(name, stage.body, own)
            for condition in stage.conditions:
                self._visit(name, condition, digest(own, "where"))
        contents = {name: self._content(name) for name in self.stages}
        self.axes = {key: self._finer(key, label) for key, label in self.axes.items()}
        arrays = self.arrays.items()
        self.arrays = {n: digest(self._finer(n, label), contents.get(n)) for n, label in arrays}
        self._forms = {}

    def _content(self, name: str) -> tuple[str, list[str]]:
        stage = self.stages[name]
        return self.of(name, stage.body), sorted(self.of(name, c) for c in stage.conditions)

    def _finer(self, key: object, label: str) -> str:
        return digest(label, sorted(self._contexts.get(key, ())))

    def _visit(self, stage: str, form: Form, context: str) -> None:
        """Note where each axis and array stands."""
        own = digest(context, self.of(stage, form))
        if form.name:
            key = (stage, form.name) if form.label == "axis" else form.name
            self._contexts.setdefault(key, []).append(own)
        rank = len(form.children)
        places = self.places(form.name, rank) if form.name else [str(i) for i in range(rank)]
        if self.readers and form.name in self.stages:
            for axis, child in zip(self.stages[form.name].stage.axes, form.children, strict=True):
                read = digest(own, self.of(stage, child))
                self._contexts.setdefault((form.name, axis), []).append(read)
        for place, child in zip(places, form.children, strict=True):
            self._visit(stage, child, digest(own, place) if form.ordered else own)
