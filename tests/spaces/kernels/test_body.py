"""Statements in scopes: what they print, and names that are wrong where they are written."""

import pytest

from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import each
from tilewright.spaces.kernels.body import Body, names_in
from tilewright.spaces.kernels.text import CUDA, C


def test_statements_print_one_to_one():
    body = Body(given=("x", "y"))
    with body.loop("int", "i", 8, unroll=True) as i:
        value = body.let("const float", "value", f"tw::load_global(x + {i * 4 + 1})")
        with body.when(f"{value} > 0.0f", brief=True):
            body.assign("y[0]", value, "+")
        with body.otherwise():
            body.call("tw_fill", "y", i // 2, 3)
            body.leave()
    assert CUDA.lines(body.statements) == [
        "#pragma unroll",
        "for (int i = 0; i < 8; i++) {",
        "  const float value = tw::load_global(x + (4 * i + 1));",
        "  if (value > 0.0f) y[0] += value; else {",
        "    tw_fill(y, i / 2, 3);",
        "    return;",
        "  }",
        "}",
    ]


def test_pragmas_stand_on_lines_of_their_own():
    body = Body(given=("n", "s"))
    with (
        body.loop("int", "i", 4, unroll=2, brief=True) as i,
        body.when(f"{i} < n", brief=True),
        body.loop("int", "k", "n", first=i, step=4, unroll=3, brief=True) as k,
    ):
        body.assign(f"s[{k}]", 0)
    assert C.lines(body.statements) == [
        "#pragma GCC unroll 2",
        "for (int i = 0; i < 4; i++) if (i < n)",
        "#pragma GCC unroll 3",
        "  for (int k = i; k < n; k += 4) s[k] = 0;",
    ]


def test_what_is_repeated_during_a_test_has_a_scope():
    body = Body(given=("end",))
    body.let("int", "at", 0)
    with body.during("at < end"):
        step = body.let("const int", "step", 1)
        body.assign("at", f"at + {step}")
    assert CUDA.lines(body.statements) == [
        "int at = 0;",
        "while (at < end) {",
        "  const int step = 1;",
        "  at = at + step;",
        "}",
    ]
    with pytest.raises(NameError, match="step"), body.during(step):
        pass


def test_declarations_of_pointers_and_arrays():
    body = Body(given=("w",))
    body.let("u32 *const", "ticket", "(u32 *)w + 4")
    body.let("float *", "p", "(float *)ticket")
    body.let("float", "s", "{0.0f, 0.0f}", count=2)
    body.call("tw_take", "p", "s")
    assert CUDA.lines(body.statements)[:3] == [
        "u32 *const ticket = (u32 *)w + 4;",
        "float *p = (float *)ticket;",
        "float s[2] = {0.0f, 0.0f};",
    ]


def test_tests_are_joined_and_none_leave_a_scope_or_nothing():
    body = Body(given=("x", "n"))
    with body.where(["x < n", "x > 2"]):
        body.let("float", "v", count=(2, 3))
        body.call("tw_take", "v")
    with body.where([]):
        body.leave()
    with body.where([], brief=True):
        body.leave()
    assert C.lines(body.statements) == [
        "if (x < n && x > 2) {",
        "  float v[2][3];",
        "  tw_take(v);",
        "}",
        "{",
        "  return;",
        "}",
        "return;",
    ]


def test_a_mapping_writes_its_tasks_to_a_body():
    body = Body(given=("n", "x"))
    mapping = spatial(2) * repeat(4)
    each(body, mapping, "x", lambda at: body.call("tw_use", *at), extents=("n",), integer="int")
    assert C.lines(body.statements) == [
        "for (int i0 = 0, i0_most = n - (4 * x), i0_end = i0_most < 4 ? i0_most : 4; "
        "i0 < i0_end; i0++) {",
        "  tw_use(4 * x + i0);",
        "}",
    ]


def test_what_a_mapping_is_not_given_is_refused():
    body = Body(given=("x",))
    with pytest.raises(NameError, match="n is not declared"):
        each(body, repeat(3), 0, lambda at: body.call("tw_use", *at), extents=("n",))
    other = Body(given=("i0",))
    with pytest.raises(NameError, match="i0 is declared"):
        each(other, repeat(3), 0, lambda at: other.call("tw_use", *at))


def test_an_index_below_the_end_of_a_loop_simplifies():
    body = Body(given=("x",))
    with body.loop("int", "i", 8) as i:
        body.call("tw_use", (i + index("x") * 8) % 8)
    assert "  tw_use(i);" in C.lines(body.statements)


def test_a_name_that_no_open_scope_has_is_refused_where_it_is_written():
    body = Body()
    with body.block():
        body.let("int", "a", 1)
        body.call("tw_use", "a")
    with pytest.raises(NameError, match="a is not declared, in a \\+ 1"):
        body.call("tw_use", "a + 1")


def test_a_name_that_an_open_scope_has_is_not_declared_again():
    body = Body(given=("x",))
    with pytest.raises(NameError, match="x is declared in a scope that is open"):
        body.let("int", "x", 1)
    with (
        body.loop("int", "i", 4),
        pytest.raises(NameError, match="i is declared"),
        body.loop("int", "i", 4),
    ):
        pass


def test_a_loop_may_only_count():
    body = Body(given=("x",))
    with body.loop("int", "i", 4, brief=True):
        body.assign("x[0]", 1, "+")
    assert C.lines(body.statements) == ["for (int i = 0; i < 4; i++) x[0] += 1;"]


def test_a_name_that_nothing_reads_is_refused_at_the_end_of_its_scope():
    body = Body()
    with pytest.raises(NameError, match="unread: declared, and nothing reads it"), body.block():
        body.let("int", "unread", 1)
    alone = Body()
    alone.let("int", "a", 1)
    with pytest.raises(NameError, match="a: declared"):
        _ = alone.statements


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tw::load_shared<float>(shared + 4 * i)", {"shared", "i"}),
        ("(u32 *)workspace + (i64)threadIdx.x", {"workspace"}),
        ("a.member + p->member + f(b)", {"a", "p", "b"}),
        ("1e-05f + 0x7f800000u + 2.0f + 3L", set()),
        ("tw_take<4, widest>(x0 + a1)", {"widest", "x0", "a1"}),
        ("own < tasks ? own : 0", {"own", "tasks"}),
    ],
)
def test_names_are_variables_alone(text, names):
    assert names_in(text) == names


