
const token = new URLSearchParams(location.search).get("token");
const news = document.getElementById("news");
let known = news.dataset.state;

const renew = async () => {
  const answer = await fetch(location.pathname + location.search, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const { search, target } = controls;
  const typing = document.activeElement === search;
  const open = Array.from(document.querySelectorAll("details"), (each) => each.open);
  document.querySelector("main").replaceWith(next.querySelector("main"));
  document.querySelectorAll("details").forEach((each, place) => (each.open = open[place] ?? false));
  controls = begin();
  controls.search.value = search.value;
  controls.target.value = target.value;
  controls.filter();
  if (typing) controls.search.focus();
};

const look = async () => {
  try {
    const answer = await fetch(`state?token=${encodeURIComponent(token)}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const { state } = await answer.json();
    if (state !== known) await renew();
    known = state;
    news.textContent = "Live.";
  } catch {
    news.textContent = "No answer; this page asks again.";
  }
  setTimeout(look, 1000);
};
look();
