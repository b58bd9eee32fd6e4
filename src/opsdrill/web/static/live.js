// What a run's page did not come with: the record, where reading it takes long; and of a run that
// goes on what happens, until the page is that of a finished run.

import { button, h, shown as shownText } from "./dom.js";
import { call, localTimes, say } from "./page.js";
import { arrive, shown } from "./transcript.js";

const SOON = 300; // milliseconds between two looks at least
const PARTS = ["run-head", "run-rules", "run-lanes", "run-ticket", "run-hosts"];
const RECORDED = ["run-lanes", "run-ticket", "transcript", "run-hosts"];

const run = document.getElementById("run");

/** The page as it is now, with its record. */
async function whole() {
  const here = new URL(location.href);
  here.searchParams.set("wait", "yes");
  const answer = await call(here.pathname + here.search);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

/** Put what was recorded where the page said that it is being read. @param {Document} fresh */
function takeRecorded(fresh) {
  const unread = document.getElementById("run-unread");
  if (!unread) return;
  const parts = RECORDED.map((id) => fresh.getElementById(id)).filter((part) => part !== null);
  parts.forEach(localTimes);
  unread.replaceWith(...parts.map((part) => document.adoptNode(part)));
  shown();
  const target = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  if (parts.some((part) => part.contains(target))) target?.scrollIntoView();
  arrive();
}

/** Take over the parts of a page that changed. @param {Document} fresh */
function take(fresh) {
  for (const id of PARTS) {
    const old = document.getElementById(id);
    const now = fresh.getElementById(id);
    if (!old || !now) continue;
    localTimes(now);
    if (id === "run-head") keepStep(now);
    if (old.innerHTML === now.innerHTML) continue;
    keepOpen(old, now);
    const focus = old.contains(document.activeElement) ? path(old, /** @type {Element} */ (document.activeElement)) : null;
    old.replaceWith(document.adoptNode(now));
    if (focus) again(now, focus);
  }
  document.title = fresh.title;
  takeLines(fresh);
  takeRecorded(fresh);
}

/** Take over how many lines there are. @param {Document} fresh */
function takeLines(fresh) {
  if (document.getElementById("run-unread")) return;
  const lines = fresh.getElementById("lines");
  const total = Number(lines?.dataset.total ?? 0);
  const count = document.getElementById("lines-count");
  const told = fresh.getElementById("lines-count");
  if (count && told) count.textContent = told.textContent;
  const known = document.getElementById("lines");
  if (!known && lines) {
    const section = document.getElementById("transcript");
    const now = fresh.getElementById("transcript");
    if (section && now) section.replaceWith(document.adoptNode(now));
    shown();
  } else {
    if (known && lines) known.dataset.live = lines.dataset.live;
    shown()?.grow(total);
    const none = document.getElementById("no-lines");
    if (none) none.textContent = fresh.getElementById("no-lines")?.textContent ?? "";
    const jump = document.getElementById("jump");
    const tasks = fresh.getElementById("jump");
    if (jump && tasks && jump !== document.activeElement) jump.innerHTML = tasks.innerHTML;
  }
}

let line = "";

/** What the run waits for is told by events alone. @param {Element} head */
function keepStep(head) {
  const step = head.querySelector("#step");
  if (step) step.textContent = line;
}

/** What was open stays open. @param {Element} old @param {Element} now */
function keepOpen(old, now) {
  const known = [...old.querySelectorAll("details")];
  const fresh = [...now.querySelectorAll("details")];
  if (known.length !== fresh.length) return;
  known.forEach((one, place) => { if (one.open) fresh[place].open = true; });
}

/** The place of an element below another. @param {Element} from @param {Element} to */
function path(from, to) {
  const steps = [];
  for (let at = to; at !== from && at.parentElement; at = at.parentElement) {
    steps.unshift([...at.parentElement.children].indexOf(at));
  }
  return steps;
}

/** @param {Element} from @param {number[]} steps */
function again(from, steps) {
  /** @type {Element | undefined} */
  let at = from;
  for (const step of steps) at = at?.children[step];
  if (at instanceof HTMLElement || at instanceof SVGElement) at.focus();
}

/** Let the time of a run that goes on go on, by this machine's clock from what the server said. */
function tick() {
  const took = document.getElementById("took");
  if (!took) return;
  const now = performance.now() / 1000;
  took.dataset.from ??= String(now - Number(took.dataset.seconds));
  took.textContent = inWords(now - Number(took.dataset.from));
}

/** A length of time as the server writes it. @param {number} seconds */
function inWords(seconds) {
  if (seconds < 10) return `${Math.max(seconds, 0).toFixed(1)} s`;
  for (const [size, unit] of /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "min"]])) {
    if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}

/** Follow a run until it is over. @param {string} id */
function follow(id) {
  setInterval(tick, 1000);
  const news = new EventSource(`/api/v1/runs/${id}/events`);
  let asked = false;
  let again = false;
  let pause = SOON;
  let over = false;
  const look = async () => {
    if (asked) {
      again = true;
      return;
    }
    asked = true;
    await new Promise((done) => setTimeout(done, over ? 0 : pause));
    again = false;
    const began = performance.now();
    try {
      take(await whole());
    } catch {
      again = true; // the server may be away for a moment
      pause = 2000;
    }
    pause = Math.max(SOON, 3 * (performance.now() - began));
    asked = false;
    if (document.querySelector("#step") === null) {
      news.close();
      run?.removeAttribute("data-live");
      say(`The run is over: ${document.querySelector("#run-head .verdict")?.textContent ?? ""}`);
    } else if (again || over) look();
  };
  news.addEventListener("phase", (event) => {
    const phase = JSON.parse(event.data).phase;
    if (phase.status === "running") say(`${phase.name} began`);
    line = "";
    look();
  });
  news.addEventListener("job", look);
  news.addEventListener("step", (event) => {
    line = JSON.parse(event.data).line;
    const step = document.getElementById("step");
    if (step) step.textContent = line;
  });
  news.addEventListener("result", () => {
    over = true;
    news.close();
    look();
  });
  news.addEventListener("error", look);
  if (document.getElementById("run-unread")) look();
}

/** The record of a run that is over, which the page came without. */
async function read() {
  try {
    take(await whole());
    say("What was recorded is there now");
  } catch (error) {
    const words = `What was recorded cannot be shown: ${/** @type {Error} */ (error).message}.`;
    const again = button("Try again", read, { class: "small" });
    document.getElementById("run-unread")?.replaceChildren(
      h("div", { class: "body" }, h("div", { class: "notice failed", role: "alert" }, h("p", {}, shownText(words)), again)),
    );
  }
}

if (run?.hasAttribute("data-live")) follow(run.dataset.run ?? "");
else if (document.getElementById("run-unread")) read();
