
const ranges = new Map(); // of each figure's axes, kept while a live page is renewed
const MOST_LISTED = 50;
const SVG = "http://www.w3.org/2000/svg";

const made = (name, text = "", attributes = {}) => {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};

const duration = (seconds) => {
  const [unit, size] = [["s", 1], ["ms", 1e-3], ["us", 1e-6]].find(([, size]) => seconds >= size) ?? ["ns", 1e-9];
  return `${(seconds / size).toPrecision(4)} ${unit}`;
};

/** The trials that a path draws: their places on the axes, their text in the path, and facts. */
const trialsOf = (path) => {
  const told = path.dataset.trials.split(",");
  const origins = path.parentNode.dataset.origins.split(" ");
  return path.getAttribute("d").split("M").slice(1).map((text, index) => {
    const [first, steps] = text.split("l");
    const places = [parseInt(first)];
    (steps ?? "").split(" ").forEach((step, turn) => {
      if (steps && turn % 2 === 0) places.push(places[places.length - 1] + Number(step));
    });
    const [number, latency, origin] = told[index].split(" ");
    return { path, text, places, number: Number(number), latency: latency ? Number(latency) * 1e-9 : Infinity, origin: origins[origin] };
  });
};

const begun = new WeakSet();
const beginBrush = (box) => {
  if (begun.has(box)) return;
  begun.add(box);
  const svg = box.closest("figure").querySelector("svg");
  const axes = Array.from(svg.querySelectorAll(".axis"), (group) => ({
    group, name: group.dataset.name, ticks: JSON.parse(group.dataset.ticks),
  }));
  const paths = Array.from(svg.querySelectorAll("path.trials[data-trials]"));
  const trials = paths.flatMap(trialsOf).sort((a, b) => a.latency - b.latency || a.number - b.number);
  const key = svg.getAttribute("aria-labelledby");
  const chosen = ranges.get(key) ?? axes.map(() => null);
  ranges.set(key, chosen);
  const rest = document.createElementNS(SVG, "path");
  rest.setAttribute("class", "rest");
  paths[0].before(rest);

  const controls = made("fieldset", "", { class: "axes" });
  controls.append(made("legend", "Choose trials from and to a value of each axis"));
  const selects = axes.map(({ name, ticks }, axis) => {
    const row = made("div", "", { role: "group", "aria-label": name });
    const pair = ["from", "to"].map((word, side) => {
      const select = made("select", "", { "aria-label": `${name} ${word}` });
      select.append(made("option", "any", { value: "" }));
      for (const [place, text] of ticks) select.append(made("option", text, { value: place }));
      select.addEventListener("change", () => {
        const [low, high] = pair.map((each) => each.value);
        chosen[axis] = low || high ? [Number(low || -1), Number(high || 1e9)] : null;
        if (chosen[axis] && chosen[axis][0] > chosen[axis][1]) chosen[axis].reverse();
        show();
      });
      return select;
    });
    row.append(made("span", name), pair[0], made("span", "to"), pair[1]);
    controls.append(row);
    return pair;
  });
  const all = made("button", "All trials", { type: "button" });
  all.addEventListener("click", () => { chosen.fill(null); show(); });
  const count = made("output", "", { "aria-live": "polite" });
  const table = made("table");
  const wide = made("div", "", { class: "wide", tabindex: 0, role: "region", "aria-label": "Trials chosen, the fastest first" });
  wide.append(table);
  controls.append(all);
  box.append(controls, count, wide);

  const valueAt = (axis, place) => axes[axis].ticks.find(([at]) => at === place)?.[1] ?? "";
  const head = ["trial", "latency", "by", ...axes.slice(1).map(({ name }) => name)];
  const show = () => {
    const fits = ({ places }) => chosen.every((range, axis) => !range || (range[0] <= places[axis] && places[axis] <= range[1]));
    const found = trials.filter(fits);
    const within = new Set(found);
    for (const path of paths) {
      path.setAttribute("d", found.filter((each) => each.path === path).map(({ text }) => `M${text}`).join(""));
    }
    rest.setAttribute("d", trials.filter((each) => !within.has(each)).map(({ text }) => `M${text}`).join(""));
    axes.forEach(({ group }, axis) => mark(group, chosen[axis]));
    selects.forEach((pair, axis) => pair.forEach((select, side) => {
      const end = chosen[axis]?.[side];
      const inside = axes[axis].ticks.map(([at]) => at).filter((at) => chosen[axis] && chosen[axis][0] <= at && at <= chosen[axis][1]);
      select.value = end === undefined || end < 0 || end >= 1e9 ? "" : inside.at(side ? -1 : 0) ?? "";
    }));
    const listed = found.slice(0, MOST_LISTED);
    count.textContent = `${found.length} of ${trials.length} trials chosen` + (found.length > listed.length ? `; the ${listed.length} fastest are listed` : "");
    const rows = listed.map((each) => {
      const row = made("tr");
      const cells = [each.number, each.latency < Infinity ? duration(each.latency) : "failed", each.origin,
        ...each.places.slice(1).map((place, axis) => valueAt(axis + 1, place))];
      row.append(...cells.map((text) => made("td", text)));
      return row;
    });
    const top = made("tr");
    top.append(...head.map((text) => made("th", text, { scope: "col" })));
    const [thead, tbody] = [made("thead"), made("tbody")];
    thead.append(top);
    tbody.append(...rows);
    table.replaceChildren(thead, tbody);
  };

  const mark = (group, range) => {
    const hit = group.querySelector(".hit");
    let box = group.querySelector(".range");
    if (!range) return box?.remove();
    if (!box) {
      box = document.createElementNS(SVG, "rect");
      box.setAttribute("class", "range");
      hit.before(box);
    }
    const [left, width] = [hit.x.baseVal.value, hit.width.baseVal.value];
    const [low, high] = [Math.max(range[0] - 4, left), Math.min(range[1] + 4, left + width)];
    for (const [name, value] of [["x", low], ["width", high - low], ["y", hit.y.baseVal.value], ["height", 24]]) box.setAttribute(name, value);
  };
  box.dragged = (axis, from, to) => {
    chosen[axis] = Math.abs(from - to) < 2 ? null : [Math.min(from, to), Math.max(from, to)];
    show();
  };
  show();
};

document.addEventListener("toggle", ({ target }) => {
  if (target.open && target.classList.contains("brush")) beginBrush(target);
}, true);
document.addEventListener("pointerdown", (event) => {
  const hit = event.target.closest?.("rect.hit");
  if (!hit) return;
  const svg = hit.closest("svg");
  const box = svg.closest("figure").querySelector(".brush");
  if (!box) return;
  box.open = true;
  beginBrush(box);
  const axis = Array.from(svg.querySelectorAll(".axis")).indexOf(hit.closest(".axis"));
  const at = ({ clientX, clientY }) => new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
  const from = at(event);
  const move = (next) => box.dragged(axis, from, at(next));
  hit.setPointerCapture(event.pointerId);
  hit.addEventListener("pointermove", move);
  hit.addEventListener("lostpointercapture", () => hit.removeEventListener("pointermove", move), { once: true });
  move(event);
});
