"""The command line: what people and scripts see of it."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from measure.database import Database
from scheduler.cli.app import run
from scheduler.interrupt import Interrupt
from spaces.operators import workload
from spaces.registry import space_for
from spaces.schedule import Schedule
from spaces.target import target_from_json

SMALL = ("matmul", "m=64", "n=64", "k=64")
COMMAND = (sys.executable, "-m", "tilewright")
ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    """A cache of our own, so that nothing left by other runs decides a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def start(*arguments, **options):
    environment = os.environ | {"PYTHONPATH": PATHS}
    return subprocess.Popen([*COMMAND, *arguments], env=environment, text=True, **options)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A database that ``tilewright tune`` filled, and what it said."""
    folder = tmp_path_factory.mktemp("tuned")
    said = []
    for words in (SMALL, ("matmul", "m=96", "n=64", "k=64", "epilogue=relu(x + bias[n])")):
        budget = ("--trials", "16", "--seconds", "100", "--db", "tuning.db")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with start("tune", *words, *budget, cwd=folder, **pipes) as process:
            out, err = process.communicate(timeout=150)
        assert (process.returncode, err) == (0, "")
        said.append([json.loads(line) for line in out.splitlines()])
    return folder / "tuning.db", said


def ask(capsys, *arguments) -> str:
    capsys.readouterr()
    assert run(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr().out


# -- tune ----------------------------------------------------------------------------------


def test_tune_reports_every_trial_and_the_outcome(tuned):
    for events in tuned[1]:
        trials = [event for event in events if event["event"] == "trial"]
        assert [event["trials"] for event in trials] == list(range(1, 17))
        result = events[-1]
        assert (result["event"], result["stopped"], result["trials"]) == ("result", "trials", 16)
        best = result["best"]
        assert best["latency_s"] > 0
        assert best["gflops"] > 0
        assert best["of_peak"] > 0
        assert best["over_numpy"] > 0
        assert result["failures"] == trials[-1]["failures"]


def test_tune_keeps_what_it_reports(tuned):
    path, (events, _) = tuned
    with Database(path, create=False) as database:
        target = target_from_json(events[-1]["target"])
        work = workload("matmul", m=64, n=64, k=64)
        assert database.trials(work, target) == 16
        best = database.best(work, target)
    assert best.schedule == Schedule.from_json(events[-1]["schedule"])


def test_tune_shows_a_live_table_on_a_terminal(tmp_path):
    terminal, inside = pty.openpty()
    budget = ("--trials", "8", "--seconds", "100", "--db", str(tmp_path / "tuning.db"))
    environment = os.environ | {"PYTHONPATH": PATHS, "TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(
        [*COMMAND, "tune", *SMALL, *budget], env=environment, stdout=inside
    ) as process:
        os.close(inside)
        shown = b""
        try:
            while chunk := os.read(terminal, 1 << 16):
                shown += chunk
        except OSError:  # the other end is closed
            pass
    os.close(terminal)
    assert process.returncode == 0
    for words in ("8 of 8", "failures", "GFLOP/s", "of measured peak", "over NumPy's BLAS", "left"):
        assert words in shown.decode(), shown.decode()


def test_interrupted_tuning_ends_with_the_best_so_far(tmp_path):
    budget = ("--trials", "100000", "--seconds", "100", "--db", "tuning.db")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("tune", *SMALL, *budget, cwd=tmp_path, **pipes) as process:
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert err == "tilewright: interrupted; this is the best so far\n"
    result = json.loads(out.splitlines()[-1])
    assert (result["event"], result["stopped"]) == ("result", "interrupted")
    assert result["best"]["latency_s"] <= first["latency_s"]
    with Database(tmp_path / "tuning.db", create=False) as database:
        assert len(list(database.records())) >= result["trials"]


def test_tuning_for_a_gpu_that_is_not_here_makes_no_database(tmp_path, capsys):
    path = tmp_path / "tuning.db"
    assert run(["tune", *SMALL, "--target", "cuda:sm_80", "--db", str(path)]) == 2
    assert "GPU" in capsys.readouterr().err
    assert not path.exists()


def test_the_first_interrupt_is_noted_and_the_second_raises():
    before = signal.getsignal(signal.SIGINT)
    with Interrupt() as interrupt:
        interrupt.check()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interrupt.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


# -- query, list, export, import -----------------------------------------------------------


def test_query_measured(tuned, capsys):
    path, (events, _) = tuned
    answer = json.loads(ask(capsys, "query", *SMALL, "--db", str(path), "--format", "json"))
    assert answer["workload"] == workload("matmul", m=64, n=64, k=64).to_json()
    assert answer["target"] == events[-1]["target"]
    assert answer["schedule"] == events[-1]["schedule"]
    assert answer["latency_s"] == events[-1]["best"]["latency_s"]
    assert answer["gflops"] == pytest.approx(2 * 64**3 / answer["latency_s"] / 1e9)
    assert (answer["provenance"], answer["trials"]) == ("measured", 16)


@pytest.mark.parametrize(
    ("words", "threads", "provenance"),
    [(("m=80", "n=64", "k=64"), "1", "transferred"), (SMALL[1:], "2", "predicted")],
)
def test_query_what_was_not_measured(tuned, capsys, words, threads, provenance):
    if int(threads) > (os.cpu_count() or 1):
        pytest.skip("needs two cores")
    options = ("--threads", threads, "--db", str(tuned[0]), "--format", "json")
    answer = json.loads(ask(capsys, "query", "matmul", *words, *options))
    assert (answer["provenance"], answer["trials"]) == (provenance, 0)
    work = workload("matmul", **dict(word.split("=") for word in words))
    schedule = Schedule.from_json(answer["schedule"])
    assert schedule in space_for(work, target_from_json(answer["target"]))


def test_query_prints_source(tuned, capsys):
    path = str(tuned[0])
    text = ask(capsys, "query", *SMALL, "--db", path, "--source")
    assert "measured" in text
    answer = json.loads(ask(capsys, "query", *SMALL, "--db", path, "--source", "--format", "json"))
    assert answer["source"] in text
    assert "tw_runtime" in answer["source"]


def test_query_without_a_database_predicts_and_makes_none(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "predicted" in ask(capsys, "query", *SMALL)
    assert list(tmp_path.iterdir()) == []


def test_list(tuned, capsys):
    text = ask(capsys, "list", "--db", str(tuned[0]))
    (line,) = (line for line in text.splitlines() if "m=64" in line)
    assert "16" in line.split()
    assert line.split()[-2] in ("us", "ms") or line.split()[-3] in ("us", "ms")
    assert 'epilogue="relu(x + bias[n])"' in text


def test_export_and_import_round_trip(tuned, tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("out.jsonl", "again.jsonl")]
    other = str(tmp_path / "other.db")
    ask(capsys, "export", "--db", str(tuned[0]), files[0])
    count = len(Path(files[0]).read_text().splitlines()) - 1
    assert f"{count} new records" in ask(capsys, "import", files[0], "--db", other)
    assert "0 new records" in ask(capsys, "import", files[0], "--db", other)
    ask(capsys, "export", "--db", other, files[1])
    assert Path(files[1]).read_bytes() == Path(files[0]).read_bytes()
    question = ("query", *SMALL, "--format", "json", "--db")
    assert ask(capsys, *question, other) == ask(capsys, *question, str(tuned[0]))


def test_import_reports_a_torn_line(tuned, tmp_path, capsys):
    path = tmp_path / "torn.jsonl"
    ask(capsys, "export", "--db", str(tuned[0]), str(path))
    path.write_bytes(path.read_bytes()[:-20])
    assert run(["import", str(path), "--db", str(tmp_path / "new.db")]) == 0
    assert "is torn and was left out" in capsys.readouterr().err


# -- train, evaluate, doctor ---------------------------------------------------------------


def test_train_and_evaluate(tuned, tmp_path, capsys):
    model = tmp_path / "model.ubj"
    assert "32 schedules of 2 workloads" in ask(
        capsys, "train", "--db", str(tuned[0]), "--out", str(model)
    )
    text = ask(capsys, "evaluate", str(model), "--db", str(tuned[0]))
    for word in ("pairwise", "top-1", "top-5", "recall@1%", "left out", "m=64", "m=96"):
        assert word in text


def test_doctor(capsys, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    text = ask(capsys, "doctor")
    for word in ("compiler", "isa", "caches", "float32", "GB/s", "numpy's BLAS", "ray", "cache"):
        assert word in text
    (line,) = (line for line in text.splitlines() if "OPENBLAS_CORETYPE" in line)
    assert "warning" in line


def test_doctor_without_a_compiler_says_so(capsys, monkeypatch):
    monkeypatch.setenv("CC", "/nowhere/gcc")
    assert run(["doctor"]) == 2
    said = capsys.readouterr()
    assert "numpy's BLAS" in said.out
    assert "no C compiler found" in one_line(said.err)


def test_doctor_without_a_cache_says_so(here, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "notes.txt"))
    assert run(["doctor"]) == 2
    said = capsys.readouterr()
    assert "numpy's BLAS" in said.out
    assert "notes.txt" in one_line(said.err)


# -- bad input -----------------------------------------------------------------------------


def one_line(text: str) -> str:
    assert text.startswith("tilewright: ")
    assert text.count("\n") == 1
    assert text.endswith("\n")
    return text


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file that is nothing of ours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("buy milk\n" * 999)
    return tmp_path


@pytest.mark.parametrize("command", ["tune", "query"])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("conv", "m=1"), "unknown operator 'conv'; known: matmul"),
        (("matmul", "m=1", "n=2"), "missing: k"),
        (("matmul", "m=0", "n=2", "k=3"), "m=0 is out of range"),
        (("matmul", "m=1", "n=-2", "k=3"), "n=-2 is out of range"),
        (("matmul", "m=1", "n=2", "k=3.5"), "k='3.5' is not a whole number"),
        (("matmul", "m=1", "n=2", "k="), "k='' is not a whole number"),
        (("matmul", "m=1", "n=2", "k=3", "dtype=float31"), "unknown dtype 'float31'"),
        (("matmul", "m=1", "n=2", "k=3", "a=diagonal"), "layout a='diagonal' is unknown"),
        (("matmul", "m=1", "n=2", "k=3", "colour=red"), "no parameter 'colour'"),
        (("matmul", "m=1", "n=2", "k=3", "operator=x"), "no parameter 'operator'"),
        (("matmul", "m=1", "n=2", "k=3", "m=4"), "'m' is given twice"),
        (("matmul", "m=1", "n=2", "k=3", "relu"), "'relu' is not a parameter"),
        (("matmul", "m=1", "n=2", "k=3", "epilogue=relu(x"), "epilogue"),
        (("matmul", "m=1", "n=2", "k=3", "epilogue=__import__('os')"), "epilogue"),
        ((*SMALL, "--target", "tpu"), "unknown target 'tpu'"),
        ((*SMALL, "--target", "cuda:sm_12"), "sm_12"),
        (
            (*SMALL, "--target", "cuda:sm_90a", "--threads", "2"),
            "threads=2 is for the target cpu",
        ),
        ((*SMALL, "--threads", "0"), "threads=0 is out of range"),
        ((*SMALL, "--threads", "100000"), "threads=100000 is out of range"),
        ((*SMALL, "--threads", "two"), "'--threads'"),
        ((*SMALL, "--speed"), "No such option: --speed"),
        ((*SMALL, "--db", "notes.txt"), "notes.txt cannot be used"),
        ((*SMALL, "--db", "."), "cannot be used"),
        ((*SMALL, "--db", "mysql://host/x"), "mysql"),
        ((), "Missing argument"),
    ],
)
def test_bad_requests(here, capsys, command, words, says):
    assert run([command, *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert says in one_line(said.err)
    assert [path.name for path in here.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tune", *SMALL, "--trials", "0"), "'--trials'"),
        (("tune", *SMALL, "--seconds", "-1"), "'--seconds'"),
        (("tune", "matmul", "m=9999999", "n=9999999", "k=1"), "GiB of memory"),
        (("tune", *SMALL, "--db", "no/folder/x.db"), "cannot be used"),
        (("query", *SMALL, "--format", "xml"), "'--format'"),
        (("list", "--db", "missing.db"), "no database at missing.db"),
        (("list", "--db", "notes.txt"), "notes.txt cannot be used"),
        (("export", "--db", "missing.db", "out.jsonl"), "no database at missing.db"),
        (("import", "missing.jsonl"), "no file missing.jsonl"),
        (("train", "--db", "missing.db"), "no database at missing.db"),
        (("train", "--db", "notes.txt"), "notes.txt cannot be used"),
        (("evaluate", "missing.ubj", "--db", "missing.db"), "missing"),
        (("doctor", "--threads", "100000"), "threads=100000"),
        (("dance",), "dance"),
    ],
)
def test_bad_commands(here, capsys, arguments, says):
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert says in one_line(said.err)
    assert [path.name for path in here.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("command", ["tune", "query"])
def test_no_compiler(here, capsys, monkeypatch, command):
    monkeypatch.setenv("CC", "/nowhere/gcc")
    assert run([command, *SMALL]) == 2
    assert "no C compiler found (looked for CC='/nowhere/gcc')" in one_line(capsys.readouterr().err)


def test_too_little_to_train_on(here, capsys):
    Database(here / "tuning.db").close()
    assert run(["train"]) == 2
    assert "0 measured schedules; training needs at least 8" in one_line(capsys.readouterr().err)


def test_models_that_are_not_ours(tuned, here, capsys):
    db = str(tuned[0])
    (here / "notes.txt.json").write_text("{}")
    assert run(["evaluate", "notes.txt", "--db", db]) == 2
    assert "not a Tilewright model" in one_line(capsys.readouterr().err)
    assert run(["evaluate", "missing.ubj", "--db", db]) == 2
    assert "cannot read model missing.ubj" in one_line(capsys.readouterr().err)
    assert run(["train", "--db", db, "--out", "no/folder/model.ubj"]) == 2
    assert "cannot write model" in one_line(capsys.readouterr().err)


def test_unwritable_and_foreign_files(tuned, here, capsys):
    assert run(["export", "--db", str(tuned[0]), "no/folder/out.jsonl"]) == 2
    assert "cannot write" in one_line(capsys.readouterr().err)
    assert run(["import", "notes.txt", "--db", "new.db"]) == 2
    assert "notes.txt is not an export" in one_line(capsys.readouterr().err)


def test_a_real_process_ends_the_same_way(here):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start("tune", "matmul", "m=0", "n=1", "k=1", cwd=here, **pipes) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "m=0 is out of range" in one_line(err)
