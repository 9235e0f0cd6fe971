// The lists: a table of all VMs that the reader can sort, and the last decisions.

import { $, ago, clock, el, spoken, plural, setText, sync } from "./dom.js";
import { STATES, byName, bySeverity, keyOf } from "./model.js";

const PAGE = 100; // rows; a button shows more
const DECISIONS = 100;
const LAST = "9999"; // sorts after all times

const COLUMNS = [
  { id: "state", title: "State", order: bySeverity },
  { id: "vm", title: "VM", order: (a, b) => byName(a.namespace, b.namespace) || byName(a.name, b.name) },
  { id: "node", title: "Node", order: (a, b) => byName(a.node ?? "~", b.node ?? "~") || bySeverity(a, b) },
  { id: "volumes", title: "Share-managers" },
  { id: "since", title: "Since", order: (a, b) => byTime(b.since, a.since) || bySeverity(a, b) },
  { id: "decided", title: "Asked → decided" },
  { id: "why", title: "Why" },
];

function byTime(a, b) {
  const [one, other] = [a ?? LAST, b ?? LAST];
  return one < other ? -1 : one > other ? 1 : 0;
}

const sorting = { id: "state", down: false };
let limit = PAGE;

export function startTable(changed) {
  const head = $("columns");
  for (const { id, title, order } of COLUMNS) {
    const cell = el("th", { scope: "col", class: id });
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
    limit += PAGE;
    changed();
  });
}

// Show the first rows again, because the filter has changed.
export const restart = () => (limit = PAGE);

export function showTable(rows, all, now) {
  for (const cell of $("columns").children) {
    if (cell.classList.contains(sorting.id)) cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  const { order } = COLUMNS.find((column) => column.id === sorting.id);
  const sorted = [...rows].sort(sorting.down ? (a, b) => order(b, a) : order);
  const shown = sorted.slice(0, limit);
  sync($("rows"), shown, keyOf, (row) => JSON.stringify(row), (row) => line(row, now));
  for (const time of $("rows").querySelectorAll("time")) setText(time, ago(time.dateTime, now));
  const of = rows.length < all ? ` of ${all.toLocaleString("en")}` : "";
  const cut = shown.length < rows.length ? `; the first ${shown.length} are listed` : "";
  setText($("vms-hint"), all ? `${plural(rows.length, "VM")}${of}${cut}` : "");
  $("more").hidden = shown.length === rows.length;
}

function line(row, now) {
  return el(
    "tr",
    { class: row.state },
    el("td", { class: "state" }, badge(row.state)),
    el("th", { scope: "row", class: "vm" }, el("span", { class: "namespace" }, `${row.namespace}/`), row.name),
    el("td", { class: "node" }, row.node ?? el("span", { class: "none" }, "none"), row.migrating ? el("small", {}, "migrating") : null),
    el("td", { class: "volumes" }, volumes(row)),
    el("td", { class: "since" }, row.since ? el("time", { datetime: row.since, title: row.since }, ago(row.since, now)) : el("span", { class: "none" }, "unknown")),
    el("td", { class: "decided" }, `${row.mode} → ${row.decided}`),
    el("td", { class: "why" }, el("code", {}, row.reason), " ", row.because),
  );
}

export function badge(state) {
  const { glyph, words } = STATES[state] ?? { glyph: "?", words: state };
  return el("span", { class: `badge ${state}`, title: words }, el("span", { class: "glyph", "aria-hidden": "true" }, glyph), state);
}

function volumes(row) {
  const items = row.volumes.map((volume) =>
    el(
      "li",
      { class: volume.together === false ? "apart" : volume.together ? "together" : "free", title: volume.volume },
      `${volume.claim} `,
      volume.node
        ? el("span", { class: "where" }, el("span", { "aria-hidden": "true" }, "→ "), spoken("on "), volume.node)
        : el("code", {}, volume.reason),
    ),
  );
  return items.length ? el("ul", {}, ...items) : el("span", { class: "none" }, "no claims");
}

export function showDecisions(decisions, model) {
  const shown = decisions.slice(0, DECISIONS);
  sync($("decisions"), shown, (each) => `${each.number}`, (each) => each.time, entry);
  const { total } = model;
  const kept = model.decisions.length;
  if (!total) setText($("decisions-hint"), "this replica has decided nothing yet");
  else if (shown.length < decisions.length || kept < total) setText($("decisions-hint"), `the last ${shown.length} of ${total.toLocaleString("en")} by this replica`);
  else setText($("decisions-hint"), `${total} by this replica${shown.length < total ? `; ${shown.length} shown` : ""}`);
}

function entry(each) {
  const name = each.namespace ? `${each.namespace}/${each.name ?? "?"}` : (each.name ?? "unreadable");
  const nodes = (each.nodes ?? []).length ? el("span", { class: "where" }, " → ", each.nodes.slice(0, 3).join(", "), each.nodes.length > 3 ? ` and ${each.nodes.length - 3} more` : "") : null;
  return el(
    "li",
    {},
    el(
      "p",
      {},
      el("time", { datetime: each.time }, clock(Date.parse(each.time))),
      " ",
      el("span", { class: `decision ${each.decision}` }, each.decision),
      " ",
      el("b", {}, name),
      nodes,
      each.entry === "share-manager" ? el("small", {}, "share-manager pod") : null,
      each.dry ? el("small", {}, "dry run") : null,
    ),
    el("p", { class: "because" }, el("code", {}, each.reason), " ", each.because, el("span", { class: "took" }, ` ${took(each.us)}`)),
  );
}

const took = (us) => (us < 1000 ? `${us} µs` : `${(us / 1000).toFixed(1)} ms`);
