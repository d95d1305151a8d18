"""Long texts in passages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storing import Tiny, record

from memeval.errors import InputError
from memeval.memory.chunking import embedded, passages, pieces

LETTERS = "".join(chr(0x4E00 + n) for n in range(5000))  # each once, so a passage has one place in a text


def spaced(*lengths: int) -> str:
    """A text of words of these lengths, no letter twice."""
    at, words = 0, []
    for length in lengths:
        words.append(LETTERS[at : at + length])
        at += length
    return " ".join(words)


@pytest.mark.parametrize("text", ["", " ", "short", "x" * 640, "word " * 128])
def test_a_text_that_fits_is_its_own_only_passage(text: str) -> None:
    assert passages(text) == [text]


def test_a_long_text_is_cut_at_white_space_and_neighbours_share_whole_words() -> None:
    text = "".join(f"{n:04} " for n in range(200))
    first, second = passages(text)
    assert first == text[:640]
    assert second == text[545:]  # 95 characters, 19 words, stand in both


def test_a_word_longer_than_a_passage_is_cut_in_the_middle() -> None:
    assert passages(LETTERS[:1000]) == [LETTERS[:640], LETTERS[544:1000]]
    assert passages("abcdef", 3, 1) == ["abc", "cde", "ef"]


def test_a_cut_is_never_before_the_last_quarter() -> None:
    assert passages(spaced(100, 900))[0] == spaced(100, 900)[:640]
    assert passages(spaced(500, 400))[0] == spaced(500, 400)[:501]


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(1, 80), st.data())
def test_no_character_is_lost_and_no_limit_passed(lengths: list[int], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, (size - 1) // 2))
    text = spaced(*(length + 1 for length in lengths))
    end = 0
    found = passages(text, size, overlap)
    for passage in found:
        assert len(passage) <= size
        if passage.strip():
            at = text.index(passage)
            assert end - overlap <= at <= end
        else:
            at = end
        end = at + len(passage)
    assert end == len(text)


def test_an_overlap_of_half_a_passage_or_more_is_refused() -> None:
    with pytest.raises(InputError, match="passages of 10 characters cannot overlap by 5"):
        passages("text", 10, 5)


def test_only_what_is_kept_by_passage_is_cut_and_blank_passages_are_left_out() -> None:
    text = "a" * 600 + " " * 1400 + "b" * 100
    assert pieces(record("a", text)) == [text]
    assert len(passages(text)) == 4
    assert [piece.strip()[-1] for piece in pieces(record("a", text, by_passage=True))] == ["a", "a", "b"]
    assert pieces(record("a", " " * 700, by_passage=True)) == [" " * 700]


def test_all_records_are_embedded_in_one_request() -> None:
    embedder = Tiny()
    long = record("b", "word " * 200, by_passage=True)
    vectors = embedded(embedder, [record("a"), long, record("c")])
    assert [len(own) for own in vectors] == [1, 2, 1]
    assert [text for text, _ in embedder.embedded] == ["a text", *passages("word " * 200), "a text"]
    assert embedded(embedder, []) == []
