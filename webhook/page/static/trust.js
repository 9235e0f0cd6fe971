// What the page may say: the headline, and the banner. They never say more than the server knows.

import { clock, plural } from "./dom.js";
import { ORDER } from "./model.js";

const OLD_MS = 45000; // the server refreshes the rows every 10 s; older ones are reported
const SILENT_MS = 30000; // the page asks every 2 s

// Until when the rows are certain: the last pass, or earlier if a cache was late then.
export const certain = (head) => (head.asOf < head.at ? head.asOf : head.at);
const utc = (at) => `${clock(Date.parse(at))} UTC`;

// Return why the page is not up to date, as sentences; none if it is.
export function problemsOf(head, { lostWhy, silentMs, paused, now }) {
  const problems = [];
  if (lostWhy !== null) problems.push(`Connection lost (${lostWhy}); trying again.`);
  else if (!paused && silentMs > SILENT_MS) problems.push("The server does not answer.");
  if (!head) return problems;
  if (!head.known) problems.push(`The server has not read the VMs${head.late.length ? `: ${head.late.join("; ")}` : " yet"}.`);
  else if (head.late.length) problems.push(`Not up to date: ${head.late.join("; ")}.`);
  const old = !head.manifests && head.known && !paused && now - Date.parse(head.at) > OLD_MS;
  if (old) problems.push(`The server has not refreshed the VMs since ${utc(head.at)}.`);
  if (problems.length && head.known) problems.push(`This page shows the state of ${utc(certain(head))}, which can have changed.`);
  return problems;
}

// Return why the page shows less than a page can, without any problem, as sentences.
export function limitsOf(head, paused) {
  const limits = [];
  if (head?.manifests) limits.push("This server answers from files (--manifests) and watches no cluster.");
  if (paused) limits.push(`Paused: the page shows the state of ${clock(head.now)} UTC.`);
  return limits;
}

// Return one sentence on all VMs. `stale`: the rows can have changed.
export function headline(head, stale) {
  if (!head) return stale ? "The VMs are not known: the server does not answer" : "Not known yet";
  if (!head.known) return "The VMs are not known: the server has not read the cluster";
  const words = counted(head.counts, stale);
  return stale ? `Not up to date. At ${utc(certain(head))}: ${words}` : words;
}

function counted(counts, stale) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  if (!all) return stale ? "no VM that ran asked for co-scheduling" : "No VM that runs asks for co-scheduling";
  const others = ORDER.filter((state) => state !== "together" && counts[state]).map((state) => `${counts[state].toLocaleString("en")} ${state}`);
  const together = counts.together ?? 0;
  const share = Math.floor((100 * together) / all); // so that 100 % means all
  const most = `${share} % together: ${together.toLocaleString("en")} of ${plural(all, "VM")} with their share-manager`;
  return [most, ...others].join(", ");
}

// Return why the list has no rows.
export function emptyWords(head, filter, all, stale) {
  if (!head) return "The page waits for the first answer of the server.";
  if (!head.known) return "The VMs are not known: the server has not read the cluster.";
  if (!all) {
    return stale
      ? `At ${utc(certain(head))} no VM that ran asked for co-scheduling. That can have changed.`
      : 'No VM that runs asks for co-scheduling. A VM asks by an annotation in spec.template.metadata.annotations, or its Namespace by a label: kubevirt-scheduler/co-schedule: "true".';
  }
  const parts = [];
  if (filter.namespace) parts.push(`namespace ${filter.namespace}`);
  if (filter.text) parts.push(`name or node “${filter.text}”`);
  if (filter.states.size) parts.push(`state ${[...filter.states].join(" or ")}`);
  if (filter.causes.size) parts.push(`cause ${[...filter.causes].join(" or ")}`);
  return `No VM matches the filter: ${parts.join(", ")}.`;
}
