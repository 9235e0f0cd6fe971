// The nodes: a card for each, and a line from each VM's node to the node of a share-manager that is apart from the VM.

import { $, el, spoken, plural, setText, sync } from "./dom.js";
import { drawLines } from "./lines.js";
import { ORDER, STATES, keyOf, linksOf, nodesOf } from "./model.js";

const SHOWN = 5; // VMs on a card, and share-managers
const CARDS = 200;

const cardKey = (name) => `node ${name}`;

export function showNodes(rows, filtered, choose) {
  const nodes = nodesOf(rows);
  const links = linksOf(rows);
  const apart = new Set(links.flatMap((link) => [link.from, link.to]));
  // Of more than 200 nodes, those at the end of a line are drawn first.
  const drawn = nodes.length <= CARDS ? nodes : pick(nodes, apart);
  sync($("nodes"), drawn, (node) => cardKey(node.name), printOf, (node) => card(node, choose));
  setText($("nodes-hint"), hint(nodes, drawn, links, filtered));
  drawLines($("map"), $("lines"), links, cardKey);
}

function pick(nodes, apart) {
  const first = new Set(nodes.filter((node) => apart.has(node.name)).slice(0, CARDS));
  for (const node of nodes) if (first.size < CARDS) first.add(node);
  return nodes.filter((node) => first.has(node));
}

function hint(nodes, drawn, links, filtered) {
  if (!nodes.length) return "";
  const real = nodes.filter((node) => node.name !== "").length;
  const hidden = drawn.length < nodes.length ? ` (${drawn.length} drawn)` : "";
  const lines = links.length ? "a line leads from a VM's node to the node of its share-manager" : filtered ? "none of these VMs is apart" : "no VM is apart";
  return `${plural(real, "node")}${filtered ? " of the VMs chosen" : " with VMs or share-managers"}${hidden}; ${lines}`;
}

// Everything that a card shows. A card with the same print is not refilled.
function printOf(node) {
  const vms = node.vms.slice(0, SHOWN).map((row) => [keyOf(row), row.state, elsewhere(row), row.migrating]);
  const guests = node.guests.slice(0, SHOWN).map(({ row, volume }) => [keyOf(row), volume.claim, row.node]);
  return JSON.stringify([node.counts, node.volumes.size, node.guests.length, vms, guests]);
}

function elsewhere(row) {
  const nodes = new Set(row.volumes.filter((each) => each.together === false).map((each) => each.node));
  return [...nodes].sort().join(", ");
}

function card(node, choose) {
  const title = node.name || "on no node";
  const trouble = (node.counts.apart ?? 0) + (node.counts.stuck ?? 0) > 0;
  const facts = [plural(node.vms.length, "VM")];
  if (node.volumes.size) facts.push(plural(node.volumes.size, "share-manager"));
  const made = el(
    "li",
    { class: `card${trouble ? " trouble" : ""}${node.name ? "" : " nowhere"}` },
    el("h3", {}, title),
    el("p", { class: "facts" }, facts.join(" · ")),
    bar(node),
  );
  if (node.vms.length) made.append(el("ul", { class: "vms", "aria-label": `VMs ${node.name ? `on ${title}` : title}` }, ...node.vms.slice(0, SHOWN).map(vm)));
  if (node.vms.length > SHOWN) {
    const rest = plural(node.vms.length - SHOWN, "more VM");
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
    el("span", { class: "name" }, row.name),
    where ? el("span", { class: "where" }, el("span", { "aria-hidden": "true" }, "→ "), spoken("apart: share-manager on "), where) : spoken(`: ${row.state}`),
    row.migrating ? el("span", { class: "where" }, "migrating") : null,
  );
}

function guest({ row, volume }) {
  return el(
    "li",
    { title: `share-manager of claim ${volume.claim} (volume ${volume.volume}), used by VM ${keyOf(row)}` },
    el("span", { class: "glyph", "aria-hidden": "true" }, "◫"),
    el("span", { class: "name" }, volume.claim),
    el("span", { class: "where" }, row.node ? `VM on ${row.node}` : "VM on no node"),
  );
}
