"""What a release is made from: the image that its files name, and the time of its commit."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Final

import pytest
from checkout import EPOCH, ReleaseError, commit_seconds, uncommitted
from image import Image, image, remarks
from packed_chart import with_image

ROOT: Final = Path(__file__).parents[3]
DIGEST: Final = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    "repository",
    ["registry.example/kubevirt-coschedule", "registry.example:5000/team/of_ours/name", "localhost:5000/name"],
)
def test_an_image_is_named_by_its_digest(repository: str) -> None:
    """There is nothing to remark."""
    named = image(repository, DIGEST)
    assert (str(named), remarks(named)) == (f"{repository}@{DIGEST}", [])


@pytest.mark.parametrize(
    ("repository", "digest", "says"),
    [
        ("registry.example/name:1.0", "", "IMAGE is 'registry.example/name:1.0', expected REGISTRY/"),
        (f"registry.example/name@{DIGEST}", "", "without a tag: give the digest as DIGEST"),
        ("registry.example/Name", "", "IMAGE is 'registry.example/Name'"),
        ("a b", "", "IMAGE is 'a b'"),
        ("registry.example/name", "sha256:12", "DIGEST is 'sha256:12', expected sha256: and 64 digits"),
        ("registry.example/name", DIGEST.upper(), "expected sha256: and 64 digits"),
        ("", DIGEST, "DIGEST is given and IMAGE is not: add IMAGE=REGISTRY/"),
    ],
)
def test_a_wrong_image_is_refused(
    repository: str, digest: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was found and what was expected. Nothing is written."""
    main = runpy.run_path(str(ROOT / ".ci/release/__main__.py"))["main"]
    assert main([f"--image={repository}", f"--digest={digest}", "--to", str(tmp_path / "dist")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert says in told.err
    assert list(tmp_path.iterdir()) == []


def test_values_without_a_place_for_the_image_are_refused() -> None:
    """So a chart whose values were rewritten is never packed with another image than asked for."""
    with pytest.raises(ReleaseError, match="0 lines 'repository: kubevirt-coschedule', expected 1"):
        with_image("image:\n  repository: another\n", Image("registry.example/name", DIGEST))


def git(directory: Path, *words: str, **environment: str) -> None:
    """Run git as somebody."""
    somebody = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(  # noqa: S603 - git
        ["git", "-C", directory, *somebody, *words],  # noqa: S607 - as above
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(directory), **environment},
        check=True,
        capture_output=True,
    )


def test_the_time_is_that_of_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SOURCE_DATE_EPOCH comes first. What is in no commit is listed."""
    monkeypatch.delenv(EPOCH, raising=False)
    (tmp_path / "file").touch()
    git(tmp_path, "init")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "a", GIT_COMMITTER_DATE="1700000001 +0100")
    assert (commit_seconds(tmp_path), uncommitted(tmp_path)) == (1_700_000_001, [])
    (tmp_path / "file").write_text("changed", encoding="utf-8")
    assert uncommitted(tmp_path) == [" M file"]
    monkeypatch.setenv(EPOCH, "1600000000")
    assert commit_seconds(tmp_path) == 1_600_000_000
    monkeypatch.setenv(EPOCH, "today")
    with pytest.raises(ReleaseError, match="SOURCE_DATE_EPOCH is 'today', expected seconds since 1970"):
        commit_seconds(tmp_path)


def test_what_is_missing_is_said() -> None:
    """In one sentence each."""
    assert len(remarks(image("", ""))) == 2
    assert [text.split()[1] for text in remarks(image("registry.example/name", ""))] == ["DIGEST=sha256:..."]


def test_without_a_commit_there_is_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an unpacked sdist. The message says what to do."""
    monkeypatch.delenv(EPOCH, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ReleaseError, match="make the release in a clone, or set SOURCE_DATE_EPOCH"):
        commit_seconds(tmp_path)
    assert uncommitted(tmp_path) == []
