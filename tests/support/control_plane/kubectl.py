"""kubectl, as a cluster admin has it; and what a cluster holds, before and after it was used."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controlplane import build
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_api import Api, Object
from support.control_plane.rendering import identity
from support.waits import MAX_WAIT_SECONDS

_WITHOUT_HISTORY: Final = ("events", "leases")  # written by who looks after the cluster, at any time

Identity = tuple[str, str, str]


class Said(NamedTuple):
    """What a command came to."""

    code: int
    output: str
    errors: str


class Kubectl:
    """kubectl for the admin of a control plane; files go to `directory`.

    Raises, as it is made:
        NotBuilt: there is no kubectl.
    """

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self._program = build.kubectl()
        kubeconfig = plane.kubeconfig(directory / "admin.kubeconfig", plane.admin)
        path = f"{self._program.parent}{os.pathsep}{os.defpath}"
        self._environment = {"PATH": path, "HOME": str(directory), "KUBECONFIG": str(kubeconfig)}

    def __call__(self, *words: str | Path) -> str:
        """What it prints; fails where it fails, or warns of something."""
        said = self.said(*words)
        assert (said.code, said.errors) == (0, ""), said
        return said.output

    def said(self, *words: str | Path) -> Said:
        """Whatever comes of it."""
        return self._run([self._program, *words])

    def shell(self, script: str) -> Said:
        """Whatever comes of a script that calls kubectl."""
        return self._run(["/bin/sh", "-c", script])

    def _run(self, words: Sequence[str | Path]) -> Said:
        done = subprocess.run(  # noqa: S603 - a program that we have built, and scripts of our docs
            words,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_WAIT_SECONDS,
        )
        return Said(done.returncode, done.stdout, done.stderr)


def everything(api: Api) -> dict[Identity, Object]:
    """Every object of every kind that the API server can list, events and leases left out."""
    groups = api.call("GET", "/apis").body["groups"]
    versions = ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]
    found: dict[Identity, Object] = {}
    for version in versions:
        for resource in _resources(api, version):
            if "list" in resource["verbs"] and resource["name"] not in _WITHOUT_HISTORY:
                items = api.items(version, resource["kind"])
                found |= {identity(item): item for item in items}
    return found


def _resources(api: Api, version: str) -> list[Mapping[str, list[str]]]:
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resources: list[Mapping[str, list[str]]] = api.call("GET", root).body["resources"]
    return resources


def end_namespace(api: Api, name: str) -> list[Identity]:
    """What the namespace controller does with a namespace that is being deleted. Returns what it found in there."""
    found = {key: item for key, item in everything(api).items() if key[1] == name}
    for item in found.values():
        api.delete(item)
    namespace = api.get({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    assert namespace["status"]["phase"] == "Terminating"
    api.replace({**namespace, "spec": {"finalizers": []}}, subresource="finalize")
    return list(found)
