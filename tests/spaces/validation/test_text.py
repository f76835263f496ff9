import pytest

from tilewright.spaces.validation.text import is_plain, spelled_out


@pytest.mark.parametrize("text", ["", "Zürich", "relu(x + bias[n])", "a" * 1000])
def test_text_that_is_plain(text):
    assert is_plain(text)
    assert spelled_out(text) == text


@pytest.mark.parametrize("text", ["\x1b[31m", "a\nb", "\x07", "\ud800", "\u202e", "a" * 1001, 5])
def test_text_that_is_not(text):
    assert not is_plain(text)


def test_what_cannot_be_printed_is_spelled_out():
    assert spelled_out("a\tb\n\x1b]0;x\x07 \udcff\0é") == "a\tb\n\\x1b]0;x\\x07 \\udcff\\x00é"
    assert spelled_out(spelled_out("\x1b\\")) == spelled_out("\x1b\\")
