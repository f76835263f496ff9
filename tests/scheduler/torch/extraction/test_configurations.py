import json
import sys

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules

from tests.scheduler.cli.command import ask, one_line  # noqa: E402
from tilewright.scheduler.cli.app import run  # noqa: E402
from tilewright.scheduler.suites.suite import read_suite  # noqa: E402

LLAMA = {
    "model_type": "llama",
    "vocab_size": 112,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
VIT = {
    "model_type": "vit",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 32,
}
SERVED = ("--rows", "decode=2", "--rows", "prefill=8", "--context", "16", "--out", "suite.toml")


@pytest.fixture
def folder(here):
    (here / "llama.json").write_text(json.dumps(LLAMA))
    (here / "vit.json").write_text(json.dumps(VIT))
    return here


def shapes(section: str) -> list[list[int]]:
    """The shapes of the outputs of a section of the suite that was written."""
    members = read_suite("suite.toml").section(section).members
    return [sorted(member.workload.outputs[0].shape) for member in members]


def test_a_missing_package_is_one_line_with_the_command(here, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert run(["extract", "--config", "llama"]) == 2
    said = "--config needs transformers: pip install 'tilewright[models]'"
    assert said in one_line(capsys.readouterr().err)


def test_a_configuration_has_phases_and_shards(folder, capsys) -> None:
    pytest.importorskip("transformers")
    said = ask(capsys, "extract", "--config", "llama.json", *SERVED, "--tp", "2")
    assert "in it: 100.0 % of the FLOPs" in said
    assert "all_reduce: no rule translates it" in said
    suite = read_suite("suite.toml")
    assert set(suite.sections) == {"decode-tp2", "prefill-tp2"}
    assert suite.title == "llama"
    decode, prefill = shapes("decode-tp2"), shapes("prefill-tp2")
    assert [2, 48] in decode  # gate and up, of two sequences
    assert [2, 56] in decode  # the scores of the next token
    assert [8, 48] in prefill
    assert [8, 56] not in prefill  # the last token alone is scored


def test_a_configuration_is_extracted_for_training(folder, capsys) -> None:
    pytest.importorskip("transformers")
    said = ask(capsys, "extract", "--config", "vit.json", "--training", "--format", "json")
    places = [place for each in json.loads(said)["workloads"] for place in each["places"]]
    assert any(place.startswith("backward ") for place in places)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lama"], "has no model type 'lama'; did you mean llama?"),
        (["nothing.json"], "'nothing.json': No such file or directory; allowed: a config.json"),
        (["broken.json"], "'broken.json': it is no JSON"),
        (["list.json"], "'list.json' is no JSON object"),
        (["untyped.json"], "model_type=None is no text, such as llama"),
        (["class.json"], "transformers has no model 'os'"),
        (["vit.json", "--rows", "decode=1"], "vit has no phase decode; allowed: prefill"),
        (["llama.json", "--rows", "prefill=65"], "llama takes at most 64 tokens, not 65"),
        (["llama.json", "--tp", "3"], "tp=3 does not divide num_attention_heads of llama of 4"),
        (["vit.json", "--tp", "2"], "transformers has no plan of tensor parallelism for vit"),
    ],
)
def test_bad_input_is_one_line(words, said, folder, capsys) -> None:
    pytest.importorskip("transformers")
    (folder / "broken.json").write_text("{")
    (folder / "list.json").write_text("[]")
    (folder / "untyped.json").write_text("{}")
    (folder / "class.json").write_text(json.dumps(LLAMA | {"architectures": ["os"]}))
    assert run(["extract", "--config", *words]) == 2
    error = one_line(capsys.readouterr().err)
    assert said in error
    assert len(error) <= 212


def test_code_that_a_configuration_names_is_not_loaded(folder, capsys) -> None:
    pytest.importorskip("transformers")
    (folder / "evil.py").write_text("open('loaded', 'w').close()\nclass Model: pass\n")
    code = {"auto_map": {"AutoModelForCausalLM": "evil.Model", "AutoConfig": "evil.Model"}}
    (folder / "evil.json").write_text(json.dumps(LLAMA | code))
    ask(capsys, "extract", "--config", "evil.json", "--rows", "prefill=4")
    assert not (folder / "loaded").exists()


@pytest.mark.parametrize("words", [[], ["model.py:f", "--config", "llama"]])
def test_one_of_function_and_configuration_is_asked_for(words, here, capsys) -> None:
    assert run(["extract", *words]) == 2
    assert "MODEL.py:FUNCTION and --config" in one_line(capsys.readouterr().err)
