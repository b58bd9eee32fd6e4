// The scenario form: one scenario as fields and as JSON, checked while it is written, and saved.

import { h, said } from "./dom.js";
import { BadJson, parse, write } from "./json.js";
import { call, complain, say, withdraw } from "./page.js";
import { atFields, counted, listed, numbered } from "./problems.js";
import { Editor, isObject } from "./scenario.js";
import { sections } from "./sections.js";
import { SupportFiles } from "./support.js";
import { lookAt } from "./try.js";

/** @typedef {import("./problems.js").Problem} Problem */

const STILL = 400;
/** Milliseconds without a key after which the scenario is checked. */

const form = /** @type {HTMLFormElement} */ (document.getElementById("scenario"));
const area = /** @type {HTMLTextAreaElement} */ (document.getElementById("text"));
const fields = element("fields");
const json = element("json");
const gutter = element("gutter");
const told = element("problems");
const status = element("status");
const notice = element("notice");
const next = /** @type {HTMLButtonElement} */ (element("next-problem"));
const saveButton = /** @type {HTMLButtonElement} */ (element("save"));
const tabs = { form: element("tab-form"), json: element("tab-json") };

const key = form.dataset.key ?? "";
const from = form.dataset.from ?? "";
let tag = form.dataset.etag ?? "";
const support = new SupportFiles(JSON.parse(form.dataset.files ?? "[]"), key || from, Boolean(key));
let kept = area.value;
/** As it was last kept. */
let current = area.value;
/** The text of the scenario, but for what fields changed since: see `textNow`. */
let outdated = false;
const begun = area.value;
/** The text of the version that was edited. */
let inFields = "";
/** The text that the fields have the values of. */
let tab = "json";
/** @type {Problem[]} */
let problems = [];
let attempted = false;
let leaving = false;

const editor = new Editor(null, { changed, renewed });
editor.files = () => support.names;
lookAt(key);

/** @param {string} id */
function element(id) {
  return /** @type {HTMLElement} */ (document.getElementById(id));
}

const parts = sections({ fixedKey: Boolean(key), upload: support.field });

/** Some value is another. */
function changed() {
  if (tab === "form") outdated = true;
  for (const pane of fields.querySelectorAll("details.try[open]")) pane.dispatchEvent(new CustomEvent("opsdrill:changed"));
  checkSoon();
}

/** The text of the scenario as it is now; written out only for whoever wants it. */
function textNow() {
  if (outdated) current = inFields = `${write(editor.value)}\n`;
  outdated = false;
  return current;
}

/** Make the fields anew; what had the focus has it again. */
function redraw() {
  const wanted = document.activeElement?.id;
  editor.ofHosts = [];
  fields.replaceChildren(
    h("nav", { class: "section-links", "aria-label": "Sections" }, ...parts.map(({ id, title }) => h("a", { href: `#${id}` }, title))),
    ...parts.map(section),
  );
  renewed(wanted);
}

/** A section, whose fields are made anew without those of the others. @param {typeof parts[0]} part */
function section({ id, title, hint, specs }) {
  const body = h("div", { class: "body fields" });
  const fill = () => body.replaceChildren(...specs.map((spec) => spec(editor, [])));
  fill();
  body.addEventListener("opsdrill:renew", (event) => {
    fill();
    renewed(/** @type {CustomEvent} */ (event).detail);
  });
  const head = h("header", {}, h("h2", { id: `${id}.title` }, title), hint ? h("span", { class: "quiet" }, hint) : null);
  return h("section", { class: "card", "aria-labelledby": `${id}.title`, id }, head, body);
}

/**
 * Some fields were made anew.
 * @param {string} [focus] the id of the one that wants the focus
 */
function renewed(focus) {
  show();
  if (focus) document.getElementById(focus)?.focus();
}

/** The JSON tab's text as a scenario, or where it cannot be read: then that is its problem. */
function parsed() {
  try {
    const value = parse(current);
    if (isObject(value)) return value;
    throw new BadJson("a scenario is an object in braces", current, 0);
  } catch (error) {
    if (!(error instanceof BadJson)) throw error;
    problems = [{ path: "", message: error.message, severity: "error", line: error.line, column: error.column }];
    jumped = -1;
    show();
    return error;
  }
}

