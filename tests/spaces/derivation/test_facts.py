import shlex

import pytest

from tests.spaces.derivation.programs import attention, rows
from tilewright.spaces.derivation.facts import describe
from tilewright.spaces.language import program
from tilewright.spaces.named import named, names, operator


def test_attention_is_described():
    assert describe(attention("prefill_gqa")).lines == (
        "p_sum is a sum of products: batch b, h//2; rows h%2, i; columns j; depth d",
        "  left factor q[b, h, i, d]",
        "    q: batch step 528, rows step 8, depth step 1",
        "  right factor k[b, h // 2, j, d]",
        "    k: batch step 264, columns step 8, depth step 1",
        "y is a sum of products: batch b, h//2; rows h%2, i; columns e; depth j",
        "  left factor exp(p_sum[b, h, i, j] * 0.25 - p_max[b, h, i])",
        "    p_sum: batch step 2178, rows step 33, depth step 1",
        "    p_max: batch step 66, rows step 1",
        "  right factor v[b, h // 2, j, e]",
        "    v: batch step 66, columns step 1, depth step 2",
        "  the sum is multiplied by 1 / p_sum2[b, h, i]",
        "over d: 1 reduction in 1 pass",
        "  p_sum = sum of q[b, h, i, d] * k[b, h // 2, j, d]",
        "over j: 3 reductions in 1 pass",
        "  p_max = max of p_sum[b, h, i, j] * 0.25",
        "  p_sum2 = sum of exp(p_sum[b, h, i, j] * 0.25 - p_max[b, h, i]); "
        "times exp(new - old) of -p_max[b, h, i]",
        "  y = sum of exp(p_sum[b, h, i, j] * 0.25 - p_max[b, h, i]) * v[b, h // 2, j, e]; "
        "times exp(new - old) of -p_max[b, h, i]; at the end y[b, h, i, e] * (1 / p_sum2[b, h, i])",
        "work: 44880 FLOPs, 17952 other operations, 4488 calls",
        "least traffic: 7920 bytes",
    )


def test_what_is_gathered_or_bounded_or_mixed_is_said():
    made = program(
        """
        x: float32[2, 8]
        y[o,p] = sum[c,r](inside(x[c, p + r - 1], 0) * z[c,(p + r) // 2] * w[o,c,r])
        """,
        **{"o": 4, "p": 8, "c": 2, "r": 3},
    )
    found = describe(made).products[0]
    pixels, halves = (found.left if len(found.left.reads) == 2 else found.right).reads
    assert pixels.bounds == ("0 <= p + r - 1 < 8",)
    assert dict(halves.steps)["depth"] is None
    assert any("mixes p and r" in line for line in describe(made).lines)


def test_why_a_chain_needs_a_pass_more_is_said():
    lines = describe(rows("tanh_of_distance")).lines
    assert any(line.startswith("  y needs a pass more: tanh(") for line in lines)
    assert "over j: 3 reductions in 2 passes" in lines


@pytest.mark.parametrize("name", names())
def test_named_operators_need_one_pass_and_keep_rows_and_depth_apart(name):
    words = shlex.split(named(name).example)
    facts = describe(operator(name, **dict(word.split("=", 1) for word in words)))
    assert all(len(chain.passes) == 1 for chain in facts.chains)
    obstacles = [f.obstacle for p in facts.products for f in (p.left, p.right)]
    has_phases = name == "conv2d_transposed"  # no kernel computes it before it is cut into these
    assert any(obstacles) == has_phases
    assert bool(facts.products) == (
        "matmul" in name or name.startswith("conv") or name in ("bmm", "attention")
    )
    assert facts.work.bytes > 0


GROWING = {
    "a product of sums": "m[r] = max[j](x[r,j])\ny[r] = sum[j]("
    + " * ".join(["(x[r,j] + m[r] * w[j])"] * 25)
    + ")",
    "a high power": "m[r] = mean[j](x[r,j])\ny[r] = sum[j]("
    + " * ".join(["(x[r,j] - m[r])"] * 30)
    + ")",
    "maps that double": "z0[r,j] = x[r,j]\n"
    + "".join(f"z{i + 1}[r,j] = z{i}[r,j] * z{i}[r,j]\n" for i in range(59))
    + "y[r] = sum[j](z59[r,j] * w[j])",
    "results that double": "t0[r] = sum[j](x[r,j])\n"
    + "\n".join(f"t{i + 1}[r] = sum[j](x[r,j] * t{i}[r] * t{i}[r])" for i in range(59)),
    "maps in maps": "z0[r,j] = x[r,j]\n"
    + "".join(f"z{i + 1}[r,j] = {'tanh(' * 20}z{i}[r,j]{')' * 20}\n" for i in range(39))
    + "y[r] = sum[j](z39[r,j] * w[j])",
}


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_when_it_is_taken_apart_is_left_whole(name):
    text = "\n".join(describe(program(GROWING[name], r=40, j=50)).lines)
    assert len(text) < 20_000
