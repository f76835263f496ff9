import time
from itertools import chain, repeat

from experiments.cpu_matmul.timing import repeats_of


def test_a_slow_first_call_does_not_decide_how_many_are_a_sample():
    seconds = chain([0.1], repeat(0.001))
    assert repeats_of(lambda: time.sleep(next(seconds)), sample=0.05) > 2


def test_a_long_call_is_a_sample_by_itself_and_is_tried_as_seldom_as_may_be():
    made = []
    assert repeats_of(lambda: made.append(time.sleep(0.02)), sample=0.001) == 1
    assert len(made) == 1
