"""Find docstrings whose first sentence lacks its subject, or a verb where a function needs one.

No docstring begins with a relative or interrogative word (``What``), a participle before a
preposition (``Loaded by``), or a preposition (``Of``) without a comma after the phrase. A function
does something, so its docstring begins with a verb, or has a finite auxiliary verb before any
subordinate clause. Its first words count as a noun phrase if they are a determiner, a number, text
in backticks, a genitive, a word before ``of``, or a plural before a preposition. Modules, classes,
properties and attributes are things, and so are the functions of ``spaces.named``, which are
operators: noun phrases describe them well.

There is no dictionary behind this. Nouns such as ``Text that`` pass, and so do later sentences.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

PREPOSITIONS = """
Above After Among As At Because Before Behind Below Beside Between Beyond By During For From If In
Into Of Off On Out Over Per Since Than To Under Until Up When While With Within Without
"""
RELATIVES = """
How So Such That Those What Whatever Where Whether Which Who Whoever Whom Whose Why
"""
DETERMINERS = """
A All An Another Any Anything Both Each Either Every Everything False Few It Its Itself Least Many
More Most Neither No Nobody None Nothing One Other Others Our Ours Several Six Some Somebody Ten The
Their Them These They This Three True Twelve Two Four Five
"""
AFTER = "as|at|between|by|for|from|in|into|of|on|per|than|that|to|until|when|where|with"
PARTICIPLE = re.compile(
    rf"(?:\w+ed|Drawn|Given|Held|Kept|Known|Made|Taken|Told|Written)(?:[,;:.]|,? (?:{AFTER})\b)"
)
PLURAL = r"[\w'/-]*[^\Wsu]s"
NOUN = re.compile(rf"`|\d|(?!Say|Tell)[\w'/-]+ of\b|{PLURAL},? (?:{AFTER})\b|{PLURAL}[,.;]|\w+'s\b")
SUBORDINATE = re.compile(r"\b(?:as|how|if|that|what|when|where|whether|which|whom?|whose)\b")
FINITE = re.compile(
    r"\b(?:are|can|cannot|did|do|does|had|has|have|is|may|might|must|should|was|were|will|would)\b"
)
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
        return _is_faulty(" ".join(self.text.split()), self.is_function)


def _is_faulty(text: str, is_function: bool) -> bool:
    first = re.match(r"\w*", text)[0].capitalize()
    if first in RELATIVES.split() or PARTICIPLE.match(text):
        return True
    if first in PREPOSITIONS.split():
        adverbial = re.match(r"[^,.;:]*, ", text)
        return adverbial is None or _is_faulty(text[adverbial.end() :], is_function)
    if not is_function or not (first in DETERMINERS.split() or NOUN.match(text)):
        return False
    main = SUBORDINATE.split(re.split(r"[.;](?: |$)", text, maxsplit=1)[0], maxsplit=1)[0]
    return not FINITE.search(main)


def docstrings(source: str, is_of_things: bool = False) -> Iterator[Docstring]:
    """Yield all docstrings of a module, those below an assignment included.

    With ``is_of_things`` its functions count as things, too.
    """
    for found in _within(ast.parse(source), "", False):
        yield replace(found, is_function=found.is_function and not is_of_things)


def _within(node: ast.AST, name: str, is_function: bool) -> Iterator[Docstring]:
    own, subject = name, is_function
    for part in getattr(node, "body", ()):
        match part:
            case ast.Expr(ast.Constant(str(text))):
                yield Docstring(part.lineno, own, subject, text)
            case ast.Assign([ast.Name(target) | ast.Attribute(attr=target)]) | ast.AnnAssign(
                ast.Name(target) | ast.Attribute(attr=target)
            ):
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


def modules(root: Path, packages: tuple[str, ...]) -> list[Path]:
    """List the modules of packages below ``root``."""
    return [path for package in packages for path in sorted((root / package).rglob("*.py"))]
