// The lists: a table of all VMs that the reader can sort and open, and the last decisions.

import { detail } from "./detail.js";
import { $, ago, breakable, clock, el, spoken, plural, setText, sync } from "./dom.js";
import { STATES, bySeverity, byText, keyOf } from "./model.js";

const FIRST = 50; // rows; a button shows more
const MORE = 100;
const DECISIONS = 100;
const LAST = "9999"; // sorts after all times

const COLUMNS = [
  { id: "state", title: "State", order: bySeverity },
  { id: "vm", title: "VM", order: (a, b) => byText(a.sortVM, b.sortVM) },
  { id: "node", title: "Node", order: (a, b) => byText(a.sortNode, b.sortNode) || bySeverity(a, b) },
  { id: "volumes", title: "Share-managers" },
  { id: "since", title: "Since", order: (a, b) => byText(b.since ?? LAST, a.since ?? LAST) || bySeverity(a, b) },
  { id: "why", title: "Why" },
];

const sorting = { id: "state", down: false };
const open = new Set(); // the keys of the rows that are open
let limit = FIRST;

export function startTable(changed) {
  const head = $("columns");
  for (const { id, title, order } of COLUMNS) {
    const cell = el("th", { scope: "col", role: "columnheader", class: id });
    if (order) {
      const button = el("button", { type: "button" }, title);
      button.addEventListener("click", () => {
        sorting.down = sorting.id === id && !sorting.down;
        sorting.id = id;
        changed();
      });
      cell.append(button);
    } else cell.append(title);
    head.append(cell);
  }
  $("more").addEventListener("click", () => {
    const before = limit;
    limit += MORE;
    changed();
    $("rows").children[before]?.querySelector("th button").focus({ preventScroll: true });
  });
  $("rows").addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!row || (event.target.closest("button, .detail") && !event.target.closest(".opener")) || `${getSelection()}`) return;
    if (!open.delete(row.dataset.key)) open.add(row.dataset.key);
    changed();
  });
}

// Show the first rows again, because the filter has changed.
export const restart = () => (limit = FIRST);

export function showTable(rows, all, now, model) {
  for (const cell of $("columns").children) {
    if (cell.classList.contains(sorting.id)) cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  const { order } = COLUMNS.find((column) => column.id === sorting.id);
  const sorted = [...rows].sort(sorting.down ? (a, b) => order(b, a) : order);
  const shown = sorted.slice(0, limit);
  sync($("rows"), shown, keyOf, (row) => print(row, now, model), (row) => line(row, now, model));
  for (const time of $("rows").querySelectorAll("time.since")) setText(time, ago(time.dateTime, now));
  const of = rows.length < all ? ` of ${all.toLocaleString("en")}` : "";
  const cut = shown.length < rows.length ? `; the first ${shown.length} are listed` : "";
  setText($("vms-hint"), all ? `${plural(rows.length, "VM")}${of}${cut}` : "");
  $("more").hidden = shown.length === rows.length;
  setText($("more"), `Show ${Math.min(MORE, rows.length - shown.length)} more`);
}

// What a row shows. A row with the same print is not refilled.
function print(row, now, model) {
  if (!open.has(keyOf(row))) return row.print;
  const decision = model.decisionOn(row);
  return JSON.stringify([row.print, decision?.time, decision && clock(decision.time, now)]);
}

function line(row, now, model) {
  const key = keyOf(row);
  const opened = open.has(key);
  const opener = el(
    "button",
    { type: "button", class: "opener", "aria-expanded": String(opened), "aria-label": key, "data-focus": "opener" },
    el("span", { class: "namespace" }, ...breakable(`${row.namespace}/`)),
    el("span", { class: "name" }, ...breakable(row.name)),
  );
  return el(
    "tr",
    { class: `${row.state}${opened ? " open" : ""}`, role: "row" },
    el("td", { class: "state", role: "cell" }, badge(row.state)),
    el("th", { scope: "row", class: "vm", role: "rowheader" }, opener),
    el("td", { class: "node", role: "cell" }, ...(row.node ? breakable(row.node) : [el("span", { class: "none" }, "no node")]), row.migrating ? el("small", {}, "migrating") : null),
    el("td", { class: "volumes", role: "cell" }, volumes(row)),
    el("td", { class: "since", role: "cell" }, row.since ? el("time", { class: "since", datetime: row.since, title: row.since }, ago(row.since, now)) : el("span", { class: "none" }, "unknown")),
    el("td", { class: "why", role: "cell" }, row.state === "together" ? "" : row.reason),
    opened ? el("td", { class: "details", role: "cell" }, detail(row, { decision: model.decisionOn(row), options: model.head.options, now })) : null,
  );
}

function badge(state) {
  const { glyph, words } = STATES[state] ?? { glyph: "?", words: state };
  return el("span", { class: `badge ${state}`, title: words }, el("span", { class: "glyph", "aria-hidden": "true" }, glyph), state);
}

function volumes(row) {
  const items = row.volumes.map((volume) =>
    el(
      "li",
      { class: volume.together === false ? "apart" : volume.together ? "together" : "free", title: volume.volume },
      ...breakable(volume.claim),
      " ",
      volume.node
        ? el("span", { class: "where" }, el("span", { "aria-hidden": "true" }, "→ "), spoken("on "), ...breakable(volume.node))
        : el("code", {}, volume.reason),
    ),
  );
  return items.length ? el("ul", {}, ...items) : el("span", { class: "none" }, "no claims");
}

export function showDecisions(decisions, model, now) {
  const shown = decisions.slice(0, DECISIONS);
  sync($("decisions"), shown, (each) => `${each.number}`, (each) => `${each.time} ${clock(each.time, now)}`, (each) => entry(each, now));
  const { total } = model;
  const of = shown.length < total ? `${shown.length} of ` : "";
  setText($("decisions-hint"), total ? `${of}${total.toLocaleString("en")} by this replica` : "this replica has decided nothing yet");
}

function entry(each, now) {
  const name = each.namespace ? `${each.namespace}/${each.name ?? "?"}` : (each.name ?? "unreadable");
  const nodes = (each.nodes ?? []).length ? el("span", { class: "where" }, " → ", each.nodes.slice(0, 3).join(", "), each.nodes.length > 3 ? ` and ${each.nodes.length - 3} more` : "") : null;
  return el(
    "li",
    {},
    el(
      "p",
      {},
      el("time", { datetime: each.time }, clock(each.time, now)),
      " ",
      el("span", { class: `decision ${each.decision}` }, each.decision),
      " ",
      el("b", {}, name),
      nodes,
      each.entry === "share-manager" ? el("small", {}, "share-manager pod") : null,
      each.dry ? el("small", {}, "dry run") : null,
    ),
    el("p", { class: "because" }, el("code", {}, each.reason), " ", ...breakable(each.because), el("span", { class: "took" }, ` ${took(each.us)}`)),
  );
}

const took = (us) => (us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(1)} ms`);
