// The open row: what was decided, its nodes, and commands to copy.

import { $, ago, breakable, clock, el, setText } from "./dom.js";

const SAID_MS = 2000;
const BY = { vm: "", namespace: " by the Namespace's label", cluster: " by the cluster's setting" };

// Return the nodes of a row, each { name, roles, apart }: the VM's own first.
function nodesOfRow(row) {
  const found = new Map();
  const at = (name) => {
    if (!found.has(name)) found.set(name, { name, roles: [], apart: false });
    return found.get(name);
  };
  if (row.node) at(row.node).roles.push("the VM runs here");
  if (row.onlyNode) at(row.onlyNode).roles.push("the VM may start only here");
  for (const volume of row.volumes) {
    if (volume.node === null) continue;
    const node = at(volume.node);
    node.roles.push({ claim: volume.claim, since: volume.since });
    node.apart ||= volume.together === false;
  }
  return [...found.values()];
}

export function detail(row, { decision, options, now }) {
  return el(
    "div",
    { class: "detail" },
    part("Why", el("code", {}, row.reason), " ", ...breakable(row.because)),
    row.remedy ? part("What to do", ...breakable(row.remedy)) : null,
    row.reunite ? part("reunite", ...breakable(row.reunite)) : null,
    el("section", {}, el("h4", {}, "Decision"), ...decided(row, decision, now)),
    el("section", {}, el("h4", {}, "Nodes"), ...places(row, now)),
    el("section", {}, el("h4", {}, "Commands"), ...commandsOf(row, options).map(command)),
  );
}

const part = (title, ...words) => el("section", { class: "wide" }, el("h4", {}, title), el("p", {}, ...words));

function decided(row, decision, now) {
  const annotation = `The VM asks for “${row.asked || row.mode}”${BY[row.askedBy]}, which means ${row.mode} here. `;
  const noted = {
    nothing: `Its pod carries no decision: the API server did not call the webhook, or got no answer${row.askedBy === "vm" ? "" : ", or the VM did not ask yet"}.`,
    migrated: "Its pod is the target of a live migration, for which the API server does not call the webhook.",
    unchanged: "The webhook left its pod unchanged.",
    null: "No pod of it was found.",
  };
  const shown = [el("p", {}, annotation, noted[row.decided] ?? `The webhook decided “${row.decided}” when its pod was created.`)];
  if (!decision) return shown;
  const where = decision.nodes?.length ? ` → ${decision.nodes.join(", ")}` : "";
  shown.push(
    el("p", {}, "The last call about it on this replica: ", el("time", { datetime: decision.time }, `${clock(decision.time, now)} UTC`), " ", el("span", { class: `decision ${decision.decision}` }, decision.decision), where),
    el("p", { class: "soft" }, el("code", {}, decision.reason), " ", ...breakable(decision.because)),
  );
  return shown;
}

function places(row, now) {
  const items = nodesOfRow(row).map(({ name, roles, apart }) => {
    return el(
      "li",
      {},
      el("b", {}, ...breakable(name)),
      " ",
      apart ? el("span", { class: "apart mark" }, "apart from the VM") : null,
      el("ul", {}, ...roles.map((role) => el("li", {}, ...(role.claim ? serving(role, now) : breakable(role))))),
    );
  });
  const without = row.volumes.filter((volume) => volume.node === null);
  for (const volume of without) {
    items.push(el("li", {}, el("b", {}, "on no node"), el("ul", {}, el("li", {}, `share-manager of claim ${volume.claim}`)), el("p", { class: "soft" }, el("code", {}, volume.reason), " ", ...breakable(volume.because))));
  }
  return [items.length ? el("ul", { class: "places" }, ...items) : el("p", { class: "soft" }, "The VM and its share-managers are on no node.")];
}

// The table keeps the text of each `time.since` up to date.
const serving = ({ claim, since }, now) => [
  ...breakable(`share-manager of claim ${claim}${since ? ", for " : ""}`),
  since ? el("time", { class: "since", datetime: since }, ago(since, now)) : "",
];

function commandsOf({ namespace, name, kind, command }, options) {
  const where = `-n ${namespace}${options && ` ${options}`}`;
  const commands = [["Explain: what would be decided now, and why", `kubevirt-coschedule explain ${kind}/${name} ${where}`]];
  commands.push(["Status: this VM in a terminal", `kubevirt-coschedule status ${name} ${where}`]);
  if (command) commands.push(["List: the migration that brings it together, without a change", command]);
  return commands;
}

// A command with a button that copies it.
function command([title, text], index) {
  const button = el("button", { type: "button", "data-focus": `copy-${index}`, "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", () => copy(text, button));
  return el("div", { class: "command" }, el("p", { class: "soft" }, title), el("code", {}, ...unbrokenFlags(text)), button);
}

// Return the parts of a command, so that no line ends within a flag.
const unbrokenFlags = (text) => text.split(/(?<= )(--?[a-z]\S*)/).map((part) => (part.startsWith("-") ? el("span", { class: "flag" }, part) : part));

async function copy(text, button) {
  const done = (await written(text)) ? "Copied" : "Not copied";
  setText(button, done);
  setText($("copied"), `${done}: ${text}`);
  setTimeout(() => {
    setText(button, "Copy");
    setText($("copied"), "");
  }, SAID_MS);
}

// Write to the clipboard. Browsers have the first way only over HTTPS and on localhost.
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "spoken", readonly: true, "aria-hidden": "true" });
    field.value = text;
    const focused = document.activeElement;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    focused?.focus();
    return done;
  }
}
