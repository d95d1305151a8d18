import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memeval.embedding import PREFIX_MODES, EmbeddingCache, register, unregister
from memeval.errors import HarnessError, InfrastructureError, InputError
from memeval.retrieval.results import MANIFEST, ROWS
from memeval.retrieval.sweep import EmbedderEntry, RetrievalSweep, load_retrieval, load_sweep, run_retrieval
from memeval.shipped import shipped

SIZE = 60
DOCUMENT_SHIFT = {"doc: ": 0, "ask: ": 1, "": 2}
QUESTION_SHIFT = {"ask: ": 0, "doc: ": 10, "": 20}


def planted(texts: list[str]) -> np.ndarray:
    """Puts every text on an axis of its own, moved by a step that depends on its prefix and on its role."""
    vectors = np.zeros((len(texts), SIZE))
    for row, text in zip(vectors, texts, strict=True):
        prefix, role, number = re.fullmatch(r"(.*?)(fact|question|dimension) ?(\d*)", text, re.S).groups()
        shift = DOCUMENT_SHIFT.get(prefix, 3) if role == "fact" else QUESTION_SHIFT.get(prefix, 30)
        row[(int(number or 0) + shift) % SIZE] = 1
    return vectors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a dataset whose question i is answered by fact i."""
    data = tmp_path / "numbers"
    data.mkdir()
    ids = [f"{i:02d}" for i in range(SIZE)]
    lines = {
        "corpus.jsonl": [json.dumps({"id": f"d{i}", "text": f"fact {int(i)}"}) for i in ids],
        "queries.jsonl": [json.dumps({"id": f"q{i}", "text": f"question {int(i)}"}) for i in ids],
        "qrels.tsv": [f"q{i}\t0\td{i}\t1" for i in ids],
    }
    for name, content in lines.items():
        (data / name).write_text("\n".join(content))
    return tmp_path


@pytest.fixture
def own() -> Iterator[None]:
    register("planted", planted, document_prefix="doc: ", query_prefix="ask: ")
    yield
    unregister("planted")


def write_sweep(folder: Path, text: str = "") -> Path:
    path = folder / "sweep.yaml"
    path.write_text(text or "retrieval: mine\ndataset: numbers\nembedders: [planted]\nk: [1, 5]\n")
    return path


@pytest.mark.usefixtures("own")
def test_every_prefix_mode_sends_what_it_says_from_the_file_to_the_ranking(folder: Path) -> None:
    frames = run_retrieval(write_sweep(folder), folder / "out", cache=None).load()
    steps = {"card": 0, "none": 18, "swapped": 9, "query-only": -2, "document-only": 20, "wrong": 27}
    assert set(steps) == set(PREFIX_MODES)
    for mode, step in steps.items():
        rows = frames.queries[frames.queries["prefix"] == mode]
        assert [top[0] for top in rows["top"]] == [f"d{(i + step) % SIZE:02d}" for i in range(SIZE)], mode
        assert rows["recall@1"].mean() == (mode == "card")
    cells = frames.cells.set_index("prefix")
    assert (cells.loc["card", "document_prefix"], cells.loc["card", "query_prefix"]) == ("doc: ", "ask: ")
    assert (cells.loc["swapped", "document_prefix"], cells.loc["swapped", "query_prefix"]) == (
        "ask: ",
        "doc: ",
    )
    assert (cells.loc["query-only", "document_prefix"], cells.loc["query-only", "query_prefix"]) == (
        "",
        "ask: ",
    )
    assert (cells.loc["none", "document_prefix"], cells.loc["none", "query_prefix"]) == ("", "")
    assert (cells["identical_to"] == "").all()
    assert cells["registered"].all()


@pytest.mark.usefixtures("own")
def test_each_distinct_text_is_embedded_once_and_a_second_run_embeds_nothing(folder: Path) -> None:
    cache = EmbeddingCache(folder / "cache.sqlite")
    sweep = write_sweep(folder)
    first = run_retrieval(sweep, folder / "out", cache=cache)
    rows = (folder / "out" / ROWS).read_bytes()
    # 4 ways to write a document (doc:, ask:, none, wrong) and 4 to write a question.
    assert first.manifest["encoded"] == 8 * SIZE == cache.count()
    second = run_retrieval(sweep, folder / "out", cache=cache)
    assert second.manifest["encoded"] == 0
    assert (folder / "out" / ROWS).read_bytes() == rows
    assert run_retrieval(sweep, folder / "two", cache=None).manifest["encoded"] == 8 * SIZE
    cache.close()


def test_modes_that_send_the_same_strings_are_measured_once_and_marked(tmp_path: Path) -> None:
    sweep = RetrievalSweep(retrieval="h", embedders=[EmbedderEntry(name="hash")])
    frames = run_retrieval(sweep, tmp_path / "out", cache=None).load()
    same = dict(zip(frames.cells["prefix"], frames.cells["identical_to"], strict=True))
    alike = ("none", "swapped", "query-only", "document-only")
    assert same == {"card": "", **dict.fromkeys(alike, "card"), "wrong": ""}
    assert set(frames.queries["prefix"]) == {"card", "wrong"}
    assert frames.cells.loc[frames.cells["identical_to"] != "", "ndcg@10"].isna().all()


def test_questions_without_an_answer_are_scored_apart(tmp_path: Path) -> None:
    sweep = RetrievalSweep(
        retrieval="h", embedders=[EmbedderEntry(name="hash", prefix="card")], min_score=0.2
    )
    frames = run_retrieval(sweep, tmp_path / "out", cache=None).load()
    (cell,) = frames.cells.to_dict("records")
    without = frames.queries[~frames.queries["answerable"]]
    assert len(without) == 10
    assert without[["recall@5", "hit@1", "mrr@10", "ndcg@10"]].isna().all(axis=None)
    assert cell["false_recall"] == (without["top_score"] >= 0.2).mean()
    assert cell["ndcg@10"] == pytest.approx(frames.queries["ndcg@10"].mean())
    assert 0 < cell["auroc"] < 1


def test_a_mode_that_an_engine_cannot_do_is_listed_with_its_reason(folder: Path) -> None:
    register("engine", embed=lambda texts, purpose: planted([f"{purpose}: {text}" for text in texts]))
    try:
        path = write_sweep(folder, "retrieval: e\ndataset: numbers\nembedders: [engine]\nk: [1]\n")
        frames = run_retrieval(path, folder / "out", cache=None).load()
        path.write_text("retrieval: e\ndataset: numbers\nembedders: [engine]\nprefixes: [none]\n")
        with pytest.raises(
            InputError, match=r"nothing in the sweep 'e' can be measured.*writes its own prefixes"
        ):
            run_retrieval(path, folder / "none")
    finally:
        unregister("engine")
    reasons = dict(zip(frames.cells["prefix"], frames.cells["unsupported"], strict=True))
    assert {mode for mode, reason in reasons.items() if not reason} == {"card", "swapped"}
    assert "writes its own prefixes" in reasons["none"]
    assert set(frames.queries["prefix"]) == {"card", "swapped"}
    assert "written by the engine for a query" in frames.cells.set_index("prefix").loc["card", "query_prefix"]
    assert not (folder / "none").exists()


def test_a_python_file_beside_the_sweep_registers_an_embedder(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import numpy as np\nfrom memeval.embedding import register\n"
        "@register('letters')\ndef letters(texts):\n"
        "    return np.array([[1 + t.count(c) for c in 'abc0123456789'] for t in texts])\n"
    )
    text = "retrieval: l\ndataset: numbers\nembedders: [{name: letters, prefix: card}]\npython: mine.py\n"
    try:
        assert run_retrieval(write_sweep(folder, text), folder / "out", cache=None).manifest["rows"] == SIZE
    finally:
        unregister("letters")


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("x = 1\n1 / 0\n", HarnessError, "mine.py, line 2)"),
        ("x = 1\n\nx = (\n", HarnessError, "mine.py, line 3)"),
        (None, InputError, "mine.py"),
        (
            "from memeval.embedding import register\nregister('letters', lambda texts: [[1.0]])\n",
            HarnessError,
            "letters, prefix card: your embedder 'letters'",
        ),
    ],
)
def test_a_bug_in_a_persons_own_file_is_told_with_cell_or_line_and_nothing_is_written(
    folder: Path, code: str | None, error: type[Exception], message: str
) -> None:
    if code is not None:
        (folder / "mine.py").write_text(code)
    path = write_sweep(
        folder, "retrieval: l\ndataset: numbers\nembedders: [letters]\nprefixes: [card]\npython: mine.py\n"
    )
    try:
        with pytest.raises(error) as caught:
            run_retrieval(path, folder / "out", cache=None)
    finally:
        if code and "register" in code:
            unregister("letters")
    assert message in str(caught.value)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "retrieval: x\nembeders: [hash]\n",
            "sweep.yaml:2: unknown key 'embeders'; did you mean 'embedders'?",
        ),
        ("retrieval: x\nembedders: [hsh]\n", "no embedder 'hsh'; did you mean 'hash'?"),
        ("retrieval: x\nembedders: [hash]\nprefixes: [cart]\n", "sweep.yaml:3: prefixes.1: should be 'card'"),
        (
            "retrieval: x\nembedders:\n  - {name: hash, dim: 8}\n",
            "sweep.yaml:3: unknown key 'embedders.1.dim'; did",
        ),
        (
            "retrieval: x\nembedders: [hash]\nk: [0]\n",
            "sweep.yaml:3: k.1: should be greater than or equal to 1",
        ),
        ("retrieval: x\nembedders: []\n", "sweep.yaml:2: embedders: List should have at least 1 item"),
        ("retrieval: x\nembedders: [hash, hash]\n", "the embedder hash with card is listed twice"),
        ("retrieval: x\nembedders: [hash]\ndataset: personl60\n", "no dataset 'personl60'"),
        ("retrieval: x\nembedders: [{name: hash, dims: 8}]\n", "hash cannot be cut to 8 dimensions"),
    ],
)
def test_a_wrong_sweep_file_is_one_sentence_and_nothing_is_written(
    folder: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        run_retrieval(write_sweep(folder, text), folder / "out", cache=None)
    assert message in str(caught.value)
    assert not (folder / "out").exists()


@pytest.mark.usefixtures("own")
def test_a_folder_of_another_sweep_is_refused_and_left_alone(folder: Path) -> None:
    run_retrieval(write_sweep(folder), folder / "out", cache=None)
    before = {path: path.read_bytes() for path in (folder / "out").iterdir()}
    assert sorted(path.name for path in before) == [MANIFEST, ROWS]
    other = write_sweep(folder, "retrieval: other\ndataset: numbers\nembedders: [planted]\n")
    with pytest.raises(InputError, match="holds the sweep 'mine', not 'other'"):
        run_retrieval(other, folder / "out", cache=None)
    assert {path: path.read_bytes() for path in (folder / "out").iterdir()} == before


@pytest.mark.usefixtures("own")
def test_what_cannot_be_written_whole_leaves_the_old_results(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = write_sweep(folder)
    run_retrieval(sweep, folder / "out", cache=None)
    before = {path: path.read_bytes() for path in (folder / "out").iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memeval.evaluation.results.os.fsync", full)
    with pytest.raises(InfrastructureError, match="results cannot be written: No space left on device"):
        run_retrieval(sweep, folder / "out", cache=None)
    assert {path: path.read_bytes() for path in (folder / "out").iterdir()} == before


@pytest.mark.usefixtures("own")
def test_results_that_are_not_whole_are_refused_when_read(folder: Path) -> None:
    run_retrieval(write_sweep(folder), folder / "out", cache=None)
    assert len(load_retrieval(folder / "out" / ROWS).queries) == 6 * SIZE
    shutil.copytree(folder / "out", folder / "cut")
    (folder / "cut" / ROWS).write_bytes((folder / "out" / ROWS).read_bytes()[:-10])
    with pytest.raises(InputError, match=r"not the rows that retrieval\.json speaks of"):
        load_retrieval(folder / "cut")
    (folder / "cut" / MANIFEST).write_text("{")
    with pytest.raises(InputError, match="not a manifest"):
        load_retrieval(folder / "cut")
    with pytest.raises(InputError, match="holds no retrieval run"):
        load_retrieval(folder)


@pytest.mark.usefixtures("own")
def test_progress_is_told_cell_by_cell(folder: Path) -> None:
    told: list[tuple[int, int, str]] = []
    run_retrieval(write_sweep(folder), folder / "out", lambda *step: told.append(step), cache=None)
    assert told[0] == (0, 6, "planted card")
    assert told[-1] == (6, 6, "")
    assert len(told) == 7


def test_the_manifest_says_what_is_needed_to_judge_a_run(tmp_path: Path) -> None:
    sweep = RetrievalSweep(retrieval="h", embedders=[EmbedderEntry(name="hash")])
    manifest = run_retrieval(sweep, tmp_path / "out", cache=None).manifest
    assert manifest["dataset"]["answerable"] == 50
    assert re.fullmatch(r"[0-9a-f]{64}", manifest["dataset"]["digest"])
    assert {"python", "memeval", "numpy"} <= manifest["versions"].keys()
    (card,) = [cell for cell in manifest["cells"] if cell["prefix"] == "card"]
    assert {"digest", "fingerprint", "dim", "registered", "encoded", "document_prefix"} <= card.keys()


def test_the_shipped_sweep_covers_both_embedders_and_all_modes() -> None:
    sweep = load_sweep(shipped("scenarios") / "retrieval" / "default.yaml")
    assert [entry.name for entry in sweep.embedders] == ["bundled:minilm", "hash"]
    assert sweep.prefixes == list(PREFIX_MODES)
    assert sweep.k == [1, 3, 5, 10]
