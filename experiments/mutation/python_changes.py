"""Small changes of Python code: another operator, condition, number, or a statement less.

What no test could see is left alone: documentation, annotations, messages of errors.
"""

from __future__ import annotations

import ast
import re

from experiments.mutation.changes import Change

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
"""The spelling of each operator, and what takes its place."""

SILENT = ("__repr__", "__str__", "describe", "summary")
"""Functions whose results are words for people."""


def python_changes(source: bytes) -> list[Change]:
    """Return all changes of a module, in the order of the text."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.changes))


class _Finder(ast.NodeVisitor):
    """Walks a module and collects changes. Positions of a syntax tree are lines, from 1, and
    bytes in them."""

    def __init__(self, source: bytes) -> None:
        self.changes: list[Change] = []
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    # -- what is passed over ---------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SILENT:
            return
        for part in (*node.args.defaults, *node.args.kw_defaults, *node.body):
            if part is not None:
                self.visit(part)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in node.body:
            self.visit(part)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip a text with values in it: a message, mostly."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # -- changes ---------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "removed", "pass")

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call):
            self._replace(node, "removed", "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._replace(node, "removed", "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "jump", "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "jump", "continue")

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self._between(left, operator, right, "comparison")
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._between(node.left, node.op, node.right, "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, node.op, right, "logic")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, "logic", f"({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, "constant", str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, "constant", str(node.value + 1))
        elif isinstance(node.value, float):
            self._replace(node, "constant", repr(2 * node.value + 1))

    def _negate(self, test: ast.expr) -> None:
        self._replace(test, "condition", f"(not ({self._text(test)}))")

    def _between(self, left: ast.expr, operator: ast.AST, right: ast.expr, kind: str) -> None:
        """Replace an operator, which stands somewhere between its operands."""
        written, instead = OPERATORS.get(type(operator), ("", ""))
        start, stop = self._end(left), self._start(right)
        pattern = r"\s+".join(map(re.escape, written.split())).encode()
        found = re.search(pattern, self._source[start:stop]) if written else None
        if found:
            self.changes.append(Change(start + found.start(), start + found.end(), kind, instead))

    def _replace(self, node: ast.expr | ast.stmt, kind: str, after: str) -> None:
        self.changes.append(Change(self._start(node), self._end(node), kind, after))

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr) -> str:
        return self._source[self._start(node) : self._end(node)].decode()


def compiles(source: bytes) -> bool:
    """Tell whether the text is a module of Python."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True
