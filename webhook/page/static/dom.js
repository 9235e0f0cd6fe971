// Elements of the page. They contain text only. An element stays while its item exists, so that focus and selection stay.

export const $ = (id) => document.getElementById(id);

// Return an element with these attributes and children. A string becomes text, never markup.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// Text for screen readers only.
export const spoken = (text) => el("span", { class: "spoken" }, text);

// Return the parts of a text, so that a line can end after each / and -. Browsers allow this except before a digit. The
// style sheet adds the break, because a <wbr> would make screen readers say a pause.
export function breakable(text) {
  return text.split(/(?<=[/-])(?=\d)/).flatMap((part, index) => (index ? [el("span", { class: "break", "aria-hidden": "true" }), part] : [part]));
}

// Give `parent` one child for each item, in order. A child keeps its element by `key`, and is refilled if `print` changed.
export function sync(parent, items, key, print, make) {
  const before = new Map();
  const wanted = new Set(items.map(key));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  for (const child of [...parent.children]) {
    if (wanted.has(child.dataset.key)) before.set(child.dataset.key, child);
    else child.remove();
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const shown = print(item);
    let child = before.get(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
      child.shown = shown;
    } else if (child.shown !== shown) {
      refill(child, make(item));
      child.shown = shown;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true }); // the browser drops the focus of a moved element
}

// Show what `fresh` shows. The element stays, and so does the focus inside it.
function refill(child, fresh) {
  const focused = child.contains(document.activeElement) ? document.activeElement : null;
  const name = focused && focused !== child ? focused.dataset.focus : undefined;
  for (const attribute of fresh.attributes) child.setAttribute(attribute.name, attribute.value);
  child.replaceChildren(...fresh.childNodes);
  if (name !== undefined) child.querySelector(`[data-focus="${name}"]`)?.focus();
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

// Return the time from `at` (RFC 3339) to `now` (ms) in at most two units.
export function ago(at, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(at)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

const DAY_MS = 86400000;

// A time of day in UTC, as in logs; with its date if it is more than a day before `now` (ms).
export function clock(at, now) {
  const text = new Date(at).toISOString();
  return now - Date.parse(at) > DAY_MS ? `${text.slice(0, 10)} ${text.slice(11, 19)}` : text.slice(11, 19);
}