/** The JSON tab's text as fields; says where it cannot be read. */
function readText() {
  if (current === inFields) return true;
  const read = parsed();
  if (!(read instanceof BadJson)) {
    editor.value = read;
    inFields = current;
    return true;
  }
  area.focus();
  area.setSelectionRange(read.offset, read.offset);
  inSight(read.line);
  say(`Line ${read.line}: ${read.message}. Mend it before you go on.`);
  return false;
}

/** @param {"form" | "json"} name */
function open(name) {
  if (name === tab) return true;
  if (name === "form" && !readText()) return false;
  tab = name;
  withdraw();
  if (name === "json") area.value = textNow();
  for (const [one, button] of Object.entries(tabs)) {
    button.setAttribute("aria-selected", String(one === name));
    button.tabIndex = one === name ? 0 : -1;
  }
  fields.hidden = name !== "form";
  json.hidden = name !== "json";
  if (name === "form") redraw();
  else show();
  return true;
}

for (const [name, button] of Object.entries(tabs)) {
  button.addEventListener("click", () => open(/** @type {"form" | "json"} */ (name)));
  button.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = name === "form" ? "json" : "form";
    if (open(other)) tabs[other].focus();
  });
}

area.addEventListener("input", () => {
  current = area.value;
  if (gutter.childElementCount !== lines()) numbered(gutter, lines(), problems);
  checkSoon();
});
area.addEventListener("scroll", () => (gutter.scrollTop = area.scrollTop));

function lines() {
  return area.value.split("\n").length;
}

/** Problems where they belong; an empty field is no problem before somebody wants to save. */
function show() {
  const shownNow = problems.filter((one) => attempted || !stillEmpty(one));
  const hidden = problems.length - shownNow.length;
  if (tab === "form") {
    const rest = atFields(fields, shownNow, replace);
    listed(told, rest, goto);
  } else {
    listed(told, shownNow, goto);
    numbered(gutter, lines(), shownNow);
    area.setAttribute("aria-invalid", String(shownNow.some((one) => one.severity === "error")));
  }
  const words = [counted(shownNow), hidden ? `${hidden} still empty` : ""].filter(Boolean).join(", ");
  status.textContent = words || (textNow() === kept && !support.touched ? "Nothing changed" : "No problems");
  next.hidden = shownNow.length === 0;
}

/** @param {Problem} problem */
function stillEmpty(problem) {
  if (tab !== "form" || problem.severity !== "error") return false;
  const control = document.getElementById(problem.path);
  const empty = control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement || control instanceof HTMLSelectElement;
  if (empty) return control.value === "";
  return control instanceof HTMLDivElement && control.querySelector("input:checked") === null;
}

/** @param {string} path @param {string} text */
function replace(path, text) {
  const control = document.getElementById(path);
  if (!(control instanceof HTMLInputElement) && !(control instanceof HTMLTextAreaElement)) return;
  control.value = text;
  control.dispatchEvent(new Event("input", { bubbles: true }));
  control.focus();
  say("Replaced");
}

/** @param {Problem} problem */
function goto(problem) {
  if (tab === "json") {
    const before = area.value.split("\n").slice(0, (problem.line ?? 1) - 1);
    const start = before.reduce((sum, line) => sum + line.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (area.value.split("\n")[before.length] ?? "").length);
    inSight(before.length + 1);
    return;
  }
  open("json");
  goto(problem);
}

/** A line of the JSON tab, some lines below the upper edge. @param {number} line */
function inSight(line) {
  area.scrollTop = (line - 5) * (area.scrollHeight / Math.max(lines(), 1));
}

