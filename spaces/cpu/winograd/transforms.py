"""Small constant matrices times vectors of lanes, as C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.derivation.products.short_windows import Matrix, Row


def transformed(
    matrix: Matrix, load: Callable[[int, int], str], store: Callable[[int, int, str], str]
) -> list[str]:
    """Return the C lines that apply ``matrix`` to the columns, then to the rows, of a square of
    vectors.

    ``load(i, j)`` is the C of a vector, and ``store(i, j, value)`` a statement.
    """
    rows, size = len(matrix), len(matrix[0])
    lines = [f"vf t[{rows}][{size}];"]
    for j in range(size):
        given = [f"const vf d{i} = {load(i, j)};" for i in range(size)]
        results = [f"t[{i}][{j}]" for i in range(rows)]
        lines += _block([*given, *_applied(matrix, [f"d{i}" for i in range(size)], results)])
    for i in range(rows):
        results = [f"const vf v{j}" for j in range(rows)]
        stores = [store(i, j, f"v{j}") for j in range(rows)]
        along = [f"t[{i}][{j}]" for j in range(size)]
        lines += _block([*_applied(matrix, along, results), *stores])
    return lines


def operations(matrix: Matrix) -> int:
    """Count the vector operations of the matrix times one column of vectors."""
    return len(_applied(matrix, ["d"] * len(matrix[0]), ["v"] * len(matrix))) + sum(
        max(0, sum(map(bool, row)) - 2) for row in matrix
    )


def _applied(matrix: Matrix, given: Sequence[str], results: Sequence[str]) -> list[str]:
    """Return statements that set each of ``results`` to its row times ``given``. Rows that are the
    same but for signs share the sum and the difference of two halves."""
    lines, done = list[str](), set[int]()
    for i, row in enumerate(matrix):
        if i in done:
            continue
        twin = next((k for k in range(i + 1, len(matrix)) if _are_twins(row, matrix[k])), None)
        if twin is None:
            lines.append(f"{results[i]} = {_sum(row, given)};")
            continue
        other = matrix[twin]
        same = [a if a == b else Fraction(0) for a, b in zip(row, other, strict=True)]
        opposite = [a if a != b else Fraction(0) for a, b in zip(row, other, strict=True)]
        lines += [
            f"const vf same{i} = {_sum(same, given)}, opposite{i} = {_sum(opposite, given)};",
            f"{results[i]} = same{i} + opposite{i};",
            f"{results[twin]} = same{i} - opposite{i};",
        ]
        done.add(twin)
    return lines


def _are_twins(row: Row, other: Row) -> bool:
    """Tell whether two rows differ in signs alone, and it pays to add up both halves first."""
    same = sum(a == b != 0 for a, b in zip(row, other, strict=True))
    opposite = sum(a == -b != 0 for a, b in zip(row, other, strict=True))
    whole = all(abs(a) == abs(b) for a, b in zip(row, other, strict=True))
    return whole and min(same, opposite) > 0 and same + opposite > 2


def _sum(row: Sequence[Fraction], given: Sequence[str]) -> str:
    """Return the C of a row times vectors: terms without a factor are added first, the others by
    multiply-adds."""
    terms = [(c, name) for c, name in zip(row, given, strict=True) if c]
    terms.sort(key=lambda term: (abs(term[0]) != 1, term[0] < 0))
    text = ""
    for c, name in terms:
        number = f"{float(c)!r}f"
        if abs(c) == 1:
            sign = "-" if c < 0 else "+"
            text = f"{text} {sign} {name}" if text else f"{sign.strip('+')}{name}"
        else:
            text = (
                f"tw_fma(tw_broadcast({number}), {name}, {text})" if text else f"{number} * {name}"
            )
    return text or "(vf){0}"


def _block(lines: Sequence[str]) -> list[str]:
    return ["{", *indented(lines), "}"]
