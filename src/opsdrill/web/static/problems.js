// What is wrong with the scenario: at its field in the form, at its line in the JSON tab.

import { button, h, said, shown } from "./dom.js";

/** @typedef {{ path: string, message: string, severity: string, code?: string, line?: number, column?: number, suggestion?: string, replacement?: string }} Problem */

/**
 * Show problems at their fields; one whose field there is not stands at what would hold it.
 * @param {HTMLElement} form
 * @param {Problem[]} problems
 * @param {(path: string, text: string) => void} replace puts a suggested text in place of another
 * @returns {Problem[]} those that have no place in the form
 */
export function atFields(form, problems, replace) {
  /** @type {Map<string, HTMLElement>} */
  const places = new Map();
  for (const place of form.querySelectorAll("[data-problems]")) {
    if (place.firstChild) place.replaceChildren();
    places.set(/** @type {HTMLElement} */ (place).dataset.problems ?? "", /** @type {HTMLElement} */ (place));
  }
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  return problems.filter((problem) => {
    const path = nearest(problem.path, places);
    const place = path === null ? undefined : places.get(path);
    if (!place) return true;
    const words = path === problem.path ? problem.message : `${problem.path} ${problem.message}`;
    place.append(told(problem, words, replace));
    if (problem.severity === "error" && path !== null) {
      document.getElementById(path)?.setAttribute("aria-invalid", "true");
      for (let up = place.closest("details"); up; up = up.parentElement?.closest("details") ?? null) up.open = true;
    }
    return false;
  });
}

/**
 * The longest beginning of a path that has a place.
 * @param {string} path
 * @param {Map<string, HTMLElement>} places
 */
function nearest(path, places) {
  if (places.has(path)) return path;
  let found = null;
  for (const known of places.keys()) {
    const below = path.startsWith(known) && (path[known.length] === "." || path[known.length] === "[");
    if (below && known.length > (found ?? "").length) found = known;
  }
  return found;
}

/**
 * @param {Problem} problem
 * @param {string} words
 * @param {(path: string, text: string) => void} replace
 */
function told(problem, words, replace) {
  const { replacement, suggestion, severity } = problem;
  const better = replacement ?? undefined;
  const other = better === undefined && suggestion && !problem.message.includes(suggestion) ? suggestion : undefined;
  return h(
    "p",
    { class: severity === "error" ? "wrong" : "trap" },
    h("span", {}, severity === "error" ? "" : "Warning: ", said(words), "."),
    other ? ` Better: ${shown(other)}.` : null,
    better !== undefined
      ? h("button", { type: "button", class: "small suggestion", onclick: (/** @type {Event} */ event) => replace(placeOf(event), better) }, "Use ", h("code", {}, shown(better)))
      : null,
    problem.code ? h("span", { class: "quiet" }, ` ${problem.code}`) : null,
  );
}

/** The path whose problems have a button among them; a rule may have moved since they were told.
 * @param {Event} event */
function placeOf(event) {
  const place = /** @type {Element} */ (event.currentTarget).closest("[data-problems]");
  return /** @type {HTMLElement} */ (place).dataset.problems ?? "";
}

/**
 * All problems as a list, each leading to its line.
 * @param {HTMLElement} place
 * @param {Problem[]} problems
 * @param {(problem: Problem) => void} go
 */
export function listed(place, problems, go) {
  place.replaceChildren(
    ...problems.map((problem) =>
      h(
        "li",
        { class: problem.severity === "error" ? "wrong" : "trap" },
        problem.line ? button(`Line ${problem.line}`, () => go(problem), { class: "plain small" }) : null,
        problem.severity === "error" ? " " : " Warning: ",
        problem.path ? h("code", {}, shown(problem.path)) : null,
        " ",
        said(problem.message),
        ".",
        problem.code ? h("span", { class: "quiet" }, ` ${problem.code}`) : null,
      ),
    ),
  );
}

/**
 * The numbers of a text's lines, those with problems marked.
 * @param {HTMLElement} gutter
 * @param {number} lines
 * @param {Problem[]} problems
 */
export function numbered(gutter, lines, problems) {
  /** @type {Map<number, string>} */
  const marked = new Map();
  for (const { line, severity } of problems) {
    if (line && marked.get(line) !== "wrong") marked.set(line, severity === "error" ? "wrong" : "trap");
  }
  const rows = [];
  for (let line = 1; line <= lines; line += 1) {
    rows.push(h("span", { class: marked.get(line) ?? null }, String(line)));
  }
  gutter.replaceChildren(...rows);
}

/**
 * How many there are, in words.
 * @param {Problem[]} problems
 */
export function counted(problems) {
  const errors = problems.filter((one) => one.severity === "error").length;
  const warnings = problems.length - errors;
  const parts = [];
  if (errors) parts.push(`${errors} error${errors === 1 ? "" : "s"}`);
  if (warnings) parts.push(`${warnings} warning${warnings === 1 ? "" : "s"}`);
  return parts.join(", ");
}
