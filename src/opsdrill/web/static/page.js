// What every page does: the theme, times in the reader's zone, errors and words for screen readers.

const root = document.documentElement;

document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `opsdrill-theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
});

const near = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/**
 * Show the times within an element in the reader's own zone.
 * @param {ParentNode} within
 */
export function localTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]:not([data-local])")) {
    if (!(element instanceof HTMLTimeElement)) continue;
    element.title ||= element.textContent ?? "";
    if (!element.hasAttribute("data-ago")) element.textContent = near.format(new Date(element.dateTime));
    element.dataset.local = "";
  }
}

/**
 * Tell a screen reader what changed elsewhere on the page.
 * @param {string} words
 */
export function say(words) {
  const place = document.getElementById("said");
  if (place) place.textContent = words;
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let hiding;

/**
 * Show everybody that something did not work, and why.
 * @param {string} words
 */
export function complain(words) {
  const place = document.getElementById("toast");
  if (!place) return;
  place.textContent = words;
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (place.hidden = true), 12_000);
}

/**
 * Ask the API, with this session; its problem's sentence is the error's.
 * @param {string} path
 * @param {RequestInit} [how]
 * @returns {Promise<Response>}
 */
export async function call(path, how = {}) {
  const token = document.querySelector('meta[name="csrf"]')?.getAttribute("content") ?? "";
  const headers = new Headers(how.headers);
  headers.set("Accept", "application/json");
  headers.set("X-CSRF-Token", token);
  const answer = await fetch(path, { ...how, headers });
  if (answer.ok) return answer;
  throw Object.assign(new Error(await why(answer)), { status: answer.status });
}

/** @param {Response} answer */
async function why(answer) {
  const problem = await answer.clone().json().catch(() => ({}));
  const told = [problem.detail ?? `the server answered ${answer.status}`, problem.hint];
  return told.filter(Boolean).join("; ");
}

localTimes(document);
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.target instanceof Element) localTimes(event.target);
});
document.addEventListener("htmx:oobAfterSwap", () => localTimes(document));
document.addEventListener("htmx:sendError", () => complain("The server cannot be reached."));
document.addEventListener("htmx:responseError", (event) => {
  const xhr = /** @type {CustomEvent} */ (event).detail.xhr;
  let words = `The server answered ${xhr.status}.`;
  try {
    words = JSON.parse(xhr.responseText).detail ?? words;
  } catch {
    // no problem details: the status must do
  }
  complain(words);
});
