from hypothesis import example, given, settings
from hypothesis import strategies as st

from tilewright.spaces.algebra.index import Index, Quotient, Remainder, Variable, index


def value_of(expression, values):
    """The meaning of an index, read from its structure."""
    total = expression.constant
    for atom, coefficient in expression.terms:
        if isinstance(atom, Variable):
            number = values[atom.text]
        elif isinstance(atom, Quotient):
            number = value_of(atom.dividend, values) // atom.divisor
        else:
            assert isinstance(atom, Remainder)
            number = value_of(atom.dividend, values) % atom.divisor
        total += coefficient * number
    return total


EXTENTS = {"a": 8, "b": 6, "c": 3, "d": None}


def combined(children):
    numbers = st.sampled_from((1, 2, 3, 4, 6, 8, 12, 16))
    return st.one_of(
        st.tuples(st.just("+"), children, children),
        st.tuples(st.sampled_from("*/%"), children, numbers),
    )


trees = st.recursive(
    st.one_of(st.sampled_from(sorted(EXTENTS)), st.integers(0, 20)), combined, max_leaves=8
)


def built(tree):
    if isinstance(tree, str):
        return index(tree, EXTENTS[tree])
    if isinstance(tree, int):
        return index(tree)
    operator, left, right = tree
    if operator == "+":
        return built(left) + built(right)
    if operator == "*":
        return built(left) * right
    return built(left) // right if operator == "/" else built(left) % right


def expected(tree, values):
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int):
        return tree
    operator, left, right = tree
    number = expected(left, values)
    if operator == "+":
        return number + expected(right, values)
    if operator == "*":
        return number * right
    return number // right if operator == "/" else number % right


@settings(max_examples=300, deadline=None)
@given(trees, st.tuples(*(st.integers(0, (n or 1000) - 1) for n in EXTENTS.values())))
@example(("%", ("%", "d", 6), 4), (0, 0, 0, 7))
@example(("/", ("/", "d", 6), 4), (0, 0, 0, 47))
@example(("%", ("+", ("*", "d", 6), "a"), 4), (7, 0, 0, 5))
def test_simplification_keeps_the_value_and_the_extent(tree, numbers):
    values = dict(zip(EXTENTS, numbers, strict=True))
    expression = built(tree)
    assert value_of(expression, values) == expected(tree, values)
    assert expression.extent is None or value_of(expression, values) < expression.extent


def test_operations_that_say_nothing_disappear():
    i, j, w = index("i", 100), index("j", 8), index("w", 32)
    assert (i * 1 + 0).text == "i"
    assert (i // 1).text == "i"
    assert (i % 1).text == "0"
    assert (i * 0).text == "0"
    assert ((i * 8 + j) // 8).text == "i"
    assert ((i * 8 + j) % 8).text == "j"
    assert (w // 32).text == "0"
    assert (w % 32).text == "w"
    assert (w // 8 // 2).text == "w / 16"
    assert (w // 8 * 8 + w % 8).text == "w"
    assert (w // 8 * 8 + w // 2 % 4 * 2 + w % 2).text == "w"
    assert ((i * 64 + j) // 128).text == "i / 2"
    assert index("1") == index(1)


def test_text_is_safe_inside_other_expressions():
    w = index("w", 32)
    assert str(w) == "w"
    assert str(w + 1) == "(w + 1)"
    assert str(w % 8) == "(w % 8)"
    assert str(index("a ? b : c") * 2) == "(2 * (a ? b : c))"
    assert index("a + b").text == "a + b"
    assert (index("a + b") // 4).text == "(a + b) / 4"
    assert Index().text == "0"


def test_products_that_32_bits_do_not_hold_are_of_64():
    worker, row = index("worker", 64), index("row", 1000)
    assert (worker * 30_000_000 + row).text == "30000000 * worker + row"
    assert (worker * 40_000_000 + row * 3).text == "40000000L * worker + 3L * row"
    assert str((worker * 40_000_000 + row) % 2**25) == "((40000000L * worker + row) % 33554432)"
