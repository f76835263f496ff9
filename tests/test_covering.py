"""Tests of cases that show each aspect."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.covering import aspects_of, chosen, covering, few

ROOT = Path(__file__).parents[1]
CASES = {
    "plain": {"dtype": "float32", "splits": 1},
    "halves": {"dtype": "float16", "splits": 1},
    "parts": {"dtype": "float16", "splits": 4},
    "other parts": {"dtype": "float16", "splits": 5},
}

HOOK = """
from tests.covering import cover_families

def pytest_collection_modifyitems(items):
    cover_families(items)
"""
FAMILY = """
import pytest

TEXTS = {
    "sum": "y[i] = sum[j](x[i,j])",
    "mean": "y[i] = mean[k](sum[j](z[i,k,j]))",
    "maximum": "y[i] = max[j](x[i,j])",
}

@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_sum(threads, dtype):
    pass

@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    pass

@pytest.mark.parametrize("name", TEXTS)
def test_bugs_are_found(name):
    pass
"""


def quick(params):
    return [param.values for param in params if not param.marks]


def test_few_cases_show_all_aspects():
    every = covering(CASES, lambda name: aspects_of(CASES[name]))
    assert quick(every) == [("plain",), ("parts",)]
    assert [param.values[0] for param in every] == list(CASES)


def test_the_first_show_theirs_already():
    assert chosen({1: "ab", 2: "bc", 3: "abc", 4: "d"}, first=[2]) == [1, 2, 4]
    assert chosen({1: "ab", 2: "bc", 3: "abc", 4: "d"}) == [3, 4]
    assert chosen({1: "", 2: "a"}) == [2]


def test_of_a_family_those_run_that_show_an_aspect_alone(tmp_path):
    folder = tmp_path / "tests/spaces/cpu"
    folder.mkdir(parents=True)
    (folder / "test_some.py").write_text(FAMILY)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers=['slow']")
    (tmp_path / "conftest.py").write_text(HOOK)
    command = [sys.executable, "-m", "pytest", "-v", "-m", "not slow", "-p", "no:cacheprovider"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "scheduler/face")])
    variables = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    ran = set(re.findall(r"::(test_\S+) PASSED", done.stdout))
    assert ran == {
        *("test_a_sum[1-float32]", "test_a_sum[2-float16]"),
        *("test_texts[mean]", "test_texts[maximum]"),
        *("test_bugs_are_found[sum]", "test_bugs_are_found[mean]", "test_bugs_are_found[maximum]"),
    }


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("y[i] = sum[j](x[t[i],j] * 2) <= 3", {"=", "sum", "[t[", "*", "<="}),
        ("x: bfloat16", {"bfloat16"}),
    ],
)
def test_functions_dtypes_operators_and_tables_are_aspects(text, found):
    assert set(aspects_of(text)) == found


def test_numbers_count_by_powers_of_two_and_names_of_decisions_count():
    assert set(aspects_of([{"warps": 5, "m": 9}, True, 6])) == {("warps", 3), "True", 3}


def test_few_of_many_random_cases_run():
    quick, slow = few(2, of=9)
    assert (quick, slow.values) == (2, (9,))
    assert slow.marks
