"""Linux namespaces for a whole cluster of nodes: when their first process ends, all of the cluster ends.

The kernel then kills every process of the PID namespace. It drops the mounts, links, network namespaces and iptables
rules that were made in the namespaces. Nothing has to be stopped, and a killed run leaves none of these behind. Control
groups belong to no namespace: they are removed afterwards, or by the next run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.waits import MAX_WAIT_SECONDS

CGROUP: Final = "kubevirt-coschedule-nodes"
"""The control group, in each hierarchy, with one child for each node."""
NEEDED: Final = ("setpriv", "unshare", "nsenter", "ip", "iptables", "conntrack", "mount", "containerd", "ctr", "runc")
"""Programs of Debian's packages that a cluster of nodes needs."""

_CGROUPS: Final = Path("/sys/fs/cgroup")
_CPUSET: Final = ("cpuset.cpus", "cpuset.mems")  # of cgroup v1: a new group has none, and then takes no process
_SYSCTLS: Final = {  # what a kubelet writes if it finds something else (pkg/kubelet/cm/container_manager_linux.go)
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_WRITTEN: Final = ("/var/lib", "/var/log")  # kubelet, containerd and CNI have paths here that no option moves
_POLL_SECONDS: Final = 0.1


def run_alone(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command as the first process of new PID, mount and network namespaces. Returns its exit code.

    If this process is killed, the command is killed too.
    """
    new = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    words = ["setpriv", "--pdeathsig", "KILL", *new, *command]
    return subprocess.run(words, env=environment, check=False).returncode  # noqa: S603 - our own words


def prepare(directory: Path) -> None:
    """Make the namespaces, as their first process, fit for kubelets; what these write goes to `directory`.

    `/run` is empty afterwards. Files that kubelets write below `/var/lib` and `/var/log` go to `directory`. A kubelet
    finds the sysctls of the whole machine as it wants them, and so leaves them alone.
    """
    told("ip", "link", "set", "lo", "up")
    told("mount", "-t", "tmpfs", "tmpfs", "/run")
    for place in _WRITTEN:
        upper, work = (directory / kind / place.replace("/", "-") for kind in ("written", "work"))
        for made in (upper, work):
            made.mkdir(parents=True)
        told("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={place},upperdir={upper},workdir={work}", place)
    for name, value in _SYSCTLS.items():
        file = directory / name.replace("/", ".")
        file.write_text(f"{value}\n")
        told("mount", "--bind", str(file), f"/proc/sys/{name}")


def told(*words: str) -> str:
    """Run a program of the system, and return its output; fails with the program's own words."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - programs of NEEDED
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


@contextmanager
def cgroups(names: Sequence[str]) -> Iterator[None]:
    """Have a control group for each name below CGROUP, in each hierarchy of cgroup v1 or the one of v2."""
    remove_cgroups()
    try:
        for hierarchy in _hierarchies():
            for path in (hierarchy / CGROUP, *(hierarchy / CGROUP / name for name in names)):
                _make(path)
        yield
    finally:
        remove_cgroups()


def remove_cgroups() -> None:
    """Remove CGROUP with all that is in it; no process may be left there.

    Raises:
        OSError: a group was not empty in MAX_WAIT_SECONDS.
    """
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    for top in (_CGROUPS / CGROUP, *_CGROUPS.glob(f"*/{CGROUP}")):  # in v2 beside v1, too: runc makes it there
        for group in sorted((group for group in (top, *top.rglob("*")) if group.is_dir()), reverse=True):
            while True:
                try:
                    group.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_POLL_SECONDS)
                else:
                    break


def _hierarchies() -> list[Path]:
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [path for path in _CGROUPS.iterdir() if path.is_dir() and not (path / "cgroup.controllers").exists()]


def _make(group: Path) -> None:
    """Make a group that has every controller of its parent."""
    controllers = group.parent / "cgroup.controllers"
    if controllers.exists():
        wanted = " ".join(f"+{name}" for name in controllers.read_text().split())
        (group.parent / "cgroup.subtree_control").write_text(wanted)
    group.mkdir()
    for name in _CPUSET:
        if not controllers.exists() and (group.parent / name).exists():
            (group / name).write_text((group.parent / name).read_text())
