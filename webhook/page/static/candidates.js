// The candidates: VMs that run, have a share-manager and do not ask for co-scheduling. The server decides for those
// that are listed, so the page asks for rows only while the list is unfolded. The server reads no VirtualMachines.

import { command } from "./detail.js";
import { $, breakable, clock, el, plural, setText, sync } from "./dom.js";
import { badge, volumes } from "./lists.js";
import { keyOf } from "./model.js";

const EVERY_MS = 10000;
const ANSWER_MS = 25000;
const FEW = 5; // so many are listed without a click
const FIRST = 20;
const MORE = 50;
const MOST = 200; // in an answer
const HOW = "These VMs run, have a share-manager and do not ask for co-scheduling. The line of a VM opts it in, from its next start on. VMs that are stopped are not in this list: kubevirt-coschedule candidates -A shows these, too.";

let page = null; // its filter, whether it is at rest, and what to call after an answer
let told = null; // the last answer
let lost = null; // why there is no newer one
let unfolded = null; // null: the reader has not chosen
let limit = FIRST;
let asked = 0;
let due = 0;

// Begin to ask. `of` is { filter, rests, changed }: `rests` tells whether nobody looks at changes now.
export function startCandidates(of) {
  page = of;
  $("unfold").addEventListener("click", () => {
    unfolded = !isUnfolded();
    show();
    ask();
  });
  $("more-candidates").addEventListener("click", () => {
    limit = Math.min(limit + MORE, MOST);
    ask();
  });
  document.addEventListener("visibilitychange", again);
  ask();
}

// Ask again, because the filter has changed.
export function restartCandidates() {
  limit = FIRST;
  ask();
}

// Return the namespaces that have candidates.
export const candidateNamespaces = () => told?.namespaces ?? [];

// Return what the headline says of the candidates; an empty text if there are none, or if they are not known.
export function candidateWords() {
  if (!told?.known || !told.total || lost !== null || told.late.length) return "";
  const { apart = 0 } = told.counts;
  const others = told.total === 1 ? "1 other VM that runs has a share-manager and does" : `${told.total.toLocaleString("en")} other VMs that run have a share-manager and do`;
  return `${others} not ask${apart ? `, ${apart.toLocaleString("en")} apart` : ""}`;
}

const isUnfolded = () => unfolded ?? (told?.total ?? 0) <= FEW;

function again() {
  clearTimeout(due);
  if (page.rests()) due = setTimeout(again, EVERY_MS);
  else ask();
}

async function ask() {
  clearTimeout(due);
  const number = ++asked;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), ANSWER_MS);
  let answer = told;
  let failed = null;
  try {
    answer = await answered(told?.known && isUnfolded() ? limit : 0, stop.signal);
  } catch (error) {
    failed = stop.signal.aborted ? `no answer within ${ANSWER_MS / 1000} s` : error instanceof TypeError ? "no connection" : error.message;
  }
  clearTimeout(timer);
  if (number !== asked) return; // the reader has asked for something else meanwhile
  const first = told === null;
  const counted = !told?.known && answer?.known && answer.total > 0;
  told = answer;
  lost = failed;
  show();
  page.changed(first);
  if (counted && isUnfolded()) ask();
  else due = setTimeout(again, EVERY_MS);
}

async function answered(rows, signal) {
  const { filter } = page;
  const query = new URLSearchParams({ namespace: filter.namespace, text: filter.text, state: [...filter.states].join(","), limit: rows });
  const answer = await fetch(`api/candidates?${query}`, { signal, cache: "no-store" });
  if (!answer.ok) throw new Error((await answer.text()).trim().slice(0, 200) || `HTTP ${answer.status}`);
  return await answer.json();
}

function show() {
  if (!told) return;
  const none = told.known && !told.total && !told.late.length;
  $("candidates").hidden = $("to-candidates").hidden = none;
  const open = isUnfolded() && told.known;
  $("unfold").setAttribute("aria-expanded", String(open));
  $("candidates-shown").hidden = !open;
  setText($("candidates-hint"), hint(open));
  if (!open) return;
  setText($("candidates-how"), told.audit ? `${HOW} This server audits (--audit=on): it tells these decisions, and does not carry them out.` : HOW);
  sync($("candidate-rows"), told.rows, keyOf, (row) => JSON.stringify(row), line);
  const left = Math.min(told.matching, MOST) - told.rows.length;
  $("more-candidates").hidden = left <= 0;
  setText($("more-candidates"), `Show ${Math.min(MORE, left)} more`);
}

// How many there are, and how certain that is.
function hint(open) {
  if (!told.follows) return "not known, because this server watches no pods: run kubevirt-coschedule candidates -A";
  if (!told.known) return `not known: ${told.late.length ? told.late.join("; ") : "the server has not read the pods of the VMs yet"}`;
  const { apart = 0 } = told.counts;
  const parts = [`${plural(told.total, "running VM")}, ${apart.toLocaleString("en")} apart`];
  if (told.matching < told.total) parts.push(`the filter selects ${told.matching.toLocaleString("en")}`);
  if (open && told.rows.length < told.matching) parts.push(`the first ${told.rows.length} are listed`);
  const at = `${clock(Date.parse(told.at))} UTC`;
  if (lost !== null) parts.push(`not up to date (${lost}): as of ${at}`);
  else if (told.late.length) parts.push(`not up to date (${told.late.join("; ")}): as of ${at} or earlier`);
  return parts.join("; ");
}

function line(row) {
  return el(
    "tr",
    { class: row.state, role: "row" },
    el("td", { class: "state", role: "cell" }, badge(row.state)),
    el("th", { scope: "row", class: "vm", role: "rowheader" }, el("span", { class: "namespace" }, ...breakable(`${row.namespace}/`)), el("span", { class: "name" }, ...breakable(row.name))),
    el("td", { class: "node", role: "cell" }, ...(row.node ? breakable(row.node) : [el("span", { class: "none" }, "no node")])),
    el("td", { class: "volumes", role: "cell" }, volumes(row)),
    el("td", { class: "next", role: "cell" }, ...next(row)),
    el("td", { class: "why", role: "cell" }, ...why(row)),
    el("td", { class: "change", role: "cell" }, row.change ? command(["", row.change], `change-${keyOf(row)}`) : el("p", { class: "soft" }, `No line: ${row.noChange}.`)),
  );
}

function next({ next: start }) {
  if (!start) return [el("span", { class: "decision" }, "not known")];
  if (start.followed) return [el("span", { class: "decision preferred" }, "share-manager follows")];
  const shown = [el("span", { class: `decision ${start.decision}` }, start.decision)];
  if (start.nodes.length) shown.push(" ", el("span", { class: "where" }, ...breakable(start.nodes.join(", "))));
  return shown;
}

function why({ next: start, unknown, annotation }) {
  const because = start ? [el("code", {}, start.reason), " ", ...breakable(start.because)] : [unknown];
  return annotation === null ? because : [...because, el("p", { class: "cure" }, "Its annotation says ", el("code", {}, `kubevirt-scheduler/co-schedule: "${annotation}"`))];
}
