// The kinds of fields. A spec such as `line("title", "Title")` makes the field of a path; it shows
// what the scenario says there, and writes only what somebody changes.

import { button, h, renew, unseen } from "./dom.js";
import { Written, typedNumber, write } from "./json.js";
import { dotted, isObject } from "./scenario.js";
import { say } from "./page.js";

/** @typedef {import("./scenario.js").Editor} Editor */
/** @typedef {import("./scenario.js").Path} Path */
/** @typedef {import("./json.js").Json} Json */
/** @typedef {(editor: Editor, base: Path) => HTMLElement} Spec */
/**
 * @typedef {object} Kind
 * @property {string} [hint]
 * @property {boolean} [required] an empty text is kept as it is, so that the check asks for it
 * @property {boolean} [code]
 * @property {boolean} [wide]
 * @property {boolean} [broad]
 * @property {boolean} [fixed]
 * @property {string} [placeholder]
 * @property {number} [rows]
 * @property {boolean} [redraws] other fields depend on it
 * @property {boolean} [ofHosts] what it offers are hosts of the scenario
 */

/** Where problems of a path are shown. @param {Path} path */
export function wrongs(path) {
  return h("div", { class: "wrongs", "data-problems": dotted(path), id: `${dotted(path)}.wrongs` });
}

/**
 * @param {Path} path
 * @param {string} label
 * @param {HTMLElement} control
 * @param {Kind} [kind]
 */
function field(path, label, control, kind = {}) {
  const id = dotted(path);
  control.id = id;
  control.setAttribute("aria-describedby", `${id}.wrongs${kind.hint ? ` ${id}.hint` : ""}`);
  return h(
    "div",
    { class: kind.wide ? "field span" : kind.broad ? "field broad" : "field", "data-path": id },
    h("label", { for: id }, label),
    control,
    kind.hint ? h("span", { class: "hint", id: `${id}.hint` }, kind.hint) : null,
    wrongs(path),
  );
}

/**
 * A value that a field of this kind cannot show: it stays as it is until somebody removes it.
 * @param {Editor} editor
 * @param {Path} path
 * @param {string} label
 */
export function odd(editor, path, label) {
  const id = dotted(path);
  return h(
    "div",
    { class: "field", "data-path": id },
    h("span", { class: "label" }, label),
    h("code", { class: "output" }, write(editor.get(path)).slice(0, 500)),
    button("Remove this value", ({ currentTarget }) => {
      editor.set(path, undefined);
      renew(currentTarget, dotted(path));
    }, { class: "small", id }),
    wrongs(path),
  );
}

/** @param {Json | undefined} value */
function isText(value) {
  return value === undefined || typeof value === "string";
}

/** @param {HTMLElement} control @param {string} value */
function warnUnseen(control, value) {
  const found = unseen(value);
  const place = control.parentElement?.querySelector(":scope > .unseen");
  place?.remove();
  if (!found.length) return;
  const words = `Holds what cannot be seen: ${found.join(", ")}. The JSON tab shows it.`;
  control.after(h("span", { class: "hint unseen" }, words));
}

/**
 * A control for a text, which writes when it is changed.
 * @param {string} value
 * @param {Kind & { long?: boolean }} kind
 * @param {(text: string) => void} put
 */
export function textControl(value, kind, put) {
  const long = kind.long || value.includes("\n");
  const rows = Math.min(16, Math.max(kind.rows ?? 1, value.split("\n").length));
  const control = /** @type {HTMLInputElement} */ (
    h(long ? "textarea" : "input", {
      class: kind.code ? "code" : null,
      rows: long ? rows : null,
      placeholder: kind.placeholder,
      spellcheck: kind.code ? "false" : null,
      autocomplete: "off",
      autocapitalize: kind.code ? "off" : null,
      readOnly: kind.fixed ?? false,
      value,
    })
  );
  let before = control.value;
  control.addEventListener("input", () => {
    if (control.value === before) return;
    before = control.value;
    put(before);
    warnUnseen(control, before);
  });
  if (unseen(value).length) queueMicrotask(() => warnUnseen(control, value));
  return control;
}

/**
 * A text.
 * @param {string} name
 * @param {string} label
 * @param {Kind & { long?: boolean }} [kind]
 * @returns {Spec}
 */
