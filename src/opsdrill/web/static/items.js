// Lists of objects in the form: each has fields of its own, and is moved, duplicated and removed.
// Whatever becomes of one, the fields of the others stay the elements that they are.

import { button, h, renew } from "./dom.js";
import { odd, wrongs } from "./fields.js";
import { complain, offer, say } from "./page.js";
import { Place, copied, dotted, isObject } from "./scenario.js";

/** @typedef {import("./scenario.js").Editor} Editor */
/** @typedef {import("./scenario.js").Path} Path */
/** @typedef {import("./json.js").Json} Json */
/** @typedef {import("./fields.js").Spec} Spec */
/**
 * @typedef {object} How
 * @property {string} one what one of them is called, with a small letter
 * @property {number} [from] the number of the first, 1 if not told
 * @property {(editor: Editor, path: Path) => Spec[]} fields
 * @property {{ words: string, item: () => Json, id?: string }[]} add
 * @property {string} [empty]
 * @property {string} [first] the field that has the focus in a new one
 * @property {(editor: Editor, path: Path) => HTMLElement | null} [aside]
 * @property {(editor: Editor, path: Path) => Spec[]} [top] fields in its head
 * @property {boolean} [redraws] other fields of the section depend on which there are
 */
/**
 * @typedef {object} Row
 * @property {Place} place
 * @property {HTMLElement} part what stands for it in the list, whatever fields it has
 * @property {HTMLElement} legend
 * @property {Record<"up" | "down" | "copy" | "remove", HTMLButtonElement>} acts
 */

const MANY = 20;
/** Items up to which all are laid out, in sight or not. */
const NAMES = ["id", "for", "data-path", "data-problems", "aria-describedby", "aria-labelledby"];
/** Attributes that have paths in them. */
const NAMED = NAMES.map((name) => `[${name}]`).join(", ");

/**
 * A list of objects.
 * @param {string} name
 * @param {How} how
 * @returns {Spec}
 */
export function items(name, how) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path) ?? [];
    return Array.isArray(value) ? new Items(editor, path, how).all : odd(editor, path, name);
  };
}

class Items {
  /** @param {Editor} editor @param {Path} path @param {How} how */
  constructor(editor, path, how) {
    this.editor = editor;
    this.path = path;
    this.how = how;
    const id = dotted(path);
    this.rows = editor.list(path).map((_, index) => this.#row(index));
    const adds = how.add.map(({ words, item, id: own }, place) =>
      button(words, () => {
        const index = this.rows.length;
        this.#insert(index, item());
        say(`${this.#called(index)} added`);
      }, { class: "small", id: own ?? `${id}.add${place || ""}` }),
    );
    this.empty = h("p", { class: "quiet" }, how.empty ?? "");
    this.end = h("div", { class: "actions" }, ...adds);
    const parts = this.rows.map((row) => row.part);
    this.all = h("div", { class: "items", "data-path": id, id: `${id}.all` }, this.empty, ...parts, this.end, wrongs(path));
    this.#number();
  }

  /** @param {number} index @returns {Row} */
  #row(index) {
    /** @type {Row} */
    const row = { place: new Place(index), part: h("div", { class: "item-place" }), legend: h("legend"), acts: this.#acts(() => row) };
    row.part.addEventListener("keydown", (event) => {
      if (!event.altKey || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
      event.preventDefault();
      event.stopPropagation();
      this.#move(row, event.key === "ArrowUp" ? -1 : 1, "up");
    });
    row.part.addEventListener("opsdrill:renew", (event) => {
      event.stopPropagation();
      this.#fill(row);
      this.#mark(row);
      this.editor.told.renewed(/** @type {CustomEvent} */ (event).detail);
    });
    this.#fill(row);
    return row;
  }

  /** What can be done to one. @param {() => Row} row @returns {Row["acts"]} */
  #acts(row) {
    /** @param {string} words @param {() => void} act */
    const made = (words, act) => /** @type {HTMLButtonElement} */ (button(words, act, { class: "plain small" }));
    return {
      up: made("↑", () => this.#move(row(), -1, "up")),
      down: made("↓", () => this.#move(row(), 1, "down")),
      copy: made("Duplicate", () => this.#copy(row())),
      remove: made("Remove", () => this.#remove(row())),
    };
  }

  /** Make the fields of one. @param {Row} row */
  #fill(row) {
    const { editor, how } = this;
    const own = [...this.path, row.place];
    const id = dotted(own);
    const item = editor.get(own);
    const shape = isObject(item);
    for (const [name, act] of Object.entries(row.acts)) act.id = `${id}.${name}`;
    row.part.replaceChildren(
      h(
        "fieldset",
        { class: "item", "data-path": id, id: `${id}.item` },
        row.legend,
        h(
          "div",
          { class: "item-head" },
          ...(shape && how.top ? how.top(editor, own).map((spec) => spec(editor, own)) : []),
          h("div", { class: "actions item-actions" }, ...Object.values(row.acts)),
        ),
        h("div", { class: "fields" }, ...(shape ? how.fields(editor, own).map((spec) => spec(editor, own)) : [odd(editor, own, this.#named(row))])),
        wrongs(own),
        shape && how.aside ? how.aside(editor, own) : null,
      ),
    );
  }

  /** @param {Row} row */
  #named(row) {
    return this.#called(row.place.index);
  }

  /** @param {number} index */
  #called(index) {
    return `${this.how.one} ${index + (this.how.from ?? 1)}`;
  }

  /** Tell every item where it stands now. */
  #number() {
    this.empty.toggleAttribute("hidden", this.rows.length > 0 || !this.how.empty);
    this.all.classList.toggle("many", this.rows.length > MANY);
    this.rows.forEach((row, index) => {
      row.place.index = index;
      const from = /** @type {HTMLElement} */ (row.part.firstElementChild).dataset.path ?? "";
      const to = dotted([...this.path, row.place]);
      if (from !== to) rename(row.part, from, to);
      this.#mark(row);
    });
  }

  /** What the head of one says of its number. @param {Row} row */
  #mark(row) {
    const { acts, legend, place } = row;
    const named = this.#named(row);
    const words = `${named[0].toUpperCase()}${named.slice(1)}`;
    if (legend.textContent !== words) {
      legend.textContent = words;
      acts.up.setAttribute("aria-label", `Move ${named} up`);
      acts.down.setAttribute("aria-label", `Move ${named} down`);
      acts.copy.setAttribute("aria-label", `Duplicate ${named}`);
      acts.remove.setAttribute("aria-label", `Remove ${named}`);
    }
    const last = this.rows.length - 1;
    // Unlike the properties this leaves alone what is so already.
    acts.up.toggleAttribute("disabled", place.index === 0);
    acts.down.toggleAttribute("disabled", place.index === last);
    for (const act of [acts.up, acts.down]) act.toggleAttribute("hidden", last === 0);
  }

  /** @param {number} index @param {string} [part] its first field if not told */
  #focus(index, part = this.how.first) {
    return dotted([...this.path, index, ...(part ? [part] : [])]);
  }

  /** The list is another. @param {string} focus the id of what has the focus then */
  #changed(focus) {
    if (this.how.redraws) return renew(this.all, focus);
    this.#number();
    document.getElementById(focus)?.focus();
  }

  /** @param {number} index @param {Json} item */
  #insert(index, item) {
    this.editor.insert(this.path, index, item);
    const row = this.#row(index);
    (this.rows[index]?.part ?? this.end).before(row.part);
    this.rows.splice(index, 0, row);
    this.#changed(this.#focus(index));
  }

  /** @param {Row} row */
  #copy(row) {
    const named = this.#named(row);
    const index = row.place.index + 1;
    this.#insert(index, copied(this.editor.list(this.path)[index - 1]));
    say(`${named} duplicated`);
  }

