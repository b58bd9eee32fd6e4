// JSON that loses nothing on its way through the form: numbers keep their writing, a key that stands
// twice is refused, and every text comes back as it was.

import { escaped } from "./dom.js";

/** @typedef {null | boolean | number | string | Written | Json[] | { [key: string]: any }} Json */

const DEPTH = 64;
const SPACE = /[ \t\r\n]*/y;
const TEXT = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const ALL_NUMBER = new RegExp(`^(?:${NUMBER.source})$`);

/** A number that would be written otherwise, such as 1.0 or one with many digits. */
export class Written {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
  }
}

/** What is wrong with a text, and where; lines and columns count from 1. */
export class BadJson extends Error {
  /**
   * @param {string} message
   * @param {string} text
   * @param {number} offset
   */
  constructor(message, text, offset) {
    super(message);
    const before = text.slice(0, offset);
    this.offset = offset;
    this.line = before.split("\n").length;
    this.column = [...before.slice(before.lastIndexOf("\n") + 1)].length + 1;
  }
}

/**
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  let at = 0;

  /** @param {RegExp} pattern @returns {string | null} */
  function take(pattern) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (!found) return null;
    at += found[0].length;
    return found[0];
  }

  /** @param {string} sign */
  function have(sign) {
    take(SPACE);
    if (text[at] !== sign) return false;
    at += 1;
    return true;
  }

  /** @param {string} message @returns {never} */
  function wrong(message) {
    throw new BadJson(message, text, at);
  }

  /** @returns {string} */
  function string() {
    const found = take(TEXT);
    return found === null ? wrong("there must be a text in double quotes here") : JSON.parse(found);
  }

  /** @param {number} depth @returns {Json} */
  function object(depth) {
    const made = Object.create(null);
    if (have("}")) return made;
    do {
      take(SPACE);
      const start = at;
      const key = string();
      if (key in made) throw new BadJson(`the key ${JSON.stringify(key)} stands twice`, text, start);
      if (!have(":")) wrong("there must be a colon here");
      made[key] = value(depth);
    } while (have(","));
    return have("}") ? made : wrong("there must be a comma or } here");
  }

  /** @param {number} depth @returns {Json} */
  function list(depth) {
    /** @type {Json[]} */
    const made = [];
    if (have("]")) return made;
    do made.push(value(depth));
    while (have(","));
    return have("]") ? made : wrong("there must be a comma or ] here");
  }

  /** @param {number} depth @returns {Json} */
  function value(depth) {
    if (depth > DEPTH) wrong("lists and objects are nested too deep");
    if (have("{")) return object(depth + 1);
    if (have("[")) return list(depth + 1);
    if (text[at] === '"') return string();
    const word = take(WORD);
    if (word !== null) return word === "null" ? null : word === "true";
    const digits = take(NUMBER);
    return digits === null ? wrong("there must be a value here") : number(digits);
  }

  const found = value(0);
  take(SPACE);
  return at === text.length ? found : wrong("nothing may follow the end of the scenario");
}

/**
 * What somebody typed as a number; anything else stays a text, which the check then refuses.
 * @param {string} typed
 * @returns {Json}
 */
export function typedNumber(typed) {
  const text = typed.trim();
  return ALL_NUMBER.test(text) ? number(text) : typed;
}

/** @param {string} digits */
function number(digits) {
  const found = Number(digits);
  return String(found) === digits ? found : new Written(digits);
}

/**
 * @param {Json | undefined} value
 * @param {string} [indent] of the line that it stands on
 * @returns {string}
 */
export function write(value, indent = "") {
  const deeper = `${indent}  `;
  if (value === null || value === undefined) return "null";
  if (value instanceof Written) return value.text;
  if (typeof value === "string") return escaped(JSON.stringify(value));
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) {
    if (value.every((one) => typeof one !== "object" || one === null)) {
      const line = `[${value.map((one) => write(one)).join(", ")}]`;
      if (line.length + indent.length < 90) return line;
    }
    return `[\n${value.map((one) => deeper + write(one, deeper)).join(",\n")}\n${indent}]`;
  }
  const keys = Object.keys(value);
  if (keys.length === 0) return "{}";
  const rows = keys.map((key) => `${deeper}${write(key)}: ${write(value[key], deeper)}`);
  return `{\n${rows.join(",\n")}\n${indent}}`;
}

/**
 * Plain data, for a request; a number that is written otherwise is the number it means.
 * @param {Json | undefined} value
 * @returns {any}
 */
export function plain(value) {
  return JSON.parse(write(value));
}
