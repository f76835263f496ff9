"""Every output of a kernel is judged, between guards and on poison of its own."""

import pytest

from tests.measure.cpu.c_kernels import candidate, measured
from tilewright.measure.records.measurement import ErrorKind
from tilewright.spaces.operators import workload

WORK = workload(
    "y[r,c] = x[r,c] * 2 + b[c]\ns[r] = sum[c](x[r,c])\ni[r] = argmax[c](x[r,c])\n-> y, s, i",
    r=33,
    c=17,
)
RIGHT = """
  const float *x = buffers[0], *b = buffers[1];
  float *y = buffers[2], *s = buffers[3];
  int *i = buffers[4];
  for (int r = 0; r < 33; r++) {
    s[r] = i[r] = 0;
    for (int c = 0; c < 17; c++) {
      float value = x[r * 17 + c];
      y[r * 17 + c] = value * 2 + b[c];
      s[r] += value;
      if (value > x[r * 17 + i[r]]) i[r] = c;
    }
  }
"""
MISTAKES = {
    "one element of the first": ("y[40] += 0.1;", ErrorKind.WRONG, "y[2, 6] is "),
    "one element of the second": ("s[32] += 0.1;", ErrorKind.WRONG, "s[32] is "),
    "one place": ("i[7] = (i[7] + 1) % 17;", ErrorKind.WRONG, "i[7] is "),
    "past the second": ("s[33] = 1;", ErrorKind.OUT_OF_BOUNDS, "s 1 bytes past its end"),
    "before the third": ("i[-1] = 1;", ErrorKind.OUT_OF_BOUNDS, "i 4 bytes before its start"),
    "an input": ("((float *)x)[0] = 1;", ErrorKind.OUT_OF_BOUNDS, "wrote to x, which is read-only"),
}


def test_a_right_kernel_is_measured():
    [found] = measured([candidate("right", RIGHT, WORK)])
    assert found.ok, found.error_text
    assert found.samples


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_output_and_index(name):
    statement, kind, text = MISTAKES[name]
    [found] = measured([candidate("wrong", RIGHT + statement, WORK)])
    assert found.error_kind is kind
    assert text in found.error_text


def test_an_output_that_is_not_written_is_told():
    unwritten = RIGHT.replace("s[r] = i[r] = 0;", "i[r] = 0;").replace("s[r] += value;", "")
    [found] = measured([candidate("unwritten", unwritten, WORK)])
    assert found.error_kind is ErrorKind.WRONG
    assert "s[0] left unwritten, or read (33 of 33 elements wrong, call 1)" in found.error_text


def test_a_slice_is_read_at_its_leading_dimension():
    text = "x: float32[4,6](leading=9)\ny[r,c] = x[r,c] + 1\ny: float32[4,6](leading=7)"
    work = workload(text, r=4, c=6)
    body = """
  const float *x = buffers[0];
  float *y = buffers[1];
  for (int i = 0; i < 24; i++) y[i / 6 * 7 + i % 6] = x[i / 6 * {} + i % 6] + 1;
"""
    right, wrong = (candidate(f"of{n}", body.replace("{}", str(n)), work) for n in (9, 6))
    found = measured([right, wrong])
    assert found[0].ok, found[0].error_text
    assert found[1].error_kind is ErrorKind.WRONG
    assert "y[" in found[1].error_text
