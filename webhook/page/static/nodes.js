// The nodes: cards for those that need a look, with lines to the nodes of share-managers; cells for the others.

import { $, breakable, el, spoken, plural, setText, sync } from "./dom.js";
import { drawLines } from "./lines.js";
import { ORDER, STATES, inTrouble, keyOf, linksOf, nodesOf, troubled } from "./model.js";

const SHOWN = 5; // VMs on a card, and share-managers
const FEW = 12; // so many nodes all have a card
const CARDS = 24; // of more nodes, at most so many
const LINES = 8; // a reader can't follow more lines: then only those of one card are drawn
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

let started = false;

const cardKey = (name) => `node ${name}`;

// `problems`: node name -> why no VM can start there; null if the server does not know.
export function showNodes(rows, filtered, problems, choose) {
  const nodes = nodesOf(rows);
  const few = nodes.length <= FEW;
  const cards = few ? nodes : worst(nodes);
  const carded = new Set(cards);
  const names = new Set(cards.map((node) => node.name));
  const links = linksOf(rows);
  const drawn = links.filter((link) => names.has(link.from) && names.has(link.to));
  sync($("nodes"), cards, (node) => cardKey(node.name), (node) => printOf(node, few, problems), (node) => card(node, few, problems, choose));
  showCells(nodes.filter((node) => !carded.has(node)), problems, choose);
  setText($("nodes-hint"), hint(nodes, cards, links, filtered, drawn));
  drawLines($("map"), $("lines"), drawn, cardKey, drawn.length > LINES);
}

// The nodes with trouble, those with the most of it first.
function worst(nodes) {
  const weight = (node) => 1000 * ((node.counts.stuck ?? 0) + (node.counts["not-running"] ?? 0)) + (node.counts.apart ?? 0) + (node.counts.unknown ?? 0) + node.guests.length;
  return nodes.filter(troubled).sort((a, b) => weight(b) - weight(a)).slice(0, CARDS);
}

function hint(nodes, cards, links, filtered, drawn) {
  if (!nodes.length) return "";
  const real = nodes.filter((node) => node.name !== "").length;
  const bad = nodes.filter(troubled).length;
  const some = cards.length < bad ? `the worst ${cards.length} of ${bad} with trouble` : `the ${bad} with trouble`;
  const part = cards.length === nodes.length ? "" : bad ? `; ${some} ${cards.length === 1 ? "has a card" : "have cards"}` : "; none has trouble";
  const many = drawn.length > LINES && matchMedia("(hover: hover)").matches ? "; point at a card to see its lines" : "";
  const lines = links.length ? `a line leads from a VM's node to the node of its share-manager${many}` : filtered ? "none of these VMs is apart" : "no VM is apart";
  return `${plural(real, "node")}${filtered ? " of the VMs chosen" : " with VMs or share-managers"}${part}; ${lines}`;
}

// The VMs that a card names. Where only nodes with trouble have cards, these are the VMs with trouble.
const named = (node, few) => (few ? node.vms : node.vms.filter(inTrouble)).slice(0, SHOWN);

// Everything that a card shows. A card with the same print is not refilled.
function printOf(node, few, problems) {
  const vms = named(node, few).map((row) => [keyOf(row), row.state, elsewhere(row), row.migrating]);
  const guests = node.guests.slice(0, SHOWN).map(({ row, volume }) => [keyOf(row), volume.claim, row.node]);
  return JSON.stringify([node.counts, node.volumes.size, node.guests.length, vms, guests, problems?.[node.name]]);
}

function elsewhere(row) {
  const nodes = new Set(row.volumes.filter((each) => each.together === false).map((each) => each.node));
  return [...nodes].sort().join(", ");
}

function card(node, few, problems, choose) {
  const title = node.name || "on no node";
  const trouble = troubled(node);
  const facts = [plural(node.vms.length, "VM")];
  if (node.volumes.size) facts.push(plural(node.volumes.size, "share-manager"));
  const made = el(
    "li",
    { class: `card${trouble ? " trouble" : ""}${node.name ? "" : " nowhere"}` },
    el("h3", {}, ...breakable(title)),
    el("p", { class: "facts" }, facts.join(" · ")),
    problems?.[node.name] ? el("p", { class: "bad" }, el("span", { class: "glyph", "aria-hidden": "true" }, "⊘"), problems[node.name]) : null,
    bar(node),
  );
  const shown = named(node, few);
  if (shown.length) made.append(el("ul", { class: "vms", "aria-label": `VMs ${node.name ? `on ${title}` : title}` }, ...shown.map(vm)));
  if (node.vms.length > shown.length) {
    const rest = plural(node.vms.length - shown.length, shown.length ? "more VM" : "VM");
    const more = el("button", { type: "button", class: "link", "data-focus": "more" }, rest, spoken(` of ${title}: list all`));
    more.addEventListener("click", () => choose(node.name));
    if (node.name) made.append(more);
    else made.append(el("p", { class: "facts" }, rest));
  }
  if (node.guests.length) {
    made.append(el("ul", { class: "guests", "aria-label": `Share-managers on ${title} without their VM` }, ...node.guests.slice(0, SHOWN).map(guest)));
    if (node.guests.length > SHOWN) made.append(el("p", { class: "facts" }, plural(node.guests.length - SHOWN, "more share-manager")));
  }
  return made;
}

