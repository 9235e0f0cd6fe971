// Connects the parts: answers of the server go into the model, and the model onto the page. The filter is in the URL.

import { $, clock, el, plural, setText } from "./dom.js";
import { follow } from "./feed.js";
import { restart, showDecisions, showTable, startTable } from "./lists.js";
import { Model, ORDER, STATES } from "./model.js";
import { showNodes } from "./nodes.js";

const OLD_MS = 45000; // the server refreshes the rows every 10 s; older ones are reported
const SILENT_MS = 30000; // the server answers every 10 s
const SUMMARY_MS = 5000; // between two changes of the text that screen readers read out

const model = new Model();
const filter = { namespace: "", text: "", states: new Set() };
let ahead = 0; // by how much the server's clock is ahead of the browser's, ms
let answeredAt = 0; // by the browser's monotonic clock
let lostWhy = null;
let paused = false;
let resume = () => {};
let gate = Promise.resolve(); // resolved while the page is not paused

const now = () => Date.now() + ahead;

// Answers of the server.

function update(answer) {
  answeredAt = performance.now();
  lostWhy = null;
  ahead = Date.parse(answer.now) - Date.now();
  model.take(answer);
  show();
}

function lost(why) {
  lostWhy = why;
  trust();
}

// The page.

function show() {
  if (!model.head) return;
  const { rows, counts } = model.chosen(filter);
  showNamespaces();
  showStates(counts);
  showNodes(rows, rows.length < model.rows.size, chooseNode);
  showTable(rows, model.rows.size, now());
  showDecisions(model.chosenDecisions(filter), model);
  $("clear").hidden = !(filter.namespace || filter.text || filter.states.size);
  summarize();
  trust();
}

let summarizedAt = 0;
function summarize() {
  const text = summary();
  document.title = `${troubleTitle()}kubevirt-coschedule`;
  if ($("summary").textContent === text) return;
  const due = summarizedAt + SUMMARY_MS - performance.now();
  if (due > 0 && summarizedAt) setTimeout(summarize, due + 1);
  else {
    summarizedAt = performance.now();
    $("summary").textContent = text;
  }
}

function troubleTitle() {
  const { apart = 0, stuck = 0 } = model.head.known ? model.head.counts : {};
  return apart + stuck ? `(${apart + stuck}) ` : "";
}

function summary() {
  const { follows, known, counts } = model.head;
  if (!follows) return "No VMs are shown: this server answers from files";
  if (!known) return "Not known yet";
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (!all) return "No VM has asked for co-scheduling";
  const others = ORDER.filter((state) => state !== "together" && counts[state]).map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  const most = `${(counts.together ?? 0).toLocaleString("en")} of ${plural(all, "VM")} together with their share-manager`;
  return [most, ...others].join(", ");
}

// Show a banner if the page is not up to date, with the reasons.
function trust() {
  const problems = [];
  const { head } = model;
  if (lostWhy !== null) problems.push(`Connection lost (${lostWhy}); trying again.`);
  else if (!paused && answeredAt && performance.now() - answeredAt > SILENT_MS) problems.push("The server does not answer.");
  if (head?.follows && !head.known) problems.push("The VMs are not known yet: the server fills its caches.");
  if (head?.late.length) problems.push(`Not up to date: ${head.late.join("; ")}.`);
  if (head?.follows && head.known && now() - Date.parse(head.at) > OLD_MS && !paused) problems.push(`The server has not refreshed the VMs since ${clock(Date.parse(head.at))} UTC.`);
  if (problems.length && head?.known) problems.push(`This page shows the state of ${clock(Date.parse(head.at))} UTC, which can have changed.`);
  if (head && !head.follows && !problems.length) problems.push("This server answers from files (--manifests) and watches no cluster: the page shows its decisions only.");
  if (paused) problems.push(`Paused: the page shows the state of ${clock(Date.parse(head.now))} UTC.`);
  const stale = problems.length > 0;
  setText($("banner"), problems.join(" "));
  $("banner").hidden = !stale;
  document.body.classList.toggle("stale", stale && !(head && !head.follows && lostWhy === null));
  const at = head?.at ? `as of ${clock(Date.parse(head.at))} UTC` : head ? "live" : "connecting";
  setText($("as-of"), head ? `${at} · replica ${head.replica}` : at);
}

// The filter.

function showNamespaces() {
  const select = $("namespace");
  const spaces = model.namespaces();
  if (filter.namespace && !spaces.some(([name]) => name === filter.namespace)) spaces.push([filter.namespace, 0]);
  const print = JSON.stringify([spaces, filter.namespace]);
  if (select.shown === print) return;
  select.shown = print;
  select.replaceChildren(
    el("option", { value: "" }, `all (${spaces.length})`),
    ...spaces.map(([name, count]) => el("option", { value: name }, `${name} (${count.toLocaleString("en")})`)),
  );
  select.value = filter.namespace;
}

function startStates() {
  for (const state of [...ORDER].reverse()) {
    const { glyph, words } = STATES[state];
    const button = el("button", { type: "button", class: state, "aria-pressed": "false", title: words, "data-state": state });
    button.append(el("span", { class: "glyph", "aria-hidden": "true" }, glyph), `${state} `, el("b", {}, "0"));
    button.addEventListener("click", () => {
      if (!filter.states.delete(state)) filter.states.add(state);
      filtered();
    });
    $("states").append(button);
  }
}

function showStates(counts) {
  for (const button of $("states").children) {
    const { state } = button.dataset;
    button.setAttribute("aria-pressed", String(filter.states.has(state)));
    button.classList.toggle("empty", !counts[state]);
    setText(button.lastElementChild, (counts[state] ?? 0).toLocaleString("en"));
  }
}

function filtered() {
  const chosen = new URLSearchParams();
  if (filter.namespace) chosen.set("namespace", filter.namespace);
  if (filter.text) chosen.set("text", filter.text);
  if (filter.states.size) chosen.set("state", [...filter.states].join(","));
  history.replaceState(null, "", chosen.size ? `?${chosen}` : location.pathname);
  restart();
  show();
}

function readFilter() {
  const chosen = new URLSearchParams(location.search);
  filter.namespace = chosen.get("namespace") ?? "";
  filter.text = $("text").value = chosen.get("text") ?? "";
  filter.states = new Set((chosen.get("state") ?? "").split(",").filter((state) => state in STATES));
}

// Show the VMs of one node in the list.
function chooseNode(name) {
  filter.text = $("text").value = name;
  filtered();
  $("vms").focus();
  $("vms").scrollIntoView({ block: "start" });
}

function clear() {
  Object.assign(filter, { namespace: "", text: "", states: new Set() });
  $("text").value = "";
  filtered();
  $("text").focus();
}

function pause() {
  paused = !paused && model.head !== null;
  $("pause").setAttribute("aria-pressed", String(paused));
  setText($("pause"), paused ? "Resume" : "Pause");
  resume();
  if (paused) gate = new Promise((resolve) => (resume = resolve));
  answeredAt = performance.now();
  trust();
}

$("namespace").addEventListener("change", () => {
  filter.namespace = $("namespace").value;
  filtered();
});
let typing = 0;
$("text").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    filter.text = $("text").value.trim();
    filtered();
  }, 120);
});
$("clear").addEventListener("click", clear);
$("pause").addEventListener("click", pause);
startStates();
startTable(show);
readFilter();
setInterval(() => {
  if (!document.hidden && !paused && model.head) showTable(model.chosen(filter).rows, model.rows.size, now());
  trust();
}, 15000);
setInterval(trust, 1000);
follow(update, lost, () => gate);
