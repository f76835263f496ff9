
const token = new URLSearchParams(location.search).get("token");
const news = document.getElementById("news");
let known = news.dataset.state;

const say = (text) => {
  if (news.textContent !== text) news.textContent = text;
};

const answerOf = async (place) => {
  const answer = await fetch(`${place}?token=${encodeURIComponent(token)}`, { cache: "no-store" });
  if (answer.ok) return answer;
  const why = (await answer.text()).trim();
  if (answer.status === 403) throw new Error(`The server says: ${why}. Open its new address.`);
  throw new Error(`The database does not answer; this page asks again. ${why}`);
};

const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

const renewJobs = (part) => {
  const next = parsed(part).body;
  const jobs = document.getElementById("jobs");
  if (next.innerHTML === jobs.innerHTML) return;
  const scrolled = Array.from(jobs.querySelectorAll(".wide"), (each) => each.scrollLeft);
  const focused = Array.from(jobs.querySelectorAll(".wide")).indexOf(document.activeElement);
  jobs.replaceChildren(...next.childNodes);
  const places = jobs.querySelectorAll(".wide");
  places.forEach((each, place) => (each.scrollLeft = scrolled[place] ?? 0));
  places[focused]?.focus({ preventScroll: true });
};

const renewPage = async () => {
  const next = parsed(await (await answerOf(location.pathname)).text());
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
  known = next.getElementById("news").dataset.state;
};

const look = async () => {
  try {
    const { state, part } = await (await answerOf("news")).json();
    if (state !== known) await renewPage();
    renewJobs(part);
    say("Live.");
  } catch (error) {
    say(error instanceof TypeError ? "Nobody answers; this page asks again." : error.message);
  }
  setTimeout(look, 1000);
};
look();