export function line(name, label, kind = {}) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path);
    if (!isText(value)) return odd(editor, path, label);
    const control = textControl(value ?? "", kind, (text) =>
      editor.set(path, text === "" && !kind.required ? undefined : text),
    );
    return field(path, label, control, kind);
  };
}

/**
 * A text of several lines.
 * @param {string} name
 * @param {string} label
 * @param {Kind} [kind]
 */
export function area(name, label, kind = {}) {
  return line(name, label, { wide: true, ...kind, long: true });
}

/**
 * @param {string} name
 * @param {string} label
 * @param {Kind} [kind]
 * @returns {Spec}
 */
export function number(name, label, kind = {}) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path);
    const fits = value instanceof Written || typeof value === "number" || isText(value);
    if (!fits) return odd(editor, path, label);
    const known = value === undefined ? "" : typeof value === "string" ? value : write(value);
    const control = textControl(known, kind, (text) =>
      editor.set(path, text.trim() === "" ? undefined : typedNumber(text)),
    );
    control.inputMode = "decimal";
    control.classList.add("digits");
    return field(path, label, control, kind);
  };
}

/**
 * Yes or no; what it is when nobody says anything is not written.
 * @param {string} name
 * @param {string} label
 * @param {Kind & { usual?: boolean }} [kind]
 * @returns {Spec}
 */
export function check(name, label, kind = {}) {
  return (editor, base) => {
    const path = [...base, name];
    const usual = kind.usual ?? false;
    const value = editor.get(path) ?? usual;
    if (typeof value !== "boolean") return odd(editor, path, label);
    const id = dotted(path);
    const box = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", id, checked: value }));
    box.addEventListener("change", () => {
      editor.set(path, box.checked === usual ? undefined : box.checked);
      if (kind.redraws) renew(box, box.id);
    });
    return h(
      "div",
      { class: "field tick", "data-path": id },
      h("label", {}, box, " ", label),
      kind.hint ? h("span", { class: "hint" }, kind.hint) : null,
      wrongs(path),
    );
  };
}

/** @typedef {{ value: string, words?: string, group?: string }} Option */

/**
 * One of several; what is written but not among them is shown too.
 * @param {string} name
 * @param {string} label
 * @param {(editor: Editor) => Option[]} options
 * @param {Kind & { none?: string, unknown?: string, changed?: (editor: Editor, base: Path, value: string) => void }} [kind]
 * @returns {Spec}
 */
export function choice(name, label, options, kind = {}) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path);
    if (!isText(value)) return odd(editor, path, label);
    const select = /** @type {HTMLSelectElement} */ (h("select"));
    const fill = () => {
      const now = editor.get(path) ?? "";
      const known = options(editor);
      const all = kind.none === undefined ? known : [{ value: "", words: kind.none }, ...known];
      if (!all.some((one) => one.value === now)) {
        all.push({ value: now, words: now ? `${now} (${kind.unknown ?? "not known"})` : "choose" });
      }
      select.replaceChildren(...grouped(all));
      select.value = now;
    };
    fill();
    if (kind.ofHosts) editor.ofHosts.push({ control: select, fill });
    select.addEventListener("change", () => {
      if (kind.changed) kind.changed(editor, base, select.value);
      else editor.set(path, select.value === "" ? undefined : select.value);
      if (kind.redraws) renew(select, select.id);
    });
    return field(path, label, select, kind);
  };
}

/** @param {Option[]} options */
function grouped(options) {
  /** @type {Map<string, HTMLElement>} */
  const groups = new Map();
  /** @type {HTMLElement[]} */
  const made = [];
  for (const { value, words, group } of options) {
    const option = h("option", { value }, words ?? value);
    if (!group) made.push(option);
    else if (groups.has(group)) groups.get(group)?.append(option);
    else {
      groups.set(group, h("optgroup", { label: group }, option));
      made.push(/** @type {HTMLElement} */ (groups.get(group)));
    }
  }
  return made;
}

/**
 * A host of the scenario.
 * @param {string} name
 * @param {string} label
 * @param {string} none what it means to name none
 */
export function hostChoice(name, label, none) {
  return choice(name, label, (editor) => editor.hosts.map((value) => ({ value })), {
    none,
    unknown: "no host of the scenario",
    ofHosts: true,
  });
}

