
/** Names the statement of a source that the pointer is at, or that the arrow keys lead to. */
const lineOf = (pre, event) => {
  const style = getComputedStyle(pre);
  const top = pre.getBoundingClientRect().top + pre.clientTop + parseFloat(style.paddingTop);
  return Math.floor((event.clientY - top + pre.scrollTop) / parseFloat(style.lineHeight));
};

const linesOf = new WeakMap();
const nameLine = (pre, index) => {
  if (!linesOf.has(pre)) linesOf.set(pre, JSON.parse(pre.dataset.lines));
  const lines = linesOf.get(pre);
  if (index < 0 || index >= lines.length) return;
  const words = [];
  for (let at = index; at !== null; at = lines[at][0]) if (lines[at][1]) words.unshift(lines[at][1]);
  pre.dataset.line = index;
  pre.style.setProperty("--line", index);
  pre.classList.add("named");
  pre.previousElementSibling.textContent = `Line ${index + 1}: ${words.join(" › ") || "closes what is open"}`;
};

document.addEventListener("pointermove", (event) => {
  const pre = event.target.closest?.("pre.source");
  if (pre) nameLine(pre, lineOf(pre, event));
});
document.addEventListener("keydown", (event) => {
  const pre = event.target.closest?.("pre.source");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!pre || !step) return;
  event.preventDefault();
  const index = Math.max(0, Number(pre.dataset.line ?? -1) + step);
  nameLine(pre, index);
  const height = parseFloat(getComputedStyle(pre).lineHeight);
  const at = Number(pre.dataset.line) * height;
  if (at < pre.scrollTop || at > pre.scrollTop + pre.clientHeight - 2 * height) pre.scrollTop = at - pre.clientHeight / 2;
});
