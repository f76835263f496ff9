"""Programs without a meaning are refused in one line that says what is allowed."""

import random
from contextlib import suppress

import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program

EXTENTS = {"i": 4, "j": 5, "k": 6}

BAD = {
    # names
    "y[i] = foo(x[i])": "line 1, character 8 of .*: unknown function 'foo'; known: exp, ",
    "y[i] = median[j](x[i, j])": "unknown reducer 'median'; known: sum, prod, max, min, argmax",
    "y[i, z] = x[i]": "character 6 of .*: 'z' is no axis; allowed: i; or give it an .*z=8$",
    "y[i] = sum[z](x[i])": "'z' is no axis; allowed: i; or give",
    "y[i] = sum[()](x[i])": "sum over no axis; allowed: one axis or more",
    "y[i, i] = x[i]": "axis 'i' is repeated; allowed: once",
    "y[i] = x[z]": "index 'z' is unknown; allowed: axes .i., and operands declared with index",
    "y[i] = x[t[i]]": "index 't' is unknown",
    "i[j] = x[j]": "'i' is an axis; an array needs another name",
    "y[i] = i[j]": "'i' is an axis; an operand needs another name",
    "y[i] = x[i] + x[i, j]": "'x' is read with 2 indices; it has 1 dimensions",
    "where[i] = x[i]": "bad name 'where'; allowed: .*, but none of axes, where, inf",
    # indices
    "x: float32[4]; y[i] = x[i + 1]": "x.i . 1. in stage 'y': index 'i . 1' of dimension 0 runs "
    "from 1 to 4 .i from 0 to 3.; allowed: 0 to 3, or inside.x.i . 1., value.",
    "x: float32[9]; y[i] = x[2 * i - 1]": "runs from -1 to 5 .*; allowed: 0 to 8",
    "s[j] = x[j]; y[i] = s[2 * i]": "runs from 0 to 6 .*; allowed: 0 to 4",
    "t: int32[4](index < 9); x: float32[8]; y[i] = x[t[i]]": "runs from 0 to 8",
    "y[i] = x[i * j]": "multiplies axes; allowed: an axis times a whole number",
    "y[i] = x[i // j]": "an index is divided by j; allowed: whole numbers from 1 on",
    "y[i] = x[i // 0]": "an index is divided by 0",
    "y[i] = x[i * 0.5]": "index 0.5 is no whole number",
    "y[i] = x[exp(i)]": "exp.i. is no index; allowed: whole numbers, axes, entries",
    "y[i] = x[sum[j](j)]": "reduces; allowed: a stage of its own",
    f"t: int32[4](index < 4); y[i] = {'t[' * 10}i{']' * 10}": "9 tables within tables; allowed: 8",
    "y[i] = inside(x[i - 1], 0)": "allowed: a line that declares it, such as x: float32.8.",
    "y[i, j] = inside(x[i - 1, j], 0)": "such as x: float32.8, 8.",
    "y[i] = inside(2, 0)": "inside.* is for one entry",
    "x: float32[4]; y[i] = inside(x[i], --1)": "'--1' is no value outside",
    f"x: float32[4]; y[i] = inside(x[i], {'-' * 900}1)": "is no value outside|too deeply nested",
    "y[i] = x[i] * inf": r"inf is allowed in inside\(name\[...\], -inf\) alone; elsewhere",
    f"y[i] = {'x' * 65}[i]": "bad name 'x.*x'; allowed: up to 64 letters",
    "y[i] = inside(x[i], j)": "'j' is no value outside; allowed: a number, inf, -inf",
    # quotients
    "y[i] = x[i] // 2": "^x.i. // 2 in stage 'y'; allowed: // of whole numbers by those that are",
    "y[i] = (i / 2) % 3": "i / 2 % 3 in stage 'y'; allowed: % of whole numbers",
    "y[i] = i % 2.5": "i % 2.5 in stage 'y'; allowed: ",
    "y[i] = i // 0": "i // 0 in stage 'y'; allowed: .* not 0",
    "y[i, j] = i // (2 - j)": "i // .2 - j. in stage 'y'; allowed: .* not 0",
    "where x[j] % 2 > 0; y = sum[j](x[j])": "x.j. % 2 in 'where x.j. % 2 > 0'; allowed: ",
    # axes
    "y[i] = x[i, j]": "axis 'j' of y.i. is neither kept nor reduced; kept: i; reduced: none",
    "y[i] = sum[j](x[i, k])": "axis 'k' of .* neither kept nor reduced; kept: i; reduced: j",
    # domains
    "y[i] = sum[j: i < 3](x[i, j])": "'i < 3' names no axis that is reduced; allowed: conditions "
    "on j",
    "y[i] = sum[j: k < j](x[i, j])": "'where k < j' bounds y.i., which has no axis 'k'",
    "y[i] = sum[j: j](x[i, j])": "'j' is no condition; allowed: < <=",
    "y[i] = sum[j: j < i, k](x[i, j, k])": "no axis; allowed: i, j, k",
    "y[i] = sum[j: j < i: 2](x[i, j])": "'j: j < i: 2' is no axis; allowed: i, j",
    "y[i] = sum[: j < i](x[i, j])": "': j < i' is no axis; allowed: i, j",
    "y[i] = sum[j: sum[k](x[k]) < j](x[j])": "reduces; allowed: a stage of its own",
    "y[i] = sum[j: j < 0](x[i, j])": "leaves no element for any row",
    # stages
    "y[i] = z[i]; z[i] = x[i]": "stage 'z' is read before it exists; line 1 defines it",
    "y[i] = y[i] + 1": "stage 'y' is read before it exists",
    "a[i] = b[i]\nb[i] = a[i]": "stage 'b' is read before it exists; line 2 defines it",
    "y[i] = inside(y[i - 2], 0)": "stage 'y' reads itself, and inside.y.i - 2., 0. is 2 steps "
    "before along i; allowed: one step before or after along one axis, such as inside.h.b, t - 1",
    "y[i] = inside(y[i + 2], 0)": "inside.y.i . 2., 0. is 2 steps later along i; allowed: one",
    "y[i] = inside(y[i - 1], 0) + inside(y[i + 1], 0)": "inside.y.i . 1., 0. steps along i "
    "backwards, and another read along i; allowed: one step",
    "a[i] = inside(y[i + 1], 0); y[i] = a[i] + inside(a[i - 1], 0)": "'y' reads itself, and "
    "inside.a.i - 1., 0. is one step before along i; allowed: one step before or after",
    "y[i] = inside(y[i], 0)": "inside.y.i., 0. is not one step before or after; allowed: one",
    "y[i] = inside(y[i // 2], 0)": "inside.y.i // 2., 0. is not one step before or after; allowed",
    "y[i, j] = inside(y[i - 1, j - 1], 0)": "steps along i and j; allowed: one step before",
    "y[i, j] = inside(y[i + 1, j + 1], 0)": "steps along i backwards and j backwards; allowed",
    "y[i, j] = inside(y[i, j - 1], 0) + inside(y[i - 1, j], 0)": "inside.y.i - 1, j., 0. steps "
    "along i, and another read along j; allowed: one step before",
    "y[i] = sum[i](inside(y[i - 1], 0))": "'y_sum' reads itself, and it reduces over i, along",
    "s = sum[i](inside(y[i - 1], 0)); y[i] = s": "'s' reads itself, and it reduces over i, along",
    "t: int32[4](index < 4); y[i] = inside(y[t[i]], 0)": "is not one step before or after; all",
    "t: int32[4](index < 4); y[j, i] = inside(y[t[i], i - 1], 0)": "'t.i.' in inside.y.t.i., i - "
    "1., 0. moves along i, too; allowed: one step before",
    "a[i] = inside(y[i - 1], 0); y[i] = inside(a[i - 2], 0)": "'y' reads itself, and inside.a.i - "
    "2., 0. is 2 steps before along i; allowed",
    "y[i] = sum[j: inside(y[i - 1], 0) < j](x[j])": "stage 'y' is read before it exists",
    "z: complex64[4]; y[i] = inside(y[i - 1], 0) * z[i]": "stage 'y' reads itself in a program of "
    "complex numbers; allowed: their parts, written out",
    "y[i] = inside(y[i - 1, j], 0)": "'y' is read with 2 indices; it has 1 dimensions",
    "y[i] = x[i]; y[i] = 2": "stage 'y' is defined twice; line 1 defines it",
    "h[i] = inside(h[i - 1], 0) + x[i]; y[i] = x[i]": "stage 'h' is read by itself alone, and no "
    "output; outputs: y",
    "a[i] = inside(b[i - 1], 0); b[i] = a[i] + x[i]; y[i] = x[i]": "stage 'a' is read by itself",
    "y[i] = x[i]; z[i] = 2": "outputs: z; for more of them write a last line -> y, z",
    "": "the program has no stage",
    # conditions
    "where j < 0; y[i] = sum[j](x[i, j])": "'where j < 0' leaves no element for any row",
    "where j < i and i <= j; y[i] = sum[j](x[i, j])": "leaves no element for any row",
    "where i < 2; y[i] = sum[j](x[i, j])": "'where i < 2' bounds no reduction",
    "where j <= k; y[i] = sum[j](x[i, j])": "bounds y.i., which has no axis 'k'; kept: i",
    "l: int32[3](index < 6); where j < l[i]; y[i] = sum[j](x[j])": "in 'where j < l.i.': "
    "index 'i' of dimension 0 runs from 0 to 3 .i from 0 to 3.; allowed: 0 to 2",
    "z[j] = x[j]; where z[j] < 1; y[i] = sum[j](z[j])": "stage 'z' is read before it exists",
    "where x[j]; y[i] = sum[j](x[j])": "no condition; allowed: < <= > >= == !=",
    "where j < 1 or j > 3; y[i] = sum[j](x[j])": "no condition; write select",
    "y[i] = (i < 2) * x[i]": "a comparison is the condition of select or where, nothing else",
    # declarations
    "x: float31[4]; y[i] = x[i]": "unknown dtype 'float31'; did you mean float32",
    "x: float32[0]; y[i] = x[i]": "0 is out of range; allowed: 1 to 2147483648",
    "x: float32[4, 5](order=(0, 0)); y[i] = x[i, i]": "order=.0, 0. is none of 2 dimensions",
    "x: float32[4, 5](leading=4); y[i] = x[i, i]": "leading=4 is too small; allowed: at least 5",
    "x: float32[4](leading=8); y[i] = x[i]": "leading=8 is too small; allowed: two dimensions",
    "x: float32[4](index < 4); y[i] = x[i]": "indices below 4 in float32; allowed: an integer",
    "t: int8[4](index < 300); y[i] = x[t[i]]": "indices below 300 in int8",
    "t: uint16[4](index < 65537); y[i] = x[t[i]]": "indices below 65537 in uint16",
    "x: uint16[4]; y[i] = x[i]": "x is uint16 without a limit; allowed: indices alone",
    "y: uint16; y[i] = x[i]": "y is uint16 without a limit; allowed: indices alone",
    "t: int32[4](random < 3); y[i] = t[i]": "unknown way to draw values; allowed: index < N",
    "t: int32[4](size=3); y[i] = t[i]": "unknown property 'size'; known: order, leading",
    "x: float32[4]; y[i] = i": "operand 'x' is declared, and never read",
    "z: float16; y[i] = x[i]": "operand 'z' is declared, and never read",
    "x: float32[4]; x: float16[4]; y[i] = x[i]": "'x' is declared twice; allowed: once",
    "y: float32[5]; y[i] = x[i]": "'y' is declared as .5,.; its axes: .4,.",
    "y: float32[4, 5]; y[i] = x[i]": "'y' has 1 axes here, and 2 where it is declared",
    "y: tfloat32; y[i] = x[i]": "output 'y' in tfloat32, a dtype of operands only",
    "z: float16; z[i] = x[i]; y[i] = z[i]": "stage 'z' is no output; allowed: a cast within it",
    # outputs
    "y[i] = x[i]; -> z": "'z' is no stage; allowed: y",
    "y[i] = x[i]; -> y, y": "output 'y' is named twice: outputs overlap",
    "y[i] = x[i]; -> y; -> y": "outputs are named twice",
    "y[i] = x[i]; -> y + 1": "'y . 1' is no stage; allowed: y",
    # grammar
    "y[i] = x[i].shape": "'x.i..shape' is not part of the language; write size.i. for",
    "y[i] = lambda: 1": "'lambda: 1' is not part of the language",
    "y[i] = exp(x=i)": "is not part of the language",
    "y[i] = exp(*x)": "is not part of the language",
    "y[i] = exp(1, 2)": "exp with 2 arguments; allowed: 1",
    "y[i] = x[i:j]": "is not part of the language",
    "y[i] = True": "'True' is not part of the language",
    "y[i] = 'text'": "unexpected character \"'\"",
    "y[] = sum[i](x[i])": "character 2 of .*: brackets without an axis; allowed: none, as in y = 2",
    "y[i] = x[i] + z[ ]": "character 16 of .*: brackets without an axis",
    "y[i] = 1if": "a number that ends in 'i' is not part of the language",
    "y[i] = x[i] ** 2": "is not part of the language",
    "y[i] = __import__(1)": "unknown function '__import__'",
    "y[i] += 1": "not part of the language; allowed: name.axes. = expression",
    "import os": "not part of the language",
    "y[i] = (x[i]": "a bracket is never closed",
    "y[i] = x[i])": "malformed",
    "y[i] = 1e39": "a number is out of range; allowed: 0 to 3.40282e.38",
    "y[i] = 1e400": "a number is out of range",
    f"y[i] = {'9' * 5000}": "malformed .Exceeds the limit",
    f"y[i] = {'-' * 70}x[i]": "too deeply nested; allowed: 64 levels",
    f"y[i] = {'(' * 300}i{')' * 300}": "malformed .too many nested parentheses",
    f"y[i] = {'softmax[i](' * 40}x[i]{')' * 40}": "stages; allowed: 64|too deeply nested",
    f"y[i] = {'+'.join(['x[i]'] * 4000)}": "the program has .* characters; allowed: 16000",
    "y[i] = x[i]\n" * 500: "the program has 500 statements; allowed: 400",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:60])
