"""The Helm chart: its values for the options of manifests/, and what the real helm makes of it.

The value of `components/opt-in-all` is `optInAll.enabled`, and so on.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from controlplane import build
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kubectl import Said
from support.control_plane.rendering import CERT_MANAGER, DEFAULT, NAME, OPTIONS, ROOT
from support.waits import MAX_WAIT_SECONDS

CHART: Final = ROOT / "charts" / NAME
OF_HELM: Final = ("app.kubernetes.io/managed-by", "helm.sh/chart")
"""Labels that only objects of a chart have."""
ISSUER: Final = {
    DEFAULT: "--set=certificates.issuer=controller",
    CERT_MANAGER: "--set=certificates.issuer=cert-manager",
}
"""The option of helm that stands for each install of manifests/."""
_KUBERNETES: Final = ("--kube-version", build.KUBERNETES[build.NEWEST].version or "")


def switch(option: str, *, on: bool = True) -> str:
    """The option of helm that switches an option of manifests/ on or off."""
    first, *others = option.split("-")
    return f"--set={first}{''.join(map(str.title, others))}.enabled={str(on).lower()}"


def all_on() -> list[str]:
    """The options of helm that switch every option on."""
    return [switch(option) for option in OPTIONS]


def render(
    *words: str, namespace: str = NAME, test: bool = False, chart: Path = CHART, major: int = 3
) -> list[dict[str, Any]]:
    """The objects of an install by helm; `words` are options such as `--set`. With `test`, the pod of `helm test`, too.

    Raises:
        NotBuilt: there is no helm; the message says what to do.
        AssertionError: it does not render; with helm's message.
    """
    said = template(*words, *(() if test else ("--skip-tests",)), namespace=namespace, chart=chart, major=major)
    assert said.code == 0, said.errors
    return [rendered for rendered in yaml.load_all(said.output, yaml.CSafeLoader) if rendered]


def template(*words: str, namespace: str = NAME, chart: Path = CHART, major: int = 3) -> Said:
    """What `helm template` says.

    Raises:
        NotBuilt: there is no helm.
    """
    return run("template", NAME, str(chart), "-n", namespace, *_KUBERNETES, *words, major=major)


def lint(*words: str) -> Said:
    """What `helm lint --strict` says.

    Raises:
        NotBuilt: there is no helm.
    """
    return run("lint", "--strict", str(CHART), *_KUBERNETES, *words)


def suites() -> Said:
    """What helm-unittest says of the suites in the chart's folder. A key that it does not know is an error.

    Raises:
        NotBuilt: there is no helm-unittest.
    """
    return _alone(build.helm_unittest(), "--strict", str(CHART))


def run(*words: str, major: int = 3, **environment: str) -> Said:
    """Run helm of this major version.

    Raises:
        NotBuilt: there is no helm.
    """
    return _alone(build.helm(major), *words, **environment)


def _alone(program: Path, *words: str, **environment: str) -> Said:
    """Run a program with a home of its own, so that nothing of the user's counts."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(  # noqa: S603 - a program that we have built
            [program, *words],
            env={"PATH": os.defpath, "HOME": home, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_WAIT_SECONDS,
        )
    return Said(done.returncode, done.stdout, done.stderr)


def without_helm(item: Mapping[str, Any]) -> dict[str, Any]:
    """The object without the labels of OF_HELM."""
    labels = {key: value for key, value in item["metadata"]["labels"].items() if key not in OF_HELM}
    return {**item, "metadata": {**item["metadata"], "labels": labels}}


class Helm:
    """helm for the admin of a control plane, and one release of the chart; files go to `directory`."""

    def __init__(self, plane: ControlPlane, directory: Path, major: int = 3) -> None:
        self.major = major
        self._kubeconfig = str(plane.kubeconfig(directory / "helm.kubeconfig", plane.admin))

    def __call__(self, *words: str) -> str:
        """What it prints; fails where it fails, or warns of something."""
        said = self.said(*words)
        assert (said.code, said.errors) == (0, ""), said
        return said.output

    def said(self, *words: str) -> Said:
        """Whatever comes of it."""
        return run(*words, "-n", NAME, major=self.major, KUBECONFIG=self._kubeconfig)

    def install(self, *words: str) -> str:
        """Install the release, into a namespace that helm makes. Returns what the user reads."""
        return self("install", NAME, str(CHART), "--create-namespace", *words)

    def upgrade(self, *words: str) -> str:
        """Upgrade the release; values that `words` do not set are the chart's."""
        return self("upgrade", NAME, str(CHART), *words)

    def take_over(self) -> str:
        """Install over an install by kubectl, as docs/install/helm.md says. Returns what the user reads.

        Helm 4 applies on the API server's side, and would then conflict with kubectl's fields.
        """
        return self.install("--take-ownership", *(() if self.major == 3 else ("--server-side=false",)))
