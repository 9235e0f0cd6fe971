"""The dashboard as Grafana asks for it: its variables first, then the query of each panel with the variables filled in.

Grafana itself is not there. What it sends to Prometheus follows its Prometheus data source. `label_values` is a request
for the values of a label. A panel with `instant` asks for one time, and any other panel for a range.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from threading import Event
from typing import Any, Final, NamedTuple

from support.drivers.prometheus import DASHBOARD, panels
from support.drivers.prometheus_server import SCRAPE_SECONDS, PrometheusServer
from support.waits import MAX_WAIT_SECONDS

_STEP_SECONDS: Final = 15  # of six hours on a screen of 1,440 points
_RANGE_SECONDS: Final = 6 * 3600
_INTERVALS: Final = {
    "__rate_interval": f"{max(4 * SCRAPE_SECONDS, _STEP_SECONDS + SCRAPE_SECONDS)}s",
    "__range": f"{_RANGE_SECONDS}s",
}
_LABEL_VALUES: Final = re.compile(r"label_values\((.+), (\w+)\)")
_SPOILT: Final = "sum(kubevirt_coschedule_vms{stat=~'.+'})"  # what finds nothing, to see that nothing is seen


class Rendered(NamedTuple):
    """The dashboard with data.

    Attributes:
        variables: what Grafana fills in for each variable; `options`: what a user can choose.
        results: the series of each query, by the title of its panel and its letter.
        spoilt: the series of a query that finds none.
    """

    variables: Mapping[str, str]
    options: Mapping[str, list[str]]
    results: Mapping[str, list[Any]]
    spoilt: list[Any]


def rendered(server: PrometheusServer) -> Rendered:
    """Return the dashboard as soon as every query finds something; after a long wait as it is then."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    found = _render(server)
    while not all(found.results.values()) and time.monotonic() < deadline:
        Event().wait(SCRAPE_SECONDS)
        found = _render(server)
    return found


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with its variables filled in; fails on one that is not defined."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: variables[found[1] or found[2]], text)


def _render(server: PrometheusServer) -> Rendered:
    options: dict[str, list[str]] = {}
    variables: dict[str, str] = {}
    for each in json.loads(DASHBOARD.read_text(encoding="utf-8"))["templating"]["list"]:
        if each["type"] != "query":
            continue
        asked = _LABEL_VALUES.fullmatch(filled(each["query"]["query"], variables))
        assert asked, f"not understood: {each['query']}"
        values = options[each["name"]] = server.get(f"label/{asked[2]}/values", **{"match[]": asked[1]})
        variables[each["name"]] = each["allValue"] if each.get("includeAll") else next(iter(values), "")
    results = {
        f"{panel['title']}, {target['refId']}": _asked(
            server, filled(target["expr"], {**variables, **_INTERVALS}), target
        )
        for panel in panels()
        for target in panel["targets"]
    }
    return Rendered(variables, options, results, _asked(server, _SPOILT, {}))


def _asked(server: PrometheusServer, query: str, target: Mapping[str, Any]) -> list[Any]:
    """Return the series. Whether a value is more than 0 is the cluster's matter."""
    query, now = query.removesuffix(" > 0"), time.time()
    times = {"start": now - _RANGE_SECONDS, "end": now, "step": _STEP_SECONDS}
    path, asked = ("query", {"time": now}) if target.get("instant") else ("query_range", times)
    found: list[Any] = server.get(path, query=query, **asked)["result"]
    return found
