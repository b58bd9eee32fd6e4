// Try it: what a pattern finds in the recorded runs of this scenario, and whose verdicts would flip.

import { h, said, shown } from "./dom.js";
import { plain } from "./json.js";
import { call } from "./page.js";
import { dotted } from "./scenario.js";

/** @typedef {import("./scenario.js").Editor} Editor */
/** @typedef {import("./scenario.js").Path} Path */

const STILL = 350;
/** Milliseconds without a key after which a pattern is tried. */
const MATCHES = 20;
/** Matching values that are shown at first. */

/** Whose runs are looked at; empty for a scenario that is not kept yet. */
let scenario = "";

/** @param {string} key */
export function lookAt(key) {
  scenario = key;
}

/**
 * The pane of a rule, closed at first.
 * @param {Editor} editor
 * @param {Path} path of the rule
 * @returns {HTMLElement}
 */
export function tryIt(editor, path) {
  const rule = editor.get(path);
  const id = `${dotted(path)}.try`;
  const place = h("div", { class: "tried stack tight", id: `${id}.found` });
  const pane = /** @type {HTMLDetailsElement} */ (
    h("details", { class: "try", open: editor.tried.has(rule) }, h("summary", { id }, "Try it on recorded runs"), place)
  );
  /** @type {AbortController | undefined} */
  let asking;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  let asked = "";

  async function ask() {
    const wish = { pattern: rule.pattern ?? "", where: rule.where ?? "", negate: rule.negate === true };
    const body = { scenario, ...wish, validation: plain(editor.get(["validation"])) };
    const text = JSON.stringify(body);
    if (text === asked) return;
    asked = text;
    asking?.abort();
    if (!scenario) return place.replaceChildren(quiet("There are no recorded runs yet: save the scenario and run it."));
    if (typeof wish.pattern !== "string" || wish.pattern.trim() === "") return place.replaceChildren(quiet("Type a pattern."));
    asking = new AbortController();
    const { signal } = asking;
    place.setAttribute("aria-busy", "true");
    const slow = setTimeout(() => place.prepend(h("div", { class: "progress" })), 300);
    try {
      const { found, without } = await tried(body, signal);
      place.replaceChildren(...told(found, without, wish.negate));
    } catch (error) {
      if (signal.aborted) return;
      asked = "";
      place.replaceChildren(h("p", { class: "wrong" }, shown(/** @type {Error} */ (error).message)));
    } finally {
      clearTimeout(slow);
      if (!signal.aborted) place.removeAttribute("aria-busy");
    }
  }

  const soon = () => {
    if (!pane.open || !pane.isConnected) return;
    clearTimeout(waiting);
    waiting = setTimeout(ask, STILL);
  };
  pane.addEventListener("toggle", () => {
    if (pane.open) editor.tried.add(rule);
    else editor.tried.delete(rule);
    soon();
  });
  pane.addEventListener("opsdrill:changed", soon);
  return pane;
}

/**
 * Rules that are broken elsewhere hide no matches.
 * @param {any} body
 * @param {AbortSignal} signal
 */
async function tried(body, signal) {
  /** @param {any} wish */
  const asked = async (wish) => {
    const headers = { "Content-Type": "application/json" };
    const answer = await call("/api/v1/patterns/try", { method: "POST", headers, body: JSON.stringify(wish), signal });
    return answer.json();
  };
  try {
    return { found: await asked(body), without: "" };
  } catch (error) {
    const { status, problem, message } = /** @type {any} */ (error);
    const own = problem?.errors?.some((/** @type {any} */ one) => one.path === "pattern");
    if (status !== 422 || own) throw error;
    return { found: await asked({ ...body, validation: undefined }), without: message };
  }
}

/**
 * @param {any} found
 * @param {string} without why no verdicts are told
 * @param {boolean} negate
 * @returns {HTMLElement[]}
 */
function told(found, without, negate) {
  if (!found.runs) return [quiet("There are no recorded runs of this scenario yet: run it, then come back.")];
  const rows = found.matches.map((/** @type {any} */ match) => matched(match));
  const more = rows.splice(MATCHES);
  return [
    h(
      "p",
      { role: "status" },
      h("strong", {}, `Found in ${found.matched} of ${count(found.values, "value")}`),
      `. Going by this the rule would hold in ${found.holds} of ${count(found.runs, "run")}`,
      negate ? ", those where it is found nowhere." : ".",
    ),
    ...flips(found.flips, without),
    rows.length ? h("ul", { class: "plain matches" }, ...rows) : quiet("No value matches."),
    more.length ? h("details", {}, h("summary", {}, `${more.length} more`), h("ul", { class: "plain matches" }, ...more)) : null,
    found.matched > found.matches.length ? quiet(`${found.matched - found.matches.length} further values that match are not shown.`) : null,
    found.exhausted ? h("p", { class: "trap" }, `Of ${count(found.exhausted, "value")} it is not known: the pattern used up its time.`) : null,
    ...found.limits.map((/** @type {string} */ one) => h("p", { class: "trap" }, said(one))),
  ].filter((one) => one !== null);
}

/** @param {any} found @param {string} without */
function flips(found, without) {
  if (!found) return without ? [h("p", { class: "trap" }, "Whose verdicts flip cannot be told: ", said(without))] : [];
  const verdicts = found.flips.filter((/** @type {any} */ one) => one.rule === "verdict");
  const others = found.flips.filter((/** @type {any} */ one) => one.rule !== "verdict");
  return [
    h("p", { class: "flips" }, h("strong", {}, `${found.verdicts} of ${count(found.graded, "verdict")} would flip`), verdicts.length ? ":" : "."),
    verdicts.length ? h("ul", { class: "plain" }, ...verdicts.map(flip)) : null,
    others.length ? h("details", {}, h("summary", {}, `${count(others.length, "rule")} would flip`), h("ul", { class: "plain" }, ...others.map(flip))) : null,
    ...found.notes.map((/** @type {string} */ one) => quiet(...said(one))),
  ].filter((one) => one !== null);
}

/** @param {any} one */
function flip(one) {
  return h(
    "li",
    {},
    runLink(one.run),
    one.rule === "verdict" ? " " : ` ${shown(one.rule)}: `,
    h("span", { class: `verdict ${one.before}` }, one.before),
    " → ",
    h("span", { class: `verdict ${one.after}` }, one.after),
    h("span", { class: "quiet" }, " ", said(one.reason)),
  );
}

/** Spans count code points. @param {any} match */
function matched(match) {
  const points = [...match.value];
  const [start, end] = match.span;
  /** @param {number} from @param {number} [to] */
  const part = (from, to) => shown(points.slice(from, to).join(""));
  return h(
    "li",
    {},
    h("pre", { class: "output" }, match.cut ? "…" : null, part(0, start), h("mark", {}, part(start, end) || "␣"), part(end)),
    h("span", { class: "quiet small" }, "in run ", runLink(match.run), match.task ? `, task ${shown(match.task)}` : null),
  );
}

/** @param {string} run */
function runLink(run) {
  return h("a", { href: `/runs/${encodeURIComponent(run)}`, target: "_blank", rel: "noopener" }, shown(run));
}

/** @param {...import("./dom.js").Child} words */
function quiet(...words) {
  return h("p", { class: "quiet" }, ...words);
}

/** @param {number} number @param {string} word */
function count(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
