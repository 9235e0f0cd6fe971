// What the page may say: the headline, and the banner. They never say more than the server knows.

import { clock, plural } from "./dom.js";
import { ORDER } from "./model.js";

const OLD_MS = 45000; // the server refreshes the rows every 10 s; older ones are reported
const BESIDE = ["free", "unknown"]; // not part of the percentage
const SILENT_MS = 30000; // the page asks every 2 s

// Until when the rows are certain: the last pass, or earlier if a cache was late then.
export const certain = (head) => (head.asOf < head.at ? head.asOf : head.at);
const utc = (at, now) => `${clock(at, now)} UTC`;

// The same in words.
export const asOf = (head, now) => utc(certain(head), now);

// Return why the page is not up to date, as sentences; none if it is.
export function problemsOf(head, { lostWhy, silentMs, paused, now }) {
  const problems = [];
  if (lostWhy !== null) problems.push(`Connection lost (${lostWhy}); trying again.`);
  else if (!paused && silentMs > SILENT_MS) problems.push("The server does not answer.");
  if (!head) return problems;
  if (!head.known) problems.push(`The server has not read the VMs${head.late.length ? `: ${head.late.join("; ")}` : " yet"}.`);
  else if (head.late.length) problems.push(`Not up to date: ${head.late.join("; ")}.`);
  const old = !head.files && head.known && !paused && now - Date.parse(head.at) > OLD_MS;
  if (old) problems.push(`The server has not refreshed the VMs since ${utc(head.at, now)}.`);
  if (problems.length && head.known) problems.push(`This page shows the state of ${asOf(head, now)}, which can have changed.`);
  return problems;
}

// Return why the page shows less than a page can, without any problem, as sentences.
export function limitsOf(head, { paused, now }) {
  const limits = [];
  if (head?.files) limits.push("This server answers from files (--manifests) and watches no cluster: ages count up to the time above.");
  if (paused) limits.push(`Paused: the page shows the state of ${asOf(head, now)}.`);
  return limits;
}

// Return one sentence on all VMs. `stale`: the rows can have changed.
export function headline(head, { stale, now }) {
  if (!head) return stale ? "The VMs are not known: the server does not answer" : "Not known yet";
  if (!head.known) return "The VMs are not known: the server has not read the cluster";
  const words = counted(head, stale);
  return stale ? `Not up to date. At ${asOf(head, now)}: ${words}` : words;
}

// `head.together`: the percentage of the VMs that can be compared; null if there is none. Free and unknown VMs are not.
function counted({ counts, together }, stale) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (!all) return stale ? "no VM that ran asked for co-scheduling" : "No VM that runs asks for co-scheduling";
  const said = (states) => states.filter((state) => counts[state]).map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  const beside = said(BESIDE);
  const left = BESIDE.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  if (together === null) return `${plural(all, "VM")}, none to compare: ${beside.join(", ")}`;
  const most = `${together} % together: ${counts.together.toLocaleString("en")} of ${plural(all - left, "VM")}`;
  const words = [most, ...said(ORDER.filter((state) => state !== "together" && !BESIDE.includes(state)))].join(", ");
  return beside.length ? `${words}; besides ${beside.join(", ")}` : words;
}

// Return why the list has no rows.
export function emptyWords(head, filter, all, { stale, now }) {
  if (!head) return "The page waits for the first answer of the server.";
  if (!head.known) return "The VMs are not known: the server has not read the cluster.";
  if (!all) {
    return stale
      ? `At ${asOf(head, now)} no VM that ran asked for co-scheduling. That can have changed.`
      : 'No VM that runs asks for co-scheduling. A VM asks by an annotation in spec.template.metadata.annotations, or its Namespace by a label: kubevirt-scheduler/co-schedule: "true".';
  }
  const parts = [];
  if (filter.namespace) parts.push(`namespace ${filter.namespace}`);
  if (filter.text) parts.push(`name or node “${filter.text}”`);
  if (filter.states.size) parts.push(`state ${[...filter.states].join(" or ")}`);
  if (filter.causes.size) parts.push(`cause ${[...filter.causes].join(" or ")}`);
  return `No VM matches the filter: ${parts.join(", ")}.`;
}
