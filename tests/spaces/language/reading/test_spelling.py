"""What the language refuses comes with the nearest spelling that works."""

from __future__ import annotations

import ast
import re

import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.reading import spelling
from tilewright.spaces.language.reading.expressions import ExpressionReader, Names
from tilewright.spaces.language.reading.source import Statement
from tilewright.spaces.operators import workload

EXTENTS = {"i": 4, "j": 5, "k": 5}
NEAR = {
    "y[i] = x[i]**2": "write x[i] * x[i]",
    "y[i] = (x[i] + 1)**3": "write (x[i] + 1) * (x[i] + 1) * (x[i] + 1)",
    "y[i] = x[i] ** 0.5": "write sqrt(x[i])",
    "y[i] = x[i] ** 1.7": "write pow(x[i], n)",
    "y[i] = sum(x[i, j])": "write sum[j](x[i, j])",
    "y = sum(x[i, j])": "write sum[i, j](x[i, j])",
    "y[i] = mean(x[i, j], axis=1)": "write mean[j](x[i, j])",
    "y[i] = max(x[i, j])": "allowed: 2, or max[j](x[i, j])",
    "y[i, j] = softmax(x[i, j])": "write softmax[i, j](x[i, j])",
    "y[i] = x[i] if i > 2 else 0": "write select(i > 2, x[i], 0)",
    "where i > 2 or i < 1; y[i] = x[i]": "write select(a or b, 1, 0) > 0",
    "y[i] = select(i > 2, x[i], -inf)": "inf is allowed in inside(name[...], -inf) alone",
    "y[i] = x[i] > 0": "write select(x[i] > 0, 1, 0)",
    "y[i] = x[i, :]": "x[i + 3] for a part",
    "y[i] = x[0:3]": "x[i + 3] for a part",
    "y[i] = x[i][j]": "write x[i, j]",
    "y[i] = x.T": "write x[j, i] for the transpose",
    "y[i] = x[i] >> 4": "write x[i] // 16",
    "y[i] = x[i] @ w[i]": "sum[k](a[i, k] * b[k, j])",
    "y[i] = x[i] & 1": "conditions are joined by 'and'",
    "h[i] = h[i - 1] * 0.5 + x[i]": "a stage may read itself one step before, such as inside(",
    "y[i] = torch.exp(x[i])": "write exp(...)",
    "y[i] = asin(x[i])": "its values are an operand's",
    "y[i] = rint(x[i])": "write round(x)",
    "y[i] = power(x[i], 2)": "write pow(x, n)",
    "y[i] = isnan(x[i])": "write select(isnan(x[i]), 1, 0)",
    "y[i] = floor(x[i], 2)": "floor with 2 arguments; allowed: 1",
    "y[i] = ceil(x[i], 2)": "ceil with 2 arguments; allowed: 1",
    "y[i] = lgo1p(x[i])": "did you mean log1p?",
    "y[i] = sigmoyd(x[i])": "did you mean sigmoid?",
    "y[i] = softmaxx[i](x[i])": "did you mean softmax?",
    "y[i] = cumsum[i](x[i])": "write sum[k: k <= j](x[k])",
    "y[i] = sum[m](x[i, m])": "give it an extent, such as m=8",
    "y[i] = True": "write 1",
}


@pytest.mark.parametrize("text", NEAR)
def test_the_nearest_spelling_is_named_in_a_sentence(text):
    with pytest.raises(InputError) as raised:
        program(text, **{axis: EXTENTS[axis] for axis in EXTENTS if axis in text} or EXTENTS)
    assert NEAR[text] in str(raised.value)
    assert len(str(raised.value)) <= 200


def test_a_long_statement_is_shown_around_what_is_wrong():
    text = f"y[i] = {' + '.join(['x[i]'] * 40)} + acos(x[i])"
    with pytest.raises(
        InputError, match=r"character 288 of '\.\.\..*acos\(x\[i\]\)': unknown"
    ) as raised:
        program(text, i=4)
    assert len(str(raised.value)) <= 200


@pytest.mark.parametrize("table", [spelling.FUNCTIONS, spelling.REDUCERS])
def test_what_is_to_be_written_is_part_of_the_language(table):
    for spelt in filter(None, table.values()):
        if not spelt.startswith("write ") or "line" in spelt:
            continue
        for written in re.split(r", or | for ", spelt.removeprefix("write ")):
            statement = Statement(f"y = {written}", 1)
            tree = statement.tree()
            assert isinstance(tree, ast.Assign)
            ExpressionReader(statement, Names(dict.fromkeys("ijk", 8), {})).read(tree.value)


def test_a_product_without_indices_is_taken_for_a_program():
    with pytest.raises(InputError, match=r"unexpected character '@'; a product is sum\[k\]"):
        workload("y = x @ w")
