"""A second kube-scheduler in its own process, beside the one of a control plane. It serves other scheduler names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from controlplane import build
from support.control_plane.control_plane import ControlPlane, User
from support.control_plane.control_plane_flags import SCHEDULER_FLAGS
from support.control_plane.programs import Program

_USER: Final = User("system:kube-scheduler", "token-of-system:kube-scheduler")


@contextmanager
def second_scheduler(plane: ControlPlane, profiles: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """It runs with these profiles of a KubeSchedulerConfiguration, each with its `schedulerName`."""
    kubeconfig = plane.kubeconfig(plane.directory / "second-scheduler.kubeconfig", _USER)
    config = plane.directory / "second-scheduler.yaml"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "profiles": profiles,
    }
    config.write_text(json.dumps(content))
    path = build.programs()["kube-scheduler"]
    program = Program(path, [f"--config={config}", *SCHEDULER_FLAGS], plane.directory / "second-scheduler.log")
    program.start()
    try:
        yield
    except BaseException:
        print(program.tail())  # noqa: T201 - the program failed; this says why
        raise
    finally:
        program.stop()
