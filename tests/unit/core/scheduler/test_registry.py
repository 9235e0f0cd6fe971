"""Every plugin has the interface of its extension points and names the upstream file that it follows."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from webhook.core.scheduler import plugins, registry

TABLES = {
    "pre_enqueue": registry.PRE_ENQUEUE,
    "pre_filter": registry.PRE_FILTER,
    "filter_node": registry.FILTER,
    "filter_volume": registry.VOLUME_FILTER,
}
PLUGINS: dict[str, ModuleType] = {name: module for table in TABLES.values() for name, module in table.items()}  # type: ignore[misc]
UPSTREAM = re.compile(r"kube-scheduler's (\w+) plugin \(pkg/scheduler/framework/plugins/(\w+)/\w+\.go(?:, \w+)?\)\.")


def test_every_module_of_the_folder_is_a_registered_plugin() -> None:
    """And no plugin is registered twice under different names."""
    folder = Path(next(iter(plugins.__path__)))
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {module.__name__.rpartition(".")[2] for module in PLUGINS.values()} == modules
    assert len(PLUGINS) == len(modules)


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_names_its_upstream_file_and_its_invariant(name: str) -> None:
    """The module is called as the plugin, and its docstring begins with the plugin's name and file."""
    module = PLUGINS[name]
    doc = module.__doc__ or ""
    match = UPSTREAM.match(doc)
    assert match
    assert match.group(1) == name
    assert name.lower().startswith(match.group(2))  # NodeResourcesFit is in noderesources
    assert module.__name__.rpartition(".")[2].replace("_", "") == name.lower()
    assert "Invariant: " in doc
    assert "not" in doc.partition("Invariant: ")[2]


@pytest.mark.parametrize(("point", "name"), [(point, name) for point, table in TABLES.items() for name in table])
def test_a_plugin_offers_just_its_extension_points(point: str, name: str) -> None:
    """A function of an extension point is registered if and only if the module has it, with the same parameters."""
    expected = {"pre_enqueue": 1, "pre_filter": 1, "filter_node": 2, "filter_volume": 2}
    module = PLUGINS[name]
    assert len(inspect.signature(getattr(module, point)).parameters) == expected[point]
    for other, table in TABLES.items():
        assert (name in table) is hasattr(module, other)


def test_the_readme_names_plugins_by_their_upstream_names() -> None:
    """Its table of what can refuse a full node, in the order in which the webhook asks."""
    readme = (Path(__file__).parents[4] / "README.md").read_text()
    table = readme.partition("| What can refuse a node |")[2].partition("\n\n")[0]
    named = [line.rsplit("|", 2)[1].strip() for line in table.splitlines()[2:]]
    assert named == ["NodeResourcesFit", "NodePorts", "NodeVolumeLimits", "InterPodAffinity", "PodTopologySpread"]
    assert set(named) <= set(PLUGINS)
