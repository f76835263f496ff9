"""Find docstrings whose first sentence lacks its subject, or a verb where a function needs one.

No docstring begins with a preposition, a relative or interrogative word (``Of``, ``What``), or a
participle before a preposition (``Loaded by``). A function does something: its docstring begins
with a verb, or has a finite auxiliary verb before any subordinate clause. Its first words are taken
for a noun phrase if they are a determiner, a number, text in backticks, a word before ``of`` or a
comma, or a plural before a preposition. Modules, classes, properties and attributes are things,
which noun phrases describe well.

There is no dictionary behind this: it misses nouns like ``Text that``, and verbs that are missing
from later sentences.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LEADING = set(
    "Of What That Those Whether Which Where Who Whom Whose Whoever Whatever Why How So Such When "
    "While As At By For From In Into On Off Out Over Per Since Than To Under Until Up With Within "
    "Without Above After Among Before Behind Below Beside Between Beyond During If Because".split()
)
DETERMINERS = set(
    "A All An Another Any Anything Both Each Either Every Everything Few It Its Itself Least Many "
    "More Most Neither Nobody No None Nothing One Other Others Our Ours Several Some Somebody "
    "The Their Them These They This True False Two Three Four Five Six Ten Twelve".split()
)
AFTER = "as|at|between|by|for|from|in|into|of|on|per|than|that|to|until|when|where|with"
PARTICIPLE = re.compile(
    rf"(?:\w+ed|Drawn|Given|Held|Kept|Known|Made|Taken|Told|Written)(?:[,;:.]|,? (?:{AFTER})\b)"
)
NOUN = re.compile(rf"`|[\w'/-]+(?:[,;.]| of\b)|[\w'/-]*[^\Wsu]s (?:{AFTER})\b|[A-Z][a-z]+'s\b|\d")
SUBORDINATE = re.compile(r"\b(?:as|how|if|that|what|when|where|whether|which|whom?|whose)\b")
FINITE = re.compile(
    r"\b(?:are|can|cannot|did|do|does|had|has|have|is|may|might|must|should|was|were|will|would)\b"
)
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
PROPERTIES = {"property", "cached_property", "setter"}


@dataclass(frozen=True)
class Docstring:
    """The docstring at a ``line``, of a definition by its full ``name`` within the module."""

    line: int
    name: str
    is_function: bool
    text: str

    @property
    def is_public(self) -> bool:
        """True if no part of the name begins with an underscore."""
        return not any(part.startswith("_") for part in self.name.split("."))

    @property
    def is_faulty(self) -> bool:
        """True if the first sentence lacks its subject, or a verb that it needs."""
        text = " ".join(self.text.split())
        first = re.match(r"\w*", text)[0]
        if first in LEADING or PARTICIPLE.match(text):
            return True
        if not self.is_function or not (first in DETERMINERS or NOUN.match(text)):
            return False
        main = SUBORDINATE.split(re.split(r"[.;](?: |$)", text, maxsplit=1)[0], maxsplit=1)[0]
        return not FINITE.search(main)


def docstrings(source: str) -> Iterator[Docstring]:
    """Yield all docstrings of a module, those below an assignment included."""
    yield from _within(ast.parse(source), "", False)


def _within(node: ast.AST, name: str, is_function: bool) -> Iterator[Docstring]:
    own, subject = name, is_function
    for part in getattr(node, "body", ()):
        match part:
            case ast.Expr(ast.Constant(str(text))):
                yield Docstring(part.lineno, own, subject, text)
            case ast.Assign([ast.Name(target)]) | ast.AnnAssign(ast.Name(target)):
                own, subject = _joined(name, target), False
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _within(part, _joined(name, part.name), _acts(part))
            case _:
                continue


def _joined(name: str, part: str) -> str:
    return f"{name}.{part}" if name else part


def _acts(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Tell whether a definition is a function, and no property."""
    if isinstance(node, ast.ClassDef):
        return False
    names = (ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list)
    return not PROPERTIES & set(names)


def modules(root: Path, packages: tuple[str, ...], exempt: tuple[str, ...]) -> list[Path]:
    """List the modules of packages below ``root``, but for those of ``exempt`` folders."""
    skipped = [root / folder for folder in exempt]
    return [
        path
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in skipped)
    ]
