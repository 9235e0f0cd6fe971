"""Settings of TLS that can't be used: each is one sentence, before the start."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.drivers.serving import issue

from webhook import cli

SETTINGS: Final = {
    "an unknown version": (
        ["--tls-min-version=1.1"],
        "'1.1' is not one of 'VersionTLS12', 'VersionTLS13'.",
    ),
    "a name nobody vouches for": (
        ["--client-name=kube-apiserver"],
        (
            "got --client-name kube-apiserver without --client-ca-file: expected the authority that issues callers' "
            "certificates, too"
        ),
    ),
    "an empty name": (["--tls-server-name="], "got '', expected a name"),
}


@pytest.mark.parametrize(("flags", "sentence"), SETTINGS.values(), ids=SETTINGS)
def test_a_setting_that_cannot_be_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], sentence: str
) -> None:
    """The exit code is 2, before any file is read."""
    pair = issue(tmp_path)
    files = [f"--tls-cert-file={pair.cert_file}", f"--tls-private-key-file={pair.key_file}"]
    assert cli.main(["serve", *files, *flags]) == 2
    assert capsys.readouterr().err.endswith(f": {sentence}\n")
