"use strict";
const begin = () => {
  const table = document.getElementById("workloads");
  const rows = Array.from(table.tBodies[0].rows);
  const headings = Array.from(table.tHead.rows[0].cells);
  const search = document.getElementById("search");
  const target = document.getElementById("target");

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = !target.value || row.cells[1].dataset.sort === target.value;
      row.hidden = !fits || !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    document.getElementById("shown").textContent = `${count} shown`;
  };

  const sort = (column, heading) => {
    const rises = heading.getAttribute("aria-sort") !== "ascending";
    const key = (row) => row.cells[column].dataset.sort;
    rows.sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b;
      return rises ? order : -order;
    });
    for (const each of headings) each.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", rises ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  };

  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => sort(column, heading));
  });
  search.addEventListener("input", filter);
  target.addEventListener("change", filter);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  return { search, target, filter };
};

let controls = begin();
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
