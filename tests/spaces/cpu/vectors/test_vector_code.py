"""Expressions as vector code: what they compute, and what is defined for them."""

import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.cpu.vectors.generated import FIRST, SECOND, build, call, text_of
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.cpu.isa import detect_isa
from tilewright.spaces.cpu.target import FLAGS, MEANING
from tilewright.spaces.cpu.vectors.vector_code import VectorCode
from tilewright.spaces.cpu.vectors.vector_math import prelude
from tilewright.spaces.epilogue.expression import Epilogue
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Expression,
    Negation,
    Number,
    Read,
)


def random_expression(generator: random.Random, depth: int) -> Expression:
    """Of functions that keep small numbers small, so that float32 follows float64."""
    if depth == 0 or generator.random() < 0.1:
        leaf = generator.randrange(4)
        return [
            Read("x", ()),
            Number(round(generator.random() * 2, 3)),
            Read("a", ()),
            Read("b", (AxisValue("n"),)),
        ][leaf]

    def inner() -> Expression:
        return random_expression(generator, depth - 1)

    match generator.randrange(8):
        case 0:
            return Negation(inner())
        case 1:
            return Binary("/", inner(), Number(0.5 + generator.randrange(4)))
        case 2 | 3 | 4:
            return Binary(generator.choice("+-*"), inner(), inner())
        case 5:
            return Call(generator.choice(["min", "max"]), (inner(), inner()))
        case _:
            smooth = ["tanh", "sigmoid", "erf", "relu", "gelu", "gelu_tanh", "silu", "abs"]
            return Call(generator.choice(smooth), (inner(),))


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_emitted_expressions_compute_what_they_mean(tmp_path: Path, lanes: int) -> None:
    generator = random.Random(lanes)
    expressions = [Epilogue(random_expression(generator, 5)) for _ in range(40)]
    read = {"x": Written(f"({FIRST})"), "a": Written("tw_set(1.25f)"), "b": Written(f"({SECOND})")}
    values = {
        f"e{i}": f"0.0f + {expression.fold(VectorCode(), read).nested(2)}"
        for i, expression in enumerate(expressions)
    }
    functions = frozenset().union(*(expression.functions for expression in expressions))
    library = build(tmp_path, lanes, [], values, functions)
    x, b = np.random.default_rng(4).uniform(-2, 2, (2, 1024)).astype(np.float32)
    for i, expression in enumerate(expressions):
        given = {"x": x, "a": np.array(1.25), "b": b}
        exact = expression.evaluate(x, given)
        parts = [Epilogue(part) for part in expression.value.walk() if part != AxisValue("n")]
        scale = max(np.abs(part.evaluate(x, given)).max() for part in parts)
        error = np.abs(call(library, f"e{i}", x, b) - exact).max()
        assert error <= 1e-5 * (1 + scale), str(expression)


FAR = {"sin", "cos"}
"""Functions that leave vectors with numbers far away to C's library."""
LOOPS = {"random"}
"""Functions of several equal rounds, with the one branch of their loop."""
LIBRARY = {"atan", "atan2", "fmod", "pow"}
"""Functions that C's library computes, or some of whose arguments in a loop over lanes."""


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - LIBRARY))
def test_every_function_is_vector_code_without_branches(tmp_path: Path, name: str) -> None:
    """Read from the assembly for this machine's own vectors, where that is known: x86."""
    compiler = find_compiler()
    if "__x86_64__" not in compiler.macros:
        pytest.skip("reads x86 assembly")
    isa = detect_isa(compiler.macros)
    lanes = isa.vector_bytes // 4
    value = f"tw_{name}({', '.join(('a', 'b', 'a')[: FUNCTIONS[name].arity])})"
    source = (
        text_of([name], lanes, isa=isa.name) + f"vf subject(vf a, vf b) {{ return {value}; }}\n"
    )
    (tmp_path / "subject.c").write_text(source)
    command = [compiler.path, *FLAGS, *MEANING, compiler.native, "-Wall", "-Wextra"]
    result = subprocess.run(
        [
            *command,
            "-Wno-unused-parameter",
            "-Wno-psabi",  # how vectors are returned: all these functions are inlined
            "-Werror",
            "-S",
            "-o",
            "-",
            str(tmp_path / "subject.c"),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    instructions = re.findall(r"^\t([a-z]\w*)", result.stdout, flags=re.MULTILINE)
    assert "ret" in instructions
    scalar = [
        i for i in instructions if re.fullmatch(r"j\w+|call|v?(min|max|sqrt|div|mul|add|sub)ss", i)
    ]
    if name in FAR:
        assert scalar.count("call") == 1
        assert set(scalar) <= {"call", "jne", "je", "jmp"}
    elif name in LOOPS:
        assert len(scalar) <= 1
    else:
        assert scalar == []


def test_only_what_is_asked_for_is_defined() -> None:
    text = prelude(["relu"], 8)
    assert "tw_relu" in text
    assert "tw_exp" not in text
    assert "#include" not in prelude(FUNCTIONS, 16)
    assert prelude(["gelu", "abs"], 8) == prelude({"abs", "gelu"}, 8)
    assert prelude([], 8).count("TW_INLINE vf") == 1


def test_what_is_no_function_of_the_language_is_refused() -> None:
    with pytest.raises(InputError, match="unknown function 'sinh'"):
        prelude(["sinh"], 8)
    with pytest.raises(InputError, match="unknown function 'lesser'"):
        prelude(["lesser"], 8)


def test_generic_flags_and_other_compilers(tmp_path: Path) -> None:
    """The text is plain: any compiler with vector types takes it, for any machine."""
    source = tmp_path / "all.c"
    source.write_text(text_of(FUNCTIONS, 4))
    compilers = [path for name in ("gcc", "clang", "cc") if (path := shutil.which(name))]
    for compiler in compilers:
        command = [compiler, "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        command.append("-Wno-psabi")  # how vectors are returned: all these functions are inlined
        subprocess.run([*command, str(source)], check=True, timeout=60)
