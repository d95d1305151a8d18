import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from memeval.errors import InputError
from memeval.retrieval.datasets import UNANSWERABLE, find_dataset, load_dataset

CORPUS = '{"id": "a", "text": "Ann likes tea.", "kind": "fact"}\n\n{"id": "b", "text": "Bob likes coffee."}\n'
QUERIES = '{"id": "q1", "text": "Who likes tea?"}\n{"id": "q2", "text": "Why?", "category": "unanswerable"}\n'


def dataset(folder: Path, corpus: str = CORPUS, queries: str = QUERIES, qrels: str = "q1 0 a 1\n") -> Path:
    for name, content in (("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels.tsv", qrels)):
        (folder / name).write_text(content)
    return folder


def test_a_dataset_is_read_with_its_grades(tmp_path: Path) -> None:
    found = load_dataset(dataset(tmp_path, qrels="q1 0 b 2\nq1\t0\ta\t1\n"))
    assert [d.id for d in found.documents] == ["a", "b"]
    assert found.documents[0].label == "fact"
    np.testing.assert_array_equal(found.grades(), [[1, 2], [0, 0]])


def test_the_digest_is_of_the_content_and_not_of_its_spelling(tmp_path: Path) -> None:
    one = load_dataset(dataset(tmp_path, qrels="q1 0 a 1\nq1 0 b 1\n")).digest
    two = load_dataset(
        dataset(tmp_path, CORPUS.replace("\n\n", "\r\n"), qrels="q1\t0\tb\t1\nq1 0 a 1")
    ).digest
    other = load_dataset(dataset(tmp_path, CORPUS.replace("tea", "cocoa"))).digest
    assert one == two != other


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"corpus": ""}, "corpus.jsonl: empty"),
        ({"queries": "\n"}, "queries.jsonl: empty"),
        ({"qrels": ""}, "qrels.tsv: empty"),
        ({"corpus": CORPUS + "{oops\n"}, "corpus.jsonl:4: not JSON"),
        ({"corpus": "[1]\n"}, "corpus.jsonl:1: must be an object"),
        ({"corpus": '{"id": "a", "txt": "x"}'}, "corpus.jsonl:1: unknown key 'txt'; did you mean 'text'?"),
        ({"corpus": '{"id": 1, "text": "x"}'}, "corpus.jsonl:1: 'id' must be text, not 1"),
        ({"corpus": '{"id": "a", "text": " "}'}, "corpus.jsonl:1: 'text' is missing or empty"),
        ({"corpus": CORPUS + CORPUS}, "corpus.jsonl:4: id 'a' stands twice, first on line 1"),
        ({"queries": QUERIES + QUERIES}, "queries.jsonl:3: id 'q1' stands twice, first on line 1"),
        ({"qrels": "q1 0 a 1\nq1 0 c 1"}, "qrels.tsv:2: there is no memory 'c'"),
        ({"qrels": "q11 0 a 1"}, "qrels.tsv:1: there is no question 'q11'; did you mean 'q1'?"),
        ({"qrels": "q1 0 a 1\nq1 0 a 1"}, "qrels.tsv:2: 'q1' and 'a' are judged twice"),
        ({"qrels": "q1 a 1"}, "qrels.tsv:1: wants four columns"),
        ({"qrels": "q1 0 a -1"}, "qrels.tsv:1: wants four columns"),
        ({"qrels": "q1 0 a 0"}, "queries.jsonl:1: 'q1' has no relevant memory in qrels.tsv"),
        ({"qrels": "q1 0 a 1\nq2 0 a 1"}, "queries.jsonl:2: 'q2' is unanswerable and has a relevant memory"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(
    tmp_path: Path, parts: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_dataset(dataset(tmp_path, **parts))
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"corpus\.jsonl: cannot be read"):
        load_dataset(tmp_path)


def test_a_dataset_is_found_beside_the_sweep_or_among_those_shipped(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    assert find_dataset("own", tmp_path) == tmp_path / "own"
    assert find_dataset("personal60", tmp_path).name == "personal60"
    with pytest.raises(InputError, match="did you mean 'personal60'"):
        find_dataset("personal6", tmp_path)


def test_personal60_holds_what_it_says() -> None:
    found = load_dataset(find_dataset("personal60"))
    categories = Counter(query.label for query in found.queries)
    assert (len(found.documents), len(found.queries), categories[UNANSWERABLE]) == (60, 60, 10)
    relevant = (found.grades() > 0).sum(axis=1)
    assert Counter(relevant.tolist()) == {0: 10, 1: 44, 2: 6}
    assert len({document.text for document in found.documents}) == 60
    assert min(count for name, count in categories.items() if name != UNANSWERABLE) >= 5


def test_personal60_is_neither_solved_by_shared_words_nor_without_any() -> None:
    found = load_dataset(find_dataset("personal60"))
    bags = [set(re.findall(r"\w+", document.text.lower())) for document in found.documents]
    rarity = {word: np.log(60 / sum(word in bag for bag in bags)) for bag in bags for word in bag}
    grades, right = found.grades(), 0
    for query, judged in zip(found.queries, grades, strict=True):
        words = set(re.findall(r"\w+", query.text.lower()))
        scores = [sum(rarity[word] for word in words & bag) for bag in bags]
        right += bool(judged[int(np.argmax(scores))])
    assert 15 <= right <= 35