def test_a_program_without_a_meaning(text: str) -> None:
    used = {name: extent for name, extent in EXTENTS.items() if name in text}
    with pytest.raises(InputError, match=BAD[text]) as raised:
        program(text, **used or {"i": 4})
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 270


@pytest.mark.parametrize(
    ("extents", "message"),
    [
        ({"i": 0}, "i=0 is out of range; allowed: whole numbers from 1 to 16777216"),
        ({"i": 2**24 + 1}, "i=16777217 is out of range"),
        ({"i": -3}, "i=-3 is out of range; allowed: whole numbers from 1 to 16777216"),
        ({"i": 2.0}, "i=2.0 is no whole number"),
        ({"i": True}, "i=True is no whole number"),
        ({"i": "4k"}, "i='4k' is no whole number"),
        ({"i": 10**5000}, "i=a int that cannot be shown is out of range"),
        ({"i": 4, "z": 3}, "axis 'z' has an extent, and no stage uses it"),
        ({}, "'i' is no axis; allowed: axes with an extent, such as i=4; none is given"),
        ({"i": 4, "a b": 3}, "'a b' is no name of an axis"),
        ({f"a{n}": 2 for n in range(33)}, "33 axes; allowed: 32"),
    ],
)
def test_extents_out_of_range(extents, message: str) -> None:
    with pytest.raises(InputError, match=message):
        program("y[i] = x[i]", **extents)