// A bar with the share of each state, and the numbers in words for screen readers.
function bar(node) {
  const present = ORDER.filter((state) => node.counts[state]);
  const words = present.map((state) => `${node.counts[state]} ${state}`).join(", ");
  const made = el("p", { class: "bar", role: "img", "aria-label": words || "no VMs", title: words });
  for (const state of present) {
    const part = el("span", { class: state });
    part.style.flexGrow = node.counts[state];
    made.append(part);
  }
  return made;
}

function vm(row) {
  const where = row.state === "apart" ? elsewhere(row) : "";
  return el(
    "li",
    { class: row.state, title: `${keyOf(row)}: ${row.because}` },
    el("span", { class: "glyph", "aria-hidden": "true" }, STATES[row.state]?.glyph ?? "?"),
    el("span", { class: "name" }, ...breakable(row.name)),
    " ",
    where ? el("span", { class: "where" }, el("span", { "aria-hidden": "true" }, "→ "), spoken("apart: share-manager on "), where) : spoken(`: ${row.state}`),
    row.migrating ? el("span", { class: "where" }, "migrating") : null,
  );
}

function guest({ row, volume }) {
  return el(
    "li",
    { title: `share-manager of claim ${volume.claim} (volume ${volume.volume}), used by VM ${keyOf(row)}` },
    el("span", { class: "glyph", "aria-hidden": "true" }, "◫"),
    el("span", { class: "name" }, ...breakable(volume.claim)),
    " ",
    el("span", { class: "where" }, row.node ? `VM on ${row.node}` : "VM on no node"),
  );
}

// The nodes without a card: a small cell for each, with the part of its name that the others do not share.

function showCells(nodes, problems, choose) {
  const list = $("cells");
  start(list);
  const cut = shared(nodes.map((node) => node.name));
  const short = (name) => name.slice(cut.before, name.length - cut.after) || name;
  const longest = nodes.reduce((most, node) => Math.max(most, short(node.name).length), 2);
  list.style.setProperty("--cell", `${longest + 3}ch`);
  sync(list, nodes, (node) => `cell ${node.name}`, (node) => printOfCell(node, short, problems), (node) => cell(node, short, problems, choose));
  rove(list, list.querySelector('button[tabindex="0"]') ?? list.querySelector("button"));
  const name = nodes[0]?.name ?? "";
  const words = cut.before + cut.after ? `, without the shared part of their names (${name.slice(0, cut.before)}…${name.slice(name.length - cut.after)})` : "";
  setText($("cells-hint"), nodes.length ? `${plural(nodes.length, "other node")}${words}; grey: no VM there is stuck, not running, apart or unknown` : "");
}

function printOfCell(node, short, problems) {
  return JSON.stringify([node.name, short(node.name), node.counts, node.vms.length, node.volumes.size, problems?.[node.name]]);
}

function cell(node, short, problems, choose) {
  const worst = ORDER.find((each) => node.counts[each]) ?? "free";
  const state = node.guests.length && !node.counts.stuck && !node.counts["not-running"] ? "apart" : worst;
  const words = ORDER.filter((each) => node.counts[each]).map((each) => `${node.counts[each]} ${each}`).join(", ");
  const problem = problems?.[node.name];
  const guests = node.guests.length ? `${plural(node.guests.length, "share-manager")} without its VM` : "";
  const said = [plural(node.vms.length, "VM"), words, plural(node.volumes.size, "share-manager"), guests, problem].filter(Boolean).join(", ");
  const button = el("button", { type: "button", class: problem ? "unusable" : state === "free" ? "together" : state, title: `${node.name}: ${said}`, tabindex: "-1", "data-focus": "cell" });
  const glyph = problem ? "⊘" : troubled(node) || state === "pending" ? STATES[state].glyph : "";
  if (glyph) button.append(el("span", { class: "glyph", "aria-hidden": "true" }, glyph));
  button.append(el("span", { "aria-hidden": "true" }, short(node.name)), spoken(`${node.name}: ${said}: list them`));
  button.addEventListener("click", () => choose(node.name));
  return el("li", {}, button);
}

// Return how many characters at the start and the end of all names are the same, up to a separator.
function shared(names) {
  if (names.length < 2) return { before: 0, after: 0 };
  const [first] = names;
  const least = Math.min(...names.map((name) => name.length));
  let before = 0;
  while (before < least && names.every((name) => name[before] === first[before])) before++;
  while (before > 0 && !"-./".includes(first[before - 1])) before--;
  let after = 0;
  while (after < least - before && names.every((name) => name.at(-1 - after) === first.at(-1 - after))) after++;
  while (after > 0 && !"-./".includes(first.at(-after))) after--;
  return { before, after };
}

// One tab stop for all cells: arrows, Home and End move between them.
function start(list) {
  if (started) return;
  started = true;
  list.addEventListener("keydown", (event) => {
    const buttons = [...list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    const to = event.key === "Home" ? 0 : event.key === "End" ? buttons.length - 1 : event.key in STEPS ? at + STEPS[event.key] : -1;
    if (at < 0 || !buttons[to]) return;
    event.preventDefault();
    rove(list, buttons[to]);
    buttons[to].focus();
  });
}

function rove(list, chosen) {
  list.querySelector('button[tabindex="0"]')?.setAttribute("tabindex", "-1");
  chosen?.setAttribute("tabindex", "0");
}
