"""Every plugin has the interface of its extension points and names the upstream file that it follows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from webhook.core.scheduler import plugins, registry

TABLES: list[tuple[Callable[..., Any], ...]] = [table for name, table in vars(registry).items() if name.isupper()]


def plugin_of(function: Callable[..., Any]) -> ModuleType:
    """The module of a function of an extension point."""
    module = inspect.getmodule(function)
    assert module
    return module


FUNCTIONS = [(plugin_of(function), function) for table in TABLES for function in table]
PLUGINS = {module.__name__.rpartition(".")[2]: module for module, _ in FUNCTIONS}
EXTENSION_POINTS = ("pre_enqueue", "pre_filter", "filter_node", "filter_by_labels", "filter_volume")
UPSTREAM = re.compile(r"kube-scheduler's (\w+) plugin \(pkg/scheduler/framework/plugins/(\w+)/\w+\.go(?:, \w+)?\)\.")


def test_every_module_of_the_folder_is_a_registered_plugin() -> None:
    """A module that no table names is never asked."""
    folder = Path(next(iter(plugins.__path__)))
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert PLUGINS.keys() == modules


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_names_its_upstream_file_and_its_invariant(name: str) -> None:
    """The module is called as the plugin, and its docstring begins with the plugin's name and file."""
    module = PLUGINS[name]
    doc = module.__doc__ or ""
    match = UPSTREAM.match(doc)
    assert match
    plugin = name.replace("_", "")
    assert match.group(1).lower() == plugin
    assert plugin.startswith(match.group(2))  # NodeResourcesFit is in noderesources
    assert "Invariant: " in doc
    assert "not" in doc.partition("Invariant: ")[2]


@pytest.mark.parametrize("name", PLUGINS)
def test_each_function_of_an_extension_point_is_registered_once(name: str) -> None:
    """The webhook asks every function that a plugin offers, and its parameters are those of the extension point."""
    expected = {"pre_enqueue": 1, "pre_filter": 1, "filter_node": 2, "filter_by_labels": 2, "filter_volume": 2}
    module = PLUGINS[name]
    registered = sorted(function.__name__ for plugin, function in FUNCTIONS if plugin is module)
    assert registered == sorted(each for each in EXTENSION_POINTS if hasattr(module, each))
    for each in registered:
        assert len(inspect.signature(getattr(module, each)).parameters) == expected[each]


def test_the_page_names_plugins_by_their_upstream_names() -> None:
    """Its table of what can refuse a full node, in the order in which the webhook asks."""
    page = (Path(__file__).parents[4] / "docs/concepts/full-nodes.md").read_text()
    table = page.partition("| What can refuse a node |")[2].partition("\n\n")[0]
    named = [line.rsplit("|", 2)[1].strip().lower() for line in table.splitlines()[2:]]
    beside_pods = (registry.FILTER_BY_REQUESTS, registry.FILTER_VOLUME_LIMITS, registry.FILTER_BETWEEN_PODS)
    asked = [plugin_of(function).__name__ for table in beside_pods for function in table]
    assert named == [name.rpartition(".")[2].replace("_", "") for name in asked]
