// Wires: what the server tells goes into the model, and the model onto the page; what is chosen is in the URL.

import { $, clock, el, plural, setText } from "./dom.js";
import { follow } from "./feed.js";
import { restart, showDecisions, showTable, startTable } from "./lists.js";
import { Model, ORDER, STATES } from "./model.js";
import { showNodes } from "./nodes.js";

const OLD_MS = 45000; // the server looks every 10 s: rows older than this are not kept up
const SILENT_MS = 30000; // it answers every 10 s
const SUMMARY_MS = 5000; // a screen reader is told no more often

const model = new Model();
const filter = { namespace: "", text: "", states: new Set() };
let ahead = 0; // the server's clock before ours, ms
let heardAt = 0; // by our monotonic clock
let lostWhy = null;
let paused = false;
let goOn = () => {};
let gate = Promise.resolve(); // through while not paused

const now = () => Date.now() + ahead;

// What the server tells.

function news(answer) {
  heardAt = performance.now();
  lostWhy = null;
  ahead = Date.parse(answer.now) - Date.now();
  model.take(answer);
  show();
}

function lost(why) {
  lostWhy = why;
  trust();
}

// What is shown.

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

let told = 0;
function summarize() {
  const text = summary();
  document.title = `${troubleTitle()}kubevirt-coschedule`;
  if ($("summary").textContent === text) return;
  const due = told + SUMMARY_MS - performance.now();
  if (due > 0 && told) setTimeout(summarize, due + 1);
  else {
    told = performance.now();
    $("summary").textContent = text;
  }
}

function troubleTitle() {
  const { apart = 0, stuck = 0 } = model.head.known ? model.head.counts : {};
  return apart + stuck ? `(${apart + stuck}) ` : "";
}

function summary() {
  const { follows, known, counts } = model.head;
  if (!follows) return "No VMs are followed: this server answers from files";
  if (!known) return "Not known yet";
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (!all) return "No VM has asked for co-scheduling";
  const others = ORDER.filter((state) => state !== "together" && counts[state]).map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  const most = `${(counts.together ?? 0).toLocaleString("en")} of ${plural(all, "VM")} together with their share-manager`;
  return [most, ...others].join(", ");
}

// How far what is shown can be trusted: said in words wherever it is not up to date.
function trust() {
  const problems = [];
  const { head } = model;
  if (lostWhy !== null) problems.push(`Connection lost (${lostWhy}); trying again.`);
  else if (!paused && heardAt && performance.now() - heardAt > SILENT_MS) problems.push("The server has gone silent.");
  if (head?.follows && !head.known) problems.push("The VMs are not known yet: the caches are being filled.");
  if (head?.late.length) problems.push(`Not up to date: ${head.late.join("; ")}.`);
  if (head?.follows && head.known && now() - Date.parse(head.at) > OLD_MS && !paused) problems.push(`VMs have not been looked at since ${clock(Date.parse(head.at))} UTC.`);
  if (problems.length && head?.known) problems.push(`What is shown is as of ${clock(Date.parse(head.at))} UTC, and may have changed.`);
  if (head && !head.follows && !problems.length) problems.push("This server answers from files (--manifests) and follows no cluster: only its decisions are shown.");
  if (paused) problems.push(`Paused: this is as of ${clock(Date.parse(head.now))} UTC.`);
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
    button.classList.toggle("nobody", !counts[state]);
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

// The VMs of one node, in the list.
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
  setText($("pause"), paused ? "Go on" : "Pause");
  goOn();
  if (paused) gate = new Promise((resolve) => (goOn = resolve));
  heardAt = performance.now();
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
follow(news, lost, () => gate);
