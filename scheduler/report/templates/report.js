"use strict";
const table = document.getElementById("workloads");
const body = table.tBodies[0];
const rows = Array.from(body.rows);
const search = document.getElementById("search");
const target = document.getElementById("target");
const shown = document.getElementById("shown");

const filter = () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const fits = !target.value || row.cells[1].dataset.sort === target.value;
    row.hidden = !fits || !words.every((word) => text.includes(word));
    count += !row.hidden;
  }
  shown.textContent = `${count} shown`;
};

const sort = (column, heading) => {
  const rises = heading.getAttribute("aria-sort") !== "ascending";
  const key = (row) => row.cells[column].dataset.sort;
  rows.sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (a === "" || b === "") return (a === "") - (b === "");
    const both = a !== "" && b !== "" && !isNaN(a) && !isNaN(b);
    const order = both ? a - b : a.localeCompare(b);
    return rises ? order : -order;
  });
  for (const each of table.tHead.rows[0].cells) each.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", rises ? "ascending" : "descending");
  body.append(...rows);
};

Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
  heading.querySelector("button").addEventListener("click", () => sort(column, heading));
});
search.addEventListener("input", filter);
target.addEventListener("change", filter);
document.querySelector("form.filters").addEventListener("submit", (event) => event.preventDefault());
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
