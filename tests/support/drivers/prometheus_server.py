"""A real Prometheus that scrapes what a test names each second, with the rules of the monitoring component."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, build_opener

import yaml
from controlplane import build
from support.control_plane.ports import free_port
from support.control_plane.programs import Program
from support.drivers.prometheus import ALERTS
from support.waits import MAX_WAIT_SECONDS

SCRAPE_SECONDS: Final = 1


class Target(NamedTuple):
    """What to scrape: an address with its scheme, and the labels that it adds. `only`: metrics that are kept."""

    job: str
    url: str
    labels: Mapping[str, str]
    token: str = ""
    only: str = ".+"


class PrometheusServer:
    """Prometheus' HTTP API, as Grafana asks it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = build_opener(ProxyHandler({}))

    def get(self, path: str, **parameters: str | float) -> Any:
        """Return the `data` of an answer; fails if Prometheus refuses the question."""
        with self._opener.open(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=MAX_WAIT_SECONDS) as answer:
            return json.load(answer)["data"]


@contextmanager
def scraping(targets: Sequence[Target], directory: Path) -> Iterator[PrometheusServer]:
    """Prometheus with a database in this directory, until the end of the block.

    Raises:
        NotBuilt: there is no Prometheus.
    """
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["spec"]
    groups = [{**group, "interval": f"{SCRAPE_SECONDS}s"} for group in rules["groups"]]
    (directory / "rules.yaml").write_text(json.dumps({"groups": groups}), encoding="utf-8")  # YAML, too
    often = {"scrape_interval": f"{SCRAPE_SECONDS}s", "evaluation_interval": f"{SCRAPE_SECONDS}s"}
    config = {"global": often, "rule_files": ["rules.yaml"], "scrape_configs": [_config(each) for each in targets]}
    (directory / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    flags = [f"--config.file={directory}/prometheus.yaml", f"--storage.tsdb.path={directory}/data"]
    flags += [f"--web.listen-address={address}"]
    program = Program(build.prometheus(), flags, directory / "log")
    program.start()
    try:
        program.until_ready(f"http://{address}/-/ready")
        yield PrometheusServer(f"http://{address}")
    finally:
        program.stop(signal.SIGTERM)


def _config(target: Target) -> dict[str, Any]:
    address = urlsplit(target.url)
    config = {
        "job_name": target.job,
        "scheme": address.scheme,
        "static_configs": [{"targets": [address.netloc], "labels": dict(target.labels)}],
        "metric_relabel_configs": [{"source_labels": ["__name__"], "regex": target.only, "action": "keep"}],
        "tls_config": {"insecure_skip_verify": True},
    }
    return config | ({"authorization": {"credentials": target.token}} if target.token else {})