/**
 * Some of several, as boxes to tick.
 * @param {string} name
 * @param {string} label
 * @param {(editor: Editor) => string[]} options
 * @param {Kind & { none?: string }} [kind]
 * @returns {Spec}
 */
export function chips(name, label, options, kind = {}) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path) ?? [];
    if (!Array.isArray(value) || value.some((one) => typeof one !== "string")) return odd(editor, path, label);
    const id = dotted(path);
    const place = h("div", { class: "actions", id, tabindex: "-1" });
    const fill = () => {
      const names = [...new Set([...options(editor), ...editor.list(path)])];
      const boxes = names.map((one) => {
        const checked = editor.list(path).includes(one);
        const box = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", value: one, checked }));
        box.addEventListener("change", () => {
          const kept = editor.list(path).filter((known) => known !== one);
          if (box.checked) kept.push(one);
          editor.set(path, kept.length || kind.required ? kept : undefined);
        });
        return h("label", { class: "pill" }, box, " ", one);
      });
      place.replaceChildren(...(boxes.length ? boxes : [h("span", { class: "quiet" }, kind.none ?? "none")]));
    };
    fill();
    if (kind.ofHosts) editor.ofHosts.push({ control: place, fill });
    return h(
      "div",
      { class: "field span", role: "group", "aria-labelledby": `${id}.label`, "data-path": id },
      h("span", { class: "label", id: `${id}.label` }, label),
      place,
      kind.hint ? h("span", { class: "hint" }, kind.hint) : null,
      wrongs(path),
    );
  };
}

/**
 * A list of texts, one field each.
 * @param {string} name
 * @param {string} label
 * @param {Kind & { one: string, long?: boolean }} kind `one`: what one of them is called
 * @returns {Spec}
 */
export function texts(name, label, kind) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path) ?? [];
    if (!Array.isArray(value)) return odd(editor, path, label);
    const id = dotted(path);
    /** @param {Event} event */
    const add = ({ currentTarget }) => {
      editor.insert(path, editor.list(path).length, "");
      renew(currentTarget, dotted([...path, editor.list(path).length - 1]));
    };
    const rows = value.map((text, index) => {
      const own = [...path, index];
      const remove = button("Remove", ({ currentTarget }) => {
        editor.remove(path, index);
        const left = editor.list(path).length;
        renew(currentTarget, left ? `${dotted([...path, Math.min(index, left - 1)])}.remove` : `${dotted(path)}.add`);
        say(`${kind.one} ${index + 1} removed`);
      }, { class: "plain small", id: `${dotted(own)}.remove`, "aria-label": `Remove ${kind.one} ${index + 1}` });
      if (typeof text !== "string") return h("div", { class: "row" }, odd(editor, own, `${index + 1}`), remove);
      const control = textControl(text, kind, (typed) => editor.set(own, typed));
      control.id = dotted(own);
      control.setAttribute("aria-label", `${kind.one} ${index + 1}`);
      control.setAttribute("aria-describedby", `${dotted(own)}.wrongs`);
      if (!kind.long) {
        control.addEventListener("keydown", (event) => {
          if (event.key !== "Enter" || event.isComposing) return;
          event.preventDefault();
          add(event);
        });
      }
      return h("div", { class: "row field" }, h("div", { class: "row-line" }, control, remove), wrongs(own));
    });
    return h(
      "div",
      { class: kind.wide ? "field span" : "field", role: "group", "aria-labelledby": `${id}.label`, "data-path": id },
      h("span", { class: "label", id: `${id}.label` }, label),
      kind.hint ? h("span", { class: "hint" }, kind.hint) : null,
      h("div", { class: "rows" }, ...rows),
      h("div", { class: "actions" }, button(`Add ${kind.one}`, add, { class: "small", id: `${id}.add` })),
      wrongs(path),
    );
  };
}

/**
 * An object with fields of its own.
 * @param {string} name
 * @param {string} label
 * @param {Spec[]} specs
 * @returns {Spec}
 */
export function group(name, label, specs) {
  return (editor, base) => {
    const path = [...base, name];
    const value = editor.get(path);
    if (value !== undefined && !isObject(value)) return odd(editor, path, label);
    return h(
      "div",
      { class: "span", "data-path": dotted(path) },
      h("div", { class: "fields" }, ...specs.map((spec) => spec(editor, path))),
      wrongs(path),
    );
  };
}
