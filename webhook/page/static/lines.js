// Lines between cards. They run through the gaps of the grid, so that no line crosses text.

const SVG = "http://www.w3.org/2000/svg";
const LANES = [0, 5, -5, 10, -10];
const HEAD = 24; // below a card's upper edge: its title
const ROUND = 7;

let again = () => {};
let watching = null;

// With `many` lines only those of the card that has the pointer or the focus are drawn.
export function drawLines(map, svg, links, keyOf, many) {
  again = () => draw(map, svg, links, keyOf);
  again();
  svg.classList.toggle("many", many);
  if (!watching) {
    watching = new ResizeObserver(() => again());
    watching.observe(map);
    light(map, svg);
  }
}

function draw(map, svg, links, keyOf) {
  const base = map.getBoundingClientRect();
  const boxes = new Map();
  for (const card of map.querySelectorAll(".card")) {
    const box = card.getBoundingClientRect();
    boxes.set(card.dataset.key, {
      left: box.left - base.left, right: box.right - base.left,
      top: box.top - base.top, bottom: box.bottom - base.top,
    });
  }
  const { columnGap, rowGap } = getComputedStyle(map.firstElementChild);
  const gaps = { x: parseFloat(columnGap) / 2, y: parseFloat(rowGap) / 2 };
  svg.setAttribute("viewBox", `0 0 ${base.width} ${base.height}`);
  const drawn = [];
  for (const [number, link] of links.entries()) {
    const from = boxes.get(keyOf(link.from));
    const to = boxes.get(keyOf(link.to));
    if (from && to) drawn.push(line(link, route(from, to, gaps, LANES[number % LANES.length], number)));
  }
  const before = new Map([...svg.children].map((each) => [each.dataset.key, each]));
  for (const each of drawn) {
    const old = before.get(each.dataset.key);
    if (old) {
      each.setAttribute("class", old.getAttribute("class"));
      old.replaceWith(each);
      before.delete(each.dataset.key);
    } else svg.append(each);
  }
  for (const gone of before.values()) gone.remove();
}

// Return the corner points of a line from one card's title to the other's.
function route(from, to, gaps, lane, number) {
  const y = (box, end) => box.top + HEAD + end * 8 + (number % 3) * 3;
  const start = y(from, 1), end = y(to, -1);
  const same = Math.abs(from.left - to.left) < 1;
  const right = same || to.left > from.left;
  const x1 = (right ? from.right + gaps.x : from.left - gaps.x) + lane;
  const x2 = (same || !right ? to.right + gaps.x : to.left - gaps.x) + lane;
  const points = [[right ? from.right : from.left, start], [x1, start]];
  if (Math.abs(x1 - x2) > 1) {
    const level = Math.abs(from.top - to.top) < 1;
    const between = level || to.top > from.top ? to.top - gaps.y : to.bottom + gaps.y;
    points.push([x1, between + lane * 0.7], [x2, between + lane * 0.7]);
  }
  points.push([x2, end], [same || !right ? to.right : to.left, end]);
  return points;
}

// Return an SVG path along the corners, with rounded turns.
function path(points) {
  let text = `M${points[0].join(" ")}`;
  for (let i = 1; i < points.length - 1; i++) {
    const [x, y] = points[i];
    const before = towards(points[i], points[i - 1]);
    const after = towards(points[i], points[i + 1]);
    text += `L${before.join(" ")}Q${x} ${y} ${after.join(" ")}`;
  }
  return `${text}L${points.at(-1).join(" ")}`;
}

function towards([x, y], [toX, toY]) {
  const far = Math.hypot(toX - x, toY - y);
  const step = far ? Math.min(ROUND, far / 2) / far : 0;
  return [x + (toX - x) * step, y + (toY - y) * step];
}

function svgEl(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function line(link, points) {
  const [x, y] = points.at(-1);
  const inward = points.at(-2)[0] < x ? 1 : -1;
  const made = svgEl(
    "g",
    { class: "link" },
    svgEl("path", { d: path(points), "stroke-width": Math.min(5, 1.5 + Math.log2(link.vms.size)) }),
    svgEl("circle", { cx: points[0][0], cy: points[0][1], r: 4 }),
    svgEl("path", { class: "arrow", d: `M${x} ${y}l${-9 * inward} -5.5v11z` }),
  );
  if (link.vms.size > 1) {
    const [fromX, fromY] = points[0];
    const out = points[1][0] > fromX ? 1 : -1;
    made.append(svgEl("text", { x: fromX - out * 8, y: fromY + 4, "text-anchor": out > 0 ? "end" : "start" }, `${link.vms.size}`));
  }
  Object.assign(made.dataset, { key: link.key, from: link.from, to: link.to, vms: link.vms.size });
  return made;
}

// Highlight the lines of the card that has the pointer or the focus.
function light(map, svg) {
  const set = (card) => {
    const name = card?.dataset.key.slice("node ".length);
    svg.classList.toggle("dimmed", [...svg.children].filter((each) => each.classList.toggle("lit", name !== undefined && (each.dataset.from === name || each.dataset.to === name))).length > 0);
  };
  for (const kind of ["pointerover", "focusin"]) map.addEventListener(kind, (event) => set(event.target.closest?.(".card")));
  for (const kind of ["pointerleave", "focusout"]) map.addEventListener(kind, () => set(null));
}
