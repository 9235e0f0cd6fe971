// Connects the parts: answers of the server go into the model, and the model onto the page. The filter is in the URL.

import { $, el, setText, sync } from "./dom.js";
import { follow } from "./feed.js";
import { restart, showDecisions, showTable, startTable } from "./lists.js";
import { Model, ORDER, STATES } from "./model.js";
import { asOf, certain, emptyWords, headline, limitsOf, problemsOf } from "./trust.js";

const SUMMARY_MS = 5000; // between two changes of the text that screen readers read out

const model = new Model();
const filter = { namespace: "", text: "", states: new Set(), causes: new Set() };
let ahead = 0; // by how much the server's clock is ahead of the browser's, ms
let answeredAt = 0; // by the browser's monotonic clock
let lostWhy = null;
let paused = false;
let resume = () => {};
let gate = Promise.resolve(); // resolved while the page is not paused

// The server's time now, and the time of the rows: ages count from that one.
const now = () => Date.now() + ahead;
const rowsAt = () => Date.parse(certain(model.head));

// Answers of the server.

function update(answer) {
  answeredAt = performance.now();
  lostWhy = null;
  ahead = answer.now - Date.now();
  if (answer.state) model.take(answer.state);
  if (answer.state) show();
  else trust();
}

function lost(why) {
  lostWhy = why;
  trust();
}

// The page.

function show() {
  if (!model.head) return;
  const { rows, counts, causes } = model.chosen(filter);
  showNamespaces();
  showStates(counts);
  showCauses(causes);
  showTable(rows, model.rows.size, rowsAt(), model);
  showDecisions(model.chosenDecisions(filter), model, now());
  $("clear").hidden = !(filter.namespace || filter.text || filter.states.size || filter.causes.size);
  trust();
}

// Say how much of the page is certain: the headline, a banner, and words in place of an empty list.
function trust() {
  const { head } = model;
  const silentMs = answeredAt ? performance.now() - answeredAt : 0;
  const at = now();
  const problems = problemsOf(head, { lostWhy, silentMs, paused, now: at });
  const stale = problems.length > 0;
  const words = [...problems, ...limitsOf(head, { paused, now: at })].join(" ");
  setText($("banner"), words);
  $("banner").hidden = !words;
  $("banner").classList.toggle("mild", !stale);
  document.body.classList.toggle("stale", stale);
  summarize(headline(head, { stale, now: at }));
  const { apart = 0, stuck = 0, "not-running": waiting = 0 } = head?.known ? head.counts : {};
  const troubled = apart + stuck + waiting;
  document.title = `${stale ? "(?) " : troubled ? `(${troubled}) ` : ""}kubevirt-coschedule`;
  $("none").hidden = $("rows").childElementCount > 0;
  setText($("none"), $("none").hidden ? "" : emptyWords(head, filter, model.rows.size, { stale, now: at }));
  document.body.classList.toggle("files", Boolean(head?.files));
  const age = head?.known ? `as of ${asOf(head, at)}` : head ? "not read yet" : "connecting";
  setText($("version"), head ? head.version : "");
  $("documents").hidden = !head?.documents;
  if (head?.documents) $("documents").href = head.documents;
  setText($("as-of"), head ? `${age} · ${head.cluster} · replica ${head.replica}` : age);
}

let summarizedAt = 0;
let due = 0;
function summarize(text) {
  clearTimeout(due);
  if ($("summary").textContent === text) return;
  const left = summarizedAt + SUMMARY_MS - performance.now();
  if (left > 0 && summarizedAt) due = setTimeout(() => summarize(text), left + 1);
  else {
    summarizedAt = performance.now();
    $("summary").textContent = text;
  }
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
    el("option", { value: "" }, `all namespaces (${spaces.length})`),
    ...spaces.map(([name, count]) => el("option", { value: name }, `${name} (${count.toLocaleString("en")})`)),
  );
  select.value = filter.namespace;
}

function startStates() {
  for (const state of ORDER) {
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
    button.hidden = model.head.known && !counts[state] && !filter.states.has(state);
    setText(button.lastElementChild, model.head.known ? (counts[state] ?? 0).toLocaleString("en") : "?");
  }
}

function showCauses(causes) {
  sync($("causes"), causes, ([cause]) => cause, ([cause, count]) => `${count} ${filter.causes.has(cause)}`, ([cause, count]) => {
    const button = el("button", { type: "button", "aria-pressed": String(filter.causes.has(cause)), "data-focus": "cause" }, `${cause} `, el("b", {}, count.toLocaleString("en")));
    button.addEventListener("click", () => {
      if (!filter.causes.delete(cause)) filter.causes.add(cause);
      filtered();
    });
    return el("span", {}, button);
  });
}

function filtered() {
  const chosen = new URLSearchParams();
  if (filter.namespace) chosen.set("namespace", filter.namespace);
  if (filter.text) chosen.set("text", filter.text);
  if (filter.states.size) chosen.set("state", [...filter.states].join(","));
  for (const cause of filter.causes) chosen.append("cause", cause);
  history.replaceState(null, "", chosen.size ? `?${chosen}` : location.pathname);
  restart();
  show();
}

function readFilter() {
  const chosen = new URLSearchParams(location.search);
  filter.namespace = chosen.get("namespace") ?? "";
  filter.text = $("text").value = chosen.get("text") ?? "";
  filter.states = new Set((chosen.get("state") ?? "").split(",").filter((state) => state in STATES));
  filter.causes = new Set(chosen.getAll("cause"));
}

function clear() {
  Object.assign(filter, { namespace: "", text: "", states: new Set(), causes: new Set() });
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
// A link to a part of the page leads below the filter, which stays at the top of a wide window and can have two lines.
const bar = document.querySelector("search");
new ResizeObserver(() => {
  const height = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  document.documentElement.style.scrollPaddingTop = `${height}px`;
}).observe(bar);
startStates();
startTable(show);
readFilter();
setInterval(trust, 1000);
follow(update, lost, () => gate);