def test_an_extent_given_twice() -> None:
    with pytest.raises(InputError, match="axis 'i' is given twice, in the text and beside it"):
        program("axes i=4\ny[i] = x[i]", i=4)
    with pytest.raises(InputError, match="axis 'i' is given twice"):
        program("axes i=4, i=4\ny[i] = x[i]")


def test_a_dtype_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="unknown dtype 'float31'; did you mean float32"):
        program("y[i] = x[i]", dtype="float31", i=4)


@pytest.mark.parametrize("given", [None, 3, b"y = 1", ["y = 1"]])
def test_what_is_no_text(given) -> None:
    with pytest.raises(InputError, match=r"a program of type .* was given; allowed: text"):
        program(given)


PIECES = (
    "y[i] = ", "z = ", "sum[j](", "softmax[i](", "argmax[i, j](", "x[i]", "x[i, j]", "x[t[i]]",
    "inside(y[i - 1], 0)",
    "inside(", "select(", "size(i)", "where ", "axes k=3", "-> ", "x: float32[4]", "t: int32[i](",
    "sorted < 4", "order=(1, 0)", "leading=9", "index < 3", "and", "or", "if", "not", "lambda",
    "(", ")", "[", "]", ",", ";", "\n", "#", ":", "=", "==", "!=", "<", "<=", "+", "-", "*", "**",
    "/", "//", "%", ".", "0", "1", "2", "1e9", "1e400", "inf", "i", "j", "t", "y", "mean", "exp(",
    "\t", "\\", "'", '"', "{", "}", "\x00", "é", "\ud800", "@", "!", "0x1f", "1j", "_", "None", "x",
)  # fmt: skip


def scrambled(chance: random.Random) -> str:
    """Pieces of the language in any order, or a whole program with some of it changed."""
    if chance.random() < 0.5:
        return "".join(chance.choices(PIECES, k=chance.randint(1, 25)))
    text = chance.choice([text for text in BAD if len(text) < 200 and text])
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.randint(0, 4))
        text = text[:start] + chance.choice([*PIECES, text[start:end] * 2, ""]) + text[end:]
    return text


def read_scrambled(seed: int, count: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        text = scrambled(chance)
        extents = {axis: chance.choice([1, 2, 4, 7]) for axis in "ijk" if axis in text}
        with suppress(InputError):
            made = program(text, **extents)
            assert program(str(made)) == made, text
            assert len(made.digest) == 16, text


def test_scrambled_programs_meet_no_other_exception() -> None:
    read_scrambled(1, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_scrambled_programs_meet_no_other_exception(seed: int) -> None:
    read_scrambled(seed, 5000)
