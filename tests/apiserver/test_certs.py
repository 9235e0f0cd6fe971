"""The certificate controller on a real API server, as its own service account with the RBAC of its manifests."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
from pathlib import Path
from typing import Final

from controlplane import build
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, SECRET, CertsInstall
from support.control_plane.installed import NAME, Installed
from support.control_plane.rendering import ROOT
from support.drivers.serving import Pair
from support.fakes import certs_cluster

from certs.controller import READ_EVERY

MAX_RESTORED_SECONDS: Final = READ_EVERY.total_seconds() + 10  # a call took up to 2 s on a busy machine

RUNBOOK: Final = ROOT / "docs/operate/runbook.md"


def messages(log: Path) -> list[str]:
    """What a certificate controller has said."""
    return [json.loads(line)["message"] for line in log.read_text().splitlines()]


def test_the_api_server_takes_what_the_controller_made(
    kept: CertsInstall, installed: Installed, tmp_path: Path
) -> None:
    """From nothing to a pod that was decided on over TLS, without a human touch."""
    with kept.keeping():
        kept.until(kept.is_good)
        pair = kept.state().served.pair
        mine = Pair(tmp_path / "tls.crt", tmp_path / "tls.key", ssl.create_default_context())
        mine.cert_file.write_bytes(pair.certificate)
        mine.key_file.write_bytes(pair.key)
        others, installed.certificate = installed.certificate, mine
        try:
            with installed.serving():
                installed.until_called()
        finally:
            installed.certificate = others


def test_a_bundle_that_somebody_empties_is_restored_at_the_next_read(kept: CertsInstall) -> None:
    """Calls fail open until then: this time is measured."""
    with kept.keeping():
        kept.until(kept.is_good)
        kept.api.replace({**kept.configuration, "metadata": kept.api.get(CONFIGURATION)["metadata"]})
        took = kept.until(kept.is_good)
    assert took < MAX_RESTORED_SECONDS


def test_a_secret_that_somebody_deletes_comes_back_with_a_pair_of_the_same_authority(kept: CertsInstall) -> None:
    """By name, without a permission to create any other; what API servers trust does not change."""
    with kept.keeping() as log:
        kept.until(kept.is_good)
        before = kept.state()
        kept.api.delete(SECRET)
        kept.until(kept.is_good)
        after = kept.state()
    assert after.served.pair != before.served.pair
    assert (after.authority, after.configuration.version) == (before.authority, before.configuration.version)
    assert messages(log).count("certificate issued") == 2


def test_an_authority_that_somebody_deletes_is_replaced_beside_the_old_one(kept: CertsInstall) -> None:
    """What servers serve stays published meanwhile, and for a time after."""
    with kept.keeping() as log:
        kept.until(kept.is_good)
        before = kept.state().served.pair
        kept.api.delete(AUTHORITY_SECRET)
        kept.until(lambda: kept.state().authority.version is not None)
        while not kept.is_good():
            state = kept.state()
            served = state.served.pair.authority
            assert all(served in bundle for bundle in state.configuration.bundles)
        assert kept.state().served.pair.authority != before.authority
    assert messages(log).count("authority made") == 2
    assert "authority dropped" in messages(log)


def test_two_controllers_started_at_once_agree(kept: CertsInstall) -> None:
    """On one authority and one pair, which are then left alone."""
    with kept.keeping() as one, kept.keeping() as other:
        kept.until(kept.is_good)
        kept.until(lambda: all("waiting" in messages(log) for log in (one, other)))
        assert kept.is_good()
        said = messages(one) + messages(other)
    assert (said.count("authority made"), said.count("certificate issued")) == (1, 1)


def test_a_controller_outlives_its_api_server(kept: CertsInstall) -> None:
    """It comes back as the API server does, and heals what happened meanwhile."""
    with kept.keeping() as log:
        kept.until(kept.is_good)
        kept.plane.restart_api_server()
        kept.api.delete(SECRET)
        kept.until(lambda: kept.state().served.version is not None and kept.is_good())
    assert not [line for line in log.read_text().splitlines() if "Traceback" in line]


def test_the_lines_of_the_runbook_tell_good_from_wrong(kept: CertsInstall, tmp_path: Path) -> None:
    """Kubectl and openssl as the runbook has them: for a kept install, and where the bundle is of another authority."""
    _, _, section = RUNBOOK.read_text(encoding="utf-8").partition("## The certificate\n")
    lines = section.split("```sh\n")[1].split("```")[0]
    admin = kept.plane.kubeconfig(tmp_path / "admin.kubeconfig", kept.plane.admin)
    found = {**os.environ, "KUBECONFIG": str(admin), "PATH": f"{build.kubectl().parent}:{os.environ['PATH']}"}

    def run() -> tuple[int, str]:
        command = ["bash", "-euo", "pipefail", "-c", lines]
        done = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True, check=False)  # noqa: S603 - the runbook's
        return done.returncode, done.stdout + done.stderr

    with kept.keeping():
        kept.until(kept.is_good)
    code, text = run()
    assert code == 0, text
    assert "tls.crt: OK" in text
    assert f"DNS:{NAME}.{NAME}.svc" in text
    assert "PRIVATE KEY" not in text
    configuration, stranger = kept.api.get(CONFIGURATION), certs_cluster.made().pair.authority
    for entry in configuration["webhooks"]:
        entry["clientConfig"]["caBundle"] = base64.b64encode(stranger).decode()
    kept.api.replace(configuration)
    code, text = run()
    assert (code, "unable to get local issuer certificate" in text) == (2, True), text
