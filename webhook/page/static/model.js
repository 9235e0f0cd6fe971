// The data: rows by VM, the last decisions, and the part of them that the filter selects. Nothing here uses the DOM.

export const STATES = {
  stuck: { glyph: "■", words: "pinned, and fits on none of its nodes" },
  "not-running": { glyph: "◆", words: "its pod has a node and does not run" },
  apart: { glyph: "▲", words: "apart from a share-manager" },
  unknown: { glyph: "?", words: "the state is not known" },
  pending: { glyph: "◔", words: "waiting for a node" },
  free: { glyph: "○", words: "none of its share-managers has a node" },
  together: { glyph: "●", words: "with its share-manager" },
};
export const ORDER = Object.keys(STATES);
const RANK = Object.fromEntries(ORDER.map((state, rank) => [state, rank]));
const TROUBLE = ["stuck", "not-running", "apart", "unknown"];

const names = new Intl.Collator("en", { numeric: true });
export const byName = (a, b) => names.compare(a, b);
export const rank = (row) => RANK[row.state] ?? 0;
export const keyOf = (row) => `${row.namespace}/${row.name}`;
export const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
export const bySeverity = (a, b) => rank(a) - rank(b) || byText(a.sortName, b.sortName);

// Return a text that sorts as a name with numbers in it: thousands of them compare faster than with a Collator.
const natural = (name) => name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));

export class Model {
  rows = new Map();
  decisions = []; // newest first
  total = 0;
  head = null;

  // Take in a state of the server. A row that has not changed stays the same object.
  take(state) {
    const before = this.rows;
    this.rows = new Map();
    for (const row of state.rows) {
      const key = keyOf(row);
      const print = JSON.stringify(row);
      const old = before.get(key);
      this.rows.set(key, old?.print === print ? old : prepared(row, print));
    }
    const { total, last } = state.decided;
    this.decisions = last.map((each, index) => ({ ...each, number: total - index }));
    this.total = total;
    this.head = state;
  }

  // The last decision on a VM's own pod that the server still has; undefined if it has none.
  decisionOn(row) {
    return this.decisions.find((each) => each.name === row.name && each.namespace === row.namespace && each.entry !== "share-manager" && !each.dry);
  }

  namespaces() {
    const counts = new Map();
    for (const row of this.rows.values()) counts.set(row.namespace, (counts.get(row.namespace) ?? 0) + 1);
    return [...counts].sort((a, b) => byName(a[0], b[0]));
  }

  // Return { rows: those that the filter selects, counts: VMs by state, causes: VMs in trouble by cause }. The filter's
  // states and causes change no count.
  chosen(filter) {
    const counts = Object.fromEntries(ORDER.map((state) => [state, 0]));
    const causes = new Map([...filter.causes].map((cause) => [cause, 0]));
    const rows = [];
    for (const row of this.rows.values()) {
      if (!selects(filter, row)) continue;
      counts[row.state] = (counts[row.state] ?? 0) + 1;
      if (inTrouble(row)) causes.set(row.cause, (causes.get(row.cause) ?? 0) + 1);
      if (filter.states.size && !filter.states.has(row.state)) continue;
      if (!filter.causes.size || (inTrouble(row) && filter.causes.has(row.cause))) rows.push(row);
    }
    return { rows, counts, causes: [...causes].sort((a, b) => b[1] - a[1] || byText(a[0], b[0])) };
  }

  chosenDecisions(filter) {
    const text = filter.text.toLowerCase().replace(/^node:\s*/, "");
    return this.decisions.filter(
      (each) =>
        (!filter.namespace || each.namespace === filter.namespace) &&
        (!text || [each.name ?? "", ...(each.nodes ?? [])].some((name) => name.toLowerCase().includes(text))),
    );
  }
}

// Add the texts that the row is sorted by, and compared by.
function prepared(row, print) {
  row.print = print;
  row.sortName = `${natural(row.name)} ${natural(row.namespace)}`;
  row.sortVM = `${natural(row.namespace)} ${natural(row.name)}`;
  row.sortNode = row.node === null ? "~" : natural(row.node);
  return row;
}

// A text selects by a part of a name; `node:NAME` selects the VMs and share-managers of exactly this node.
function selects(filter, row) {
  if (filter.namespace && row.namespace !== filter.namespace) return false;
  if (!filter.text) return true;
  const text = filter.text.toLowerCase();
  const node = text.startsWith("node:") ? text.slice("node:".length).trim() : null;
  if (node !== null) return [row.node, row.onlyNode, ...row.volumes.map((each) => each.node)].some((name) => name?.toLowerCase() === node);
  const found = (name) => name !== null && name.toLowerCase().includes(text);
  return found(row.name) || found(row.node) || row.volumes.some((each) => found(each.node) || found(each.claim));
}

// Return for each node { name, vms, guests: share-managers whose VM is on another node, volumes: those it serves, counts }
export function nodesOf(rows) {
  const found = new Map();
  const at = (name) => {
    let node = found.get(name);
    if (!node) {
      node = { name, vms: [], guests: [], volumes: new Set(), counts: {} };
      found.set(name, node);
    }
    return node;
  };
  for (const row of rows) {
    const home = at(row.node ?? "");
    home.vms.push(row);
    home.counts[row.state] = (home.counts[row.state] ?? 0) + 1;
    for (const volume of row.volumes) {
      if (volume.node === null) continue;
      const host = at(volume.node);
      host.volumes.add(volume.volume);
      if (volume.node !== row.node) host.guests.push({ row, volume });
    }
  }
  for (const node of found.values()) {
    node.vms.sort(bySeverity);
    node.guests.sort((a, b) => bySeverity(a.row, b.row) || byName(a.volume.claim, b.volume.claim));
  }
  return [...found.values()].sort((a, b) => (a.name === "") - (b.name === "") || byName(a.name, b.name));
}

export const inTrouble = (row) => TROUBLE.includes(row.state);

// Whether a node has VMs that need a look, or serves one.
export const troubled = (node) => TROUBLE.some((state) => node.counts[state]) || node.guests.length > 0;

// Return a link for each pair of nodes: from the node of VMs to the node of their share-managers.
export function linksOf(rows) {
  const found = new Map();
  for (const row of rows) {
    for (const volume of row.volumes) {
      if (volume.together !== false || row.node === null) continue;
      const key = `${row.node} ${volume.node}`;
      const link = found.get(key) ?? { key, from: row.node, to: volume.node, vms: new Set() };
      link.vms.add(keyOf(row));
      found.set(key, link);
    }
  }
  return [...found.values()].sort((a, b) => byName(a.key, b.key));
}