  /** @param {Row} row */
  #remove(row) {
    const { index } = row.place;
    const named = this.#named(row);
    const item = this.editor.list(this.path)[index];
    this.editor.remove(this.path, index);
    this.rows.splice(index, 1);
    row.part.remove();
    const left = this.rows.length;
    this.#changed(left ? this.#focus(Math.min(index, left - 1), "remove") : `${dotted(this.path)}.add`);
    offer(`${named[0].toUpperCase()}${named.slice(1)} is removed.`, () => this.#back(index, item));
  }

  /** What was removed is there again. @param {number} index @param {Json} item */
  #back(index, item) {
    const at = Math.min(index, this.editor.list(this.path).length);
    if (this.all.isConnected) this.#insert(at, item);
    else if (this.path.some((step) => step instanceof Place)) {
      return complain("It cannot be brought back: what it was in was made anew meanwhile.");
    } else {
      // The whole section was made anew since.
      this.editor.insert(this.path, at, item);
      renew(document.getElementById(`${dotted(this.path)}.all`), this.#focus(at));
    }
    say(`${this.#called(at)} is there again`);
  }

  /** @param {Row} row @param {-1 | 1} by @param {string} focus its button that has the focus then */
  #move(row, by, focus) {
    const from = row.place.index;
    const to = from + by;
    const last = this.rows.length - 1;
    if (to < 0 || to > last) return;
    this.editor.move(this.path, from, to);
    this.rows.splice(to, 0, ...this.rows.splice(from, 1));
    (this.rows[to + 1]?.part ?? this.end).before(row.part);
    this.#changed(this.#focus(to, to === 0 ? "down" : to === last ? "up" : focus));
    say(`${this.#called(from)} is now ${this.#called(to)}`);
  }
}

/**
 * Paths in attributes of a part whose own path is another now.
 * @param {HTMLElement} part
 * @param {string} from
 * @param {string} to
 */
function rename(part, from, to) {
  for (const one of part.querySelectorAll(NAMED)) {
    for (const name of NAMES) {
      const old = one.getAttribute(name);
      if (!old?.includes(from)) continue;
      const words = old.split(" ").map((word) => (word.startsWith(from) ? to + word.slice(from.length) : word));
      one.setAttribute(name, words.join(" "));
    }
  }
}