let jumped = -1;
next.addEventListener("click", () => {
  if (tab === "json") {
    const all = problems.filter((one) => one.line);
    if (all.length) goto(all[(jumped = (jumped + 1) % all.length)]);
    return;
  }
  const places = [...fields.querySelectorAll("[data-problems]:not(:empty)")];
  if (!places.length) return told.querySelector("button")?.focus();
  jumped = (jumped + 1) % places.length;
  const place = /** @type {HTMLElement} */ (places[jumped]);
  const control = document.getElementById(place.dataset.problems ?? "");
  const inside = control?.matches("input, select, textarea, button") ? control : (place.parentElement?.querySelector("input, select, textarea, button") ?? place);
  /** @type {HTMLElement} */ (inside).focus();
  place.scrollIntoView({ block: "nearest" });
});

/** @type {ReturnType<typeof setTimeout> | undefined} */
let waiting;
/** @type {AbortController | undefined} */
let checking;

function checkSoon() {
  clearTimeout(waiting);
  waiting = setTimeout(() => check().catch((error) => complain(error.message)), STILL);
}

/** Ask what is wrong; an earlier question is no longer of interest. */
async function check() {
  clearTimeout(waiting);
  checking?.abort();
  checking = new AbortController();
  const { signal } = checking;
  if (tab === "json" && parsed() instanceof BadJson) return;
  const whose = key || from;
  try {
    const answer = await call(`/api/v1/scenarios/validate${whose ? `?key=${encodeURIComponent(whose)}` : ""}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: textNow(),
      signal,
    });
    problems = (await answer.json()).problems.filter((/** @type {Problem} */ one) => !isAdded(one));
    jumped = -1;
    show();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Whether a problem is only that a file is not there, which comes with the scenario.
 * @param {Problem} problem */
function isAdded(problem) {
  const found = /^files\[(\d+)\]\.from$/.exec(problem.path);
  if (problem.code !== "OD004" || !found) return false;
  try {
    const value = tab === "form" ? editor.value : parse(current);
    return support.files.has(/** @type {any} */ (value)?.files?.[Number(found[1])]?.from);
  } catch {
    return false;
  }
}

async function save() {
  attempted = true;
  if (tab === "json" && !readText()) {
    clearTimeout(waiting);
    checking?.abort();
    status.textContent = `Not saved: ${counted(problems)}.`;
    return;
  }
  const gone = missing();
  await check();
  problems.push(...gone);
  if (problems.some((one) => one.severity === "error")) return refuse();
  const scenario = /** @type {any} */ (editor.value);
  await send();
  leaving = true;
  location.assign(`/scenarios/${encodeURIComponent(scenario.key)}`);
}

/** Files that the scenario puts on hosts, and that were removed. @returns {Problem[]} */
function missing() {
  if (!support.changed) return [];
  return editor.list(["files"]).flatMap((one, index) => {
    const name = /** @type {any} */ (one)?.from;
    if (typeof name !== "string" || name === "" || support.files.has(name)) return [];
    return [{ path: `files[${index}].from`, message: "is not among the files of the scenario", severity: "error", code: "OD004" }];
  });
}

async function send() {
  /** @type {Record<string, string>} */
  const headers = key ? { "If-Match": tag } : {};
  if (support.changed) {
    headers["Content-Type"] = "application/zip";
    return call("/api/v1/scenarios/import", { method: "POST", headers, body: await support.packed(textNow()) });
  }
  headers["Content-Type"] = "application/json";
  return call(`/api/v1/scenarios${key ? `/${encodeURIComponent(key)}` : ""}`, { method: key ? "PUT" : "POST", headers, body: textNow() });
}

/** It cannot be saved: how many problems there are, and the first has the focus. */
function refuse() {
  show();
  const words = `Not saved: ${counted(problems)}.`;
  status.textContent = words;
  say(words);
  jumped = -1;
  next.click();
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (saveButton.disabled) return;
  saveButton.disabled = true;
  saveButton.textContent = "Saving…";
  notice.replaceChildren();
  try {
    await save();
  } catch (error) {
    await failed(/** @type {any} */ (error));
  } finally {
    saveButton.disabled = leaving;
    saveButton.textContent = "Save";
  }
});

/** @param {{ message: string, status?: number, problem?: any }} error */
async function failed(error) {
  if (error.status === 412) return meanwhile();
  if (error.status === 422 && error.problem?.errors?.length) {
    problems = error.problem.errors;
    return refuse();
  }
  if (error.status === 409 && !key) {
    const message = "is that of a scenario there is already: choose another, or edit that scenario";
    problems = [{ path: "key", message, severity: "error" }];
    return refuse();
  }
  tell("failed", h("p", {}, "Not saved: ", said(error.message), "."));
}

/** @param {string} kind @param {...HTMLElement} children */
function tell(kind, ...children) {
  notice.replaceChildren(h("div", { class: `notice ${kind} spaced stack tight`, role: "alert", tabindex: "-1" }, ...children));
  /** @type {HTMLElement} */ (notice.firstChild).focus();
}

/** Somebody kept another version meanwhile: both are told, and nothing is lost. */
async function meanwhile() {
  const path = `/api/v1/scenarios/${encodeURIComponent(key)}/export?format=json`;
  const answer = await call(path);
  const theirs = await answer.text();
  const theirTag = answer.headers.get("ETag") ?? "";
  const body = new URLSearchParams({ text: textNow(), base: form.dataset.number ?? "" });
  const page = await call(`/scenarios/${encodeURIComponent(key)}/meanwhile`, { method: "POST", body, headers: { "HX-Request": "true" } });
  const mine = textNow();
  const joint = joined(begun, theirs, mine);
  const both = new DOMParser().parseFromString(await page.text(), "text/html");
  const keep = () => {
    tag = theirTag;
    form.requestSubmit();
  };
  /** @param {string} text @param {string} words */
  const take = (text, words) => {
    fill(text, theirTag, theirs);
    const back = h("button", { type: "button", onclick: () => {
      fill(mine, theirTag, theirs);
      notice.replaceChildren();
    } }, "Back to mine");
    tell("passed", h("p", {}, `${words} Yours is not lost as long as this page is open.`), h("div", { class: "actions" }, back));
  };
  tell(
    "error",
    ...[.../** @type {HTMLCollectionOf<HTMLElement>} */ (both.body.children)],
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", onclick: keep }, "Save mine over theirs"),
      joint === null ? null : h("button", { type: "button", onclick: () => take(joint, "The form has what both changed. Look it over, and save it.") }, "Join both in the form"),
      h("button", { type: "button", onclick: () => take(theirs, "The form has their version now.") }, "Take theirs into the form"),
    ),
    h("p", { class: "quiet" }, "Whatever you choose, both stay: theirs is a version of the scenario already."),
  );
}

/**
 * What two changed of the same, where they changed other keys; null where both changed one.
 * @param {string} base
 * @param {string} theirs
 * @param {string} mine
 */
function joined(base, theirs, mine) {
  const [was, other, own] = [base, theirs, mine].map((text) => /** @type {any} */ (parse(text)));
  const made = Object.create(null);
  for (const key of new Set([...Object.keys(own), ...Object.keys(other)])) {
    const [before, there, here] = [was, other, own].map((one) => write(one[key]));
    if (here !== before && there !== before && here !== there) return null;
    const side = here === before ? other : own;
    if (key in side) made[key] = side[key];
  }
  return `${write(made)}\n`;
}

/**
 * Another text in both tabs.
 * @param {string} text
 * @param {string} itsTag
 * @param {string} asKept what is kept by now
 */
function fill(text, itsTag, asKept) {
  tag = itsTag;
  kept = asKept;
  current = text;
  outdated = false;
  area.value = text;
  if (tab === "form") {
    readText();
    redraw();
  }
  checkSoon();
}

addEventListener("beforeunload", (event) => {
  if (!leaving && (textNow() !== kept || support.touched)) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s") {
    event.preventDefault();
    form.requestSubmit();
  }
});

for (const hidden of document.querySelectorAll("[data-with-script]")) /** @type {HTMLElement} */ (hidden).hidden = false;
for (const extra of document.querySelectorAll("[data-without-script]")) extra.remove();
form.removeAttribute("data-busy");
open("form");
if (kept.trim() && (key || from)) check().catch((error) => complain(error.message));
if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
