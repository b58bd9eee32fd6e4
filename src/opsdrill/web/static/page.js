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
    const local = near.format(new Date(element.dateTime));
    if (element.hasAttribute("data-ago")) {
      element.title = local;
    } else {
      element.title = element.textContent ?? "";
      element.textContent = local;
    }
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
  toast("toast", words);
}

/**
 * Show everybody what was done, with a button, and Ctrl+Z, that takes it back as long as it is told.
 * @param {string} words
 * @param {() => void} back
 */
export function offer(words, back) {
  const undo = document.createElement("button");
  Object.assign(undo, { type: "button", className: "small", textContent: "Undo" });
  undo.addEventListener("click", () => {
    withdraw();
    back();
  });
  toast("toast done", words, " ", undo);
}

/** What was offered cannot be taken back any more. */
export function withdraw() {
  const place = document.getElementById("toast");
  if (place?.classList.contains("done")) place.hidden = true;
}

/** @param {string} kind @param {...(string | Node)} parts */
function toast(kind, ...parts) {
  const place = document.getElementById("toast");
  if (!place) return;
  place.className = kind;
  place.replaceChildren(...parts);
  place.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => (place.hidden = true), 12_000);
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey) return;
  // In a field it takes back what was typed there.
  if (event.target instanceof Element && event.target.matches("input:not([type=checkbox]), textarea, select")) return;
  /** @type {HTMLElement | null} */
  const undo = document.querySelector("#toast.done:not([hidden]) button");
  if (!undo) return;
  event.preventDefault();
  undo.click();
});

/**
 * Ask the API, with this session; its problem's sentence is the error's, which has the `problem`
 * too, and the `status`.
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
  const problem = await answer.json().catch(() => ({}));
  const told = [problem.detail ?? `the server answered ${answer.status}`, problem.hint];
  const words = told.filter(Boolean).join("; ");
  throw Object.assign(new Error(words), { status: answer.status, problem });
}

/**
 * Ask in a dialog whether a form shall be sent.
 * @param {HTMLFormElement} form
 * @param {() => void} go
 */
function ask(form, go) {
  const dialog = document.createElement("dialog");
  const words = document.createElement("p");
  words.id = "asked";
  words.textContent = form.dataset.confirm ?? "";
  const yes = document.createElement("button");
  yes.className = "danger";
  yes.textContent = form.dataset.button ?? "Yes";
  const no = document.createElement("button");
  no.textContent = "No, go back";
  const buttons = document.createElement("div");
  buttons.className = "actions";
  buttons.append(yes, no);
  dialog.append(words, buttons);
  dialog.setAttribute("aria-labelledby", "asked");
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => {
    dialog.close();
    go();
  });
  const asked = document.activeElement?.id;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (asked && document.activeElement === document.body) document.getElementById(asked)?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  no.focus();
}

/**
 * Show that a form was sent, so that nobody sends it twice.
 * @param {HTMLFormElement} form
 */
function busy(form) {
  const button = form.querySelector("button:not([type=button])");
  if (!(button instanceof HTMLButtonElement)) return;
  button.textContent = form.dataset.busy ?? button.textContent;
  button.disabled = true;
  say(form.dataset.busy ?? "");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
  if (form.dataset.confirm && !form.querySelector('input[name="sure"]')) {
    event.preventDefault();
    ask(form, () => {
      const sure = document.createElement("input");
      sure.type = "hidden";
      sure.name = "sure";
      sure.value = "yes";
      form.append(sure);
      if (!form.isConnected) {
        // What it stood in was made anew while the question was open.
        form.hidden = true;
        document.body.append(form);
      }
      form.requestSubmit();
    });
  } else if (form.dataset.busy) {
    busy(form);
  }
});

// A page that comes back from the browser's memory has buttons that wait for nothing.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!(button instanceof HTMLButtonElement) || !navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const field = document.getElementById(button.dataset.copy ?? "");
    if (!(field instanceof HTMLInputElement)) return;
    await navigator.clipboard.writeText(field.value);
    button.textContent = "Copied";
    say("Copied");
  });
}

const nav = document.querySelector(".top nav");
const here = nav?.querySelector("[aria-current]");
if (nav && here) {
  // In a narrow window the pages' names scroll.
  const beyond = here.getBoundingClientRect().right - nav.getBoundingClientRect().right;
  if (beyond > 0) nav.scrollLeft += beyond;
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
