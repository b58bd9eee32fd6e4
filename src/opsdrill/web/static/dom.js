// Elements made by a function. What others wrote only ever becomes text or a value.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * An element with attributes, listeners (`onclick`, ...), and children.
 * @param {string} tag
 * @param {Record<string, any>} [given] `value`, `checked` and `readOnly` are set as properties
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) made.append(child);
  }
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "readOnly") Reflect.set(made, name, value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  return made;
}

/**
 * A button that sends nothing.
 * @param {string} words
 * @param {(event: Event) => void} act
 * @param {Record<string, any>} [more]
 */
export function button(words, act, more = {}) {
  return h("button", { type: "button", onclick: act, ...more }, words);
}

/**
 * Have the part of the form made anew that an element is in; the field with this id wants the focus.
 * @param {EventTarget | null} within
 * @param {string} focus
 */
export function renew(within, focus) {
  within?.dispatchEvent(new CustomEvent("opsdrill:renew", { bubbles: true, detail: focus }));
}

// The same as the server shows by a sign: what hides, turns round or moves text.
const UNSEEN =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Surrogate}]/gu;

/** @param {string} text */
export function shown(text) {
  return text.replace(UNSEEN, (found) => {
    const code = /** @type {number} */ (found.codePointAt(0));
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return `\u27e6${name(code)}\u27e7`;
  });
}

/**
 * A sentence of ours, such as a reason, in which backticks stand around what is named.
 * @param {string} sentence
 * @returns {Child[]}
 */
export function said(sentence) {
  return shown(sentence).split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

/**
 * The characters of a text that nobody would see, by their numbers.
 * @param {string} text
 */
export function unseen(text) {
  return [...new Set(text.match(UNSEEN) ?? [])].map((found) => name(found.codePointAt(0) ?? 0));
}

/**
 * A JSON text in which such characters are written as escapes.
 * @param {string} json
 */
export function escaped(json) {
  return json.replace(UNSEEN, (found) =>
    [...found].flatMap((one) => one.split("")).map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** @param {number} code */
function name(code) {
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}
