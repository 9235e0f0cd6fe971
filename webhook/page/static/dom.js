// Elements: made of text only, and kept while what they show is there, so that focus and selection stay.

export const $ = (id) => document.getElementById(id);

// An element with these attributes and children. Text becomes text, never markup.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// Text for those who hear the page.
export const heard = (text) => el("span", { class: "heard" }, text);

// Have one child of `parent` for each item, in order: kept by key, made anew where `print` of it has changed.
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
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true }); // it was moved
}

// Take over what `fresh` shows. The element stays, and focus that was in it comes back to its like.
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

// How long ago `at` (RFC 3339) was, at `now` (ms): the two largest units at most.
export function ago(at, now) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(at)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 && hours < 10 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

// A time as in logs: UTC.
export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);
