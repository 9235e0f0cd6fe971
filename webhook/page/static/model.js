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
const byName = (a, b) => names.compare(a, b);
const rank = (row) => RANK[row.state] ?? 0;
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
      if (inTrouble(row)) causes.set(row.reason, (causes.get(row.reason) ?? 0) + 1);
      if (filter.states.size && !filter.states.has(row.state)) continue;
      if (!filter.causes.size || (inTrouble(row) && filter.causes.has(row.reason))) rows.push(row);
    }
    return { rows, counts, causes: [...causes].sort((a, b) => b[1] - a[1] || byText(a[0], b[0])) };
  }

  chosenDecisions(filter) {
    const text = filter.text.toLowerCase();
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

// A text selects by a part of a name: of the VM, of a claim, or of a node of both.
function selects(filter, row) {
  if (filter.namespace && row.namespace !== filter.namespace) return false;
  if (!filter.text) return true;
  const text = filter.text.toLowerCase();
  const found = (name) => name !== null && name.toLowerCase().includes(text);
  return found(row.name) || found(row.node) || row.volumes.some((each) => found(each.node) || found(each.claim));
}

const inTrouble = (row) => TROUBLE.includes(row.state);