def test_loops_and_conditions_go_around_lines():
    stores = CUDA.loop("e", 2, "x[e] = 0;", unroll=True)
    assert CUDA.loop("j", 4, stores) == [
        "for (int j = 0; j < 4; j++) {",
        "  #pragma unroll",
        "  for (int e = 0; e < 2; e++) x[e] = 0;",
        "}",
    ]
    assert CUDA.loop("j", 4, stores, unroll=True, brief=True) == [
        "#pragma unroll",
        "for (int j = 0; j < 4; j++)",
        "  #pragma unroll",
        "  for (int e = 0; e < 2; e++) x[e] = 0;",
    ]
    inside = C.when("r < rows", ["f(r);", "g(r);"], "break;")
    assert C.loop("r", "end", inside, first="begin", step=2, brief=True) == [
        "for (long r = begin; r < end; r += 2) if (r < rows) {",
        "  f(r);",
        "  g(r);",
        "} else break;",
    ]
    chain = C.when("a", "f();", C.when("b", [], "g();"), brief=True)
    assert chain == ["if (a) f(); else if (b) {", "} else g();"]
    assert C.loop("r", 4, "f(r);", step=1) == ["for (long r = 0; r < 4; r += 1) f(r);"]
    assert CUDA.block("int x;", "f(x);") == ["{", "  int x;", "  f(x);", "}"]
    assert CUDA.block() == ["{", "}"]
