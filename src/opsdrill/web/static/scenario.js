// The scenario that is being written: one value, which the fields read and change by their paths.

import { Written } from "./json.js";

/** @typedef {import("./json.js").Json} Json */
/** @typedef {(string | number | Place)[]} Path */

const PLAIN = /^[A-Za-z0-9_-]{1,100}$/;

/** Where an item of a list stands, which changes as others come, go and move. */
export class Place {
  /** @param {number} index */
  constructor(index) {
    this.index = index;
  }
}

/** A path as it is now. @param {Path} path @returns {(string | number)[]} */
function now(path) {
  return path.map((part) => (part instanceof Place ? part.index : part));
}

/**
 * `["validation", 2, "pattern"]` as the server writes it: `validation[2].pattern`.
 * @param {Path} path
 */
export function dotted(path) {
  let text = "";
  for (const part of now(path)) {
    if (typeof part === "number") text += `[${part}]`;
    else if (PLAIN.test(part)) text += text ? `.${part}` : part;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

/** @param {Json | undefined} value @returns {value is { [key: string]: any }} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Written);
}

/** A copy that shares nothing. @param {Json} value @returns {Json} */
export function copied(value) {
  if (Array.isArray(value)) return value.map(copied);
  if (!isObject(value)) return value;
  const made = Object.create(null);
  for (const key of Object.keys(value)) made[key] = copied(value[key]);
  return made;
}

/** The scenario, and who wants to know of its changes. */
export class Editor {
  /**
   * @param {Json} value
   * @param {{ changed: () => void, renewed: (focus?: string) => void }} told `changed`: some value is
   *   another; `renewed`: some fields were made anew, and the one with this id wants the focus
   */
  constructor(value, told) {
    this.value = value;
    this.told = told;
    /** Fields of validators that a rule had before; a rule that gets one back has them again.
     * @type {WeakMap<object, Map<string, Json>>} */
    this.earlier = new WeakMap();
    /** What brings a control that depends on the hosts up to date.
     * @type {{ control: HTMLElement, fill: () => void }[]} */
    this.ofHosts = [];
    /** Rules whose Try it is open. @type {Set<object>} */
    this.tried = new Set();
    /** Paths of support files that there are. @type {() => string[]} */
    this.files = () => [];
  }

  /** @param {Path} path @returns {any} undefined where nothing is, or null is written */
  get(path) {
    /** @type {any} */
    let found = this.value;
    for (const part of now(path)) {
      if (typeof part === "number" ? !Array.isArray(found) : !isObject(found)) return undefined;
      found = found[part];
    }
    return found ?? undefined;
  }

  /**
   * Change a value; undefined removes its key. What should hold it is made.
   * @param {Path} path
   * @param {Json | undefined} value
   */
  set(path, value) {
    const [last, ...rest] = now(path).reverse();
    if (value === undefined) {
      const holder = this.get(rest.reverse());
      if (isObject(holder)) delete holder[last];
    } else {
      this.holder(rest.reverse(), typeof last)[last] = value;
    }
    this.told.changed();
  }

  /** What holds a value, made where it is not there. @param {(string | number)[]} path @param {string} wanted @returns {any} */
  holder(path, wanted) {
    let found = this.get(path);
    if (found !== undefined) return found;
    found = wanted === "number" ? [] : Object.create(null);
    if (path.length === 0) this.value = found;
    else this.holder(path.slice(0, -1), typeof path[path.length - 1])[path[path.length - 1]] = found;
    return found;
  }

  /** The list at a path; one that is not there is empty. @param {Path} path @returns {Json[]} */
  list(path) {
    const found = this.get(path);
    return Array.isArray(found) ? found : [];
  }

  /**
   * @param {Path} path
   * @param {number} index
   * @param {Json} item
   */
  insert(path, index, item) {
    const list = this.list(path);
    list.splice(index, 0, item);
    this.set(path, list);
  }

  /** @param {Path} path @param {number} index */
  remove(path, index) {
    const list = this.list(path);
    list.splice(index, 1);
    this.set(path, list.length || path.length === 1 ? list : undefined);
  }

  /** @param {Path} path @param {number} from @param {number} to */
  move(path, from, to) {
    const list = this.list(path);
    list.splice(to, 0, ...list.splice(from, 1));
    this.told.changed();
  }

  /** Bring what depends on the hosts up to date. */
  hostsChanged() {
    this.ofHosts = this.ofHosts.filter(({ control }) => control.isConnected);
    for (const { fill } of this.ofHosts) fill();
  }

  /** The names of the scenario's hosts, each once. @returns {string[]} */
  get hosts() {
    const names = this.list(["hosts"]).map((host) => (isObject(host) ? host.name : host));
    return [...new Set(names.filter((name) => typeof name === "string" && name !== ""))];
  }
}
