"""Scores of a row that are read by their place."""

import pytest

from tests.spaces.chained_programs import FORMS, made
from tests.spaces.cpu.chained.test_template import complaints, computation, kernels
from tilewright.spaces.derivation.chained.gathered_scores import with_gathered_scores
from tilewright.spaces.derivation.chained.view import Chained, chained_of

LOGITS = "l: int32[i](index < 53)\nz[i,j] = sum[d](x[i,d] * w[j,d])\n"
LOSS = LOGITS + "y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]"


def test_a_picked_score_is_a_sum_of_the_chain():
    picked, spelled = chained_of(made(LOSS)), chained_of(made(FORMS["loss over a vocabulary"]))
    assert isinstance(picked, Chained)
    assert isinstance(spelled, Chained)
    elements = [[str(r.element) for r in each.scalars] for each in (picked, spelled)]
    assert sorted(elements[0]) == sorted(elements[1])


@pytest.mark.parametrize(
    "text",
    [
        LOGITS + "p[i] = z[i,l[i]]\ny[i] = logsumexp[j](z[i,j]) - p[i]",
        LOGITS + "u[i,j] = z[i,j]\ny[i] = logsumexp[j](u[i,j]) - u[i,l[i]]",
    ],
)
def test_a_map_may_pick_a_score_or_be_picked_from(text):
    assert made(text).digest == made(LOSS).digest
    found, plain = chained_of(made(text)), chained_of(made(LOSS))
    assert isinstance(found, Chained)
    assert isinstance(plain, Chained)
    assert [o.value for o in found.outputs] == [o.value for o in plain.outputs]


@pytest.mark.parametrize(
    "text",
    [
        LOSS,
        LOGITS + "y[i] = logsumexp[j](z[i,j]) - z[i,l[i]] - 2 * z[i,52 - l[i]] * z[i,l[i]]",
        LOGITS.split("\n", 1)[1] + "m[i] = max[j](z[i,j] - z[i,0])\ny[i] = z[i,7] * m[i]\n-> y, m",
    ],
)
def test_they_agree_with_their_programs(text, tmp_path):
    w = computation(text)
    assert complaints(w, kernels(w, 4), tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        FORMS["loss over a vocabulary"],
        LOGITS + "y[i] = logsumexp[j](z[i,j]) - inside(z[i,l[i] + 1], 0)",
        LOGITS + "y[i] = logsumexp[j](z[i,j]) - z[i // 2,l[i]]",
        "where j < 50\n" + LOSS,
    ],
)
def test_other_reads_stay(text):
    program = made(text)
    assert with_gathered_scores(program, next(s for s in program.stages if s.reducer)) is program
