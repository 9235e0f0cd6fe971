"""documents.read_file: files that can be read, files that can't, and how many problems an error shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from webhook.objects.documents import BadDocument
from webhook.objects.files import read_file

HEAD = "apiVersion: v1\nkind: Pod\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"a: \xff\n", ["not UTF-8", "byte 3"], id="bytes that are no UTF-8"),
        pytest.param(b"a: [\n", [":2"], id="broken YAML"),
        pytest.param(None, ["No such file"], id="no file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, words: list[str]) -> None:
    """The message starts with the path."""
    path = tmp_path / "cluster.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadDocument) as caught:
        list(read_file(path))
    assert str(caught.value).startswith(str(path))
    assert all(word in str(caught.value) for word in words)


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    """The error is that of any file that can't be opened."""
    with pytest.raises(BadDocument, match="directory"):
        list(read_file(tmp_path))


def test_a_file_is_read(tmp_path: Path) -> None:
    """The path is the source."""
    path = tmp_path / "cluster.yaml"
    path.write_text(HEAD, encoding="utf-8")
    (document,) = read_file(path)
    assert document.place == f"{path}:1"


@pytest.mark.parametrize(
    ("count", "last"),
    [
        pytest.param(1, "problem 0", id="one"),
        pytest.param(20, "problem 19", id="as many as are shown"),
        pytest.param(21, "and 1 more", id="one more"),
        pytest.param(500, "and 480 more", id="many more"),
    ],
)
def test_many_problems_are_cut(count: int, last: str) -> None:
    """An error has all problems, and shows twenty."""
    error = BadDocument(*(f"problem {index}" for index in range(count)))
    assert len(error.problems) == count
    assert str(error).splitlines()[-1] == last
    assert len(str(error).splitlines()) <= 21
