// The support files that are kept with a scenario: there, added, removed; sent with it as one archive.

import { button, h, renew, shown } from "./dom.js";
import { call, say } from "./page.js";
import { dotted } from "./scenario.js";

/** @typedef {import("./scenario.js").Editor} Editor */
/** @typedef {{ size: number, content?: Blob, of?: string }} Support `of`: the scenario that has it */

/** The files of the scenario that is being written. */
export class SupportFiles {
  /**
   * @param {{ path: string, size: number }[]} there
   * @param {string} of the scenario that has them
   * @param {boolean} own whether that is the scenario itself
   */
  constructor(there, of, own) {
    /** @type {Map<string, Support>} */
    this.files = new Map(there.map(({ path, size }) => [path, { size, of }]));
    /** Whether they are others than those that are kept. */
    this.changed = !own && there.length > 0;
    /** Whether somebody changed them here. */
    this.touched = false;
  }

  /** @returns {string[]} */
  get names() {
    return [...this.files.keys()].sort();
  }

  /** The field that shows them. @returns {import("./fields.js").Spec} */
  get field() {
    return (editor) => {
      const rows = this.names.map((name) => this.#row(editor, name));
      const input = /** @type {HTMLInputElement} */ (h("input", { type: "file", multiple: true, id: "upload" }));
      const folder = /** @type {HTMLInputElement} */ (h("input", { id: "upload-folder", class: "code", placeholder: "files/", autocomplete: "off" }));
      input.addEventListener("change", () => {
        for (const file of input.files ?? []) this.#add(`${folderOf(folder.value)}${file.name}`, file);
        this.#told(editor, input, `${input.files?.length} files added`);
      });
      return h(
        "div",
        { class: "span stack tight" },
        rows.length ? h("ul", { class: "plain", id: "kept-files" }, ...rows) : h("p", { class: "quiet" }, "No file is kept with this scenario."),
        h(
          "div",
          { class: "fields" },
          h("div", { class: "field" }, h("label", { for: "upload" }, "Add files"), input, h("span", { class: "hint" }, "Kept when the scenario is saved")),
          h("div", { class: "field" }, h("label", { for: "upload-folder" }, "In the folder"), folder),
        ),
      );
    };
  }

  /** @param {Editor} editor @param {string} name */
  #row(editor, name) {
    const file = /** @type {Support} */ (this.files.get(name));
    const used = editor.list(["files"]).some((one) => /** @type {any} */ (one)?.from === name);
    const link = file.of
      ? h("a", { href: `/api/v1/scenarios/${encodeURIComponent(file.of)}/files/${name.split("/").map(encodeURIComponent).join("/")}`, download: true }, h("code", {}, shown(name)))
      : h("code", {}, shown(name));
    return h(
      "li",
      { class: "row-line" },
      link,
      h("span", { class: "quiet" }, `${file.size} bytes${file.content ? ", new" : ""}${used ? "" : ", not put on any host"}`),
      used ? null : button("Put on hosts", ({ currentTarget }) => {
        editor.insert(["files"], editor.list(["files"]).length, { from: name, to: "" });
        renew(currentTarget, dotted(["files", editor.list(["files"]).length - 1, "to"]));
      }, { class: "small", "aria-label": `Put ${shown(name)} on hosts` }),
      button("Remove", ({ currentTarget }) => {
        this.files.delete(name);
        this.#told(editor, currentTarget, `${shown(name)} removed`);
      }, { class: "plain small", "aria-label": `Remove the file ${shown(name)}` }),
    );
  }

  /** @param {string} name @param {Blob} content */
  #add(name, content) {
    this.files.set(name, { size: content.size, content });
  }

  /** @param {Editor} editor @param {EventTarget | null} where @param {string} words */
  #told(editor, where, words) {
    this.changed = this.touched = true;
    editor.told.changed();
    renew(where, "upload");
    say(words);
  }

  /**
   * The scenario's folder as an archive.
   * @param {string} text the scenario
   * @returns {Promise<Blob>}
   */
  async packed(text) {
    /** @type {[string, Uint8Array][]} */
    const entries = [["scenario.json", new TextEncoder().encode(text)]];
    for (const [name, file] of this.files) {
      entries.push([name, new Uint8Array(await (await contentOf(name, file)).arrayBuffer())]);
    }
    return zipped(entries);
  }
}

/** @param {string} name @param {Support} file */
async function contentOf(name, file) {
  if (file.content) return file.content;
  const path = name.split("/").map(encodeURIComponent).join("/");
  return (await call(`/api/v1/scenarios/${encodeURIComponent(file.of ?? "")}/files/${path}`)).blob();
}

/** @param {string} typed */
function folderOf(typed) {
  const plain = typed.trim().replace(/\/+$/, "");
  return plain ? `${plain}/` : "";
}

/**
 * A ZIP archive whose entries are stored as they are (APPNOTE.TXT 4.3).
 * @param {[string, Uint8Array][]} entries
 */
function zipped(entries) {
  /** @type {BlobPart[]} */
  const parts = [];
  /** @type {Uint8Array[]} */
  const directory = [];
  let offset = 0;
  for (const [name, content] of entries) {
    const title = new TextEncoder().encode(name);
    // version, flags (UTF-8 names), stored, time and date (1980-01-01), CRC, sizes, length of the name
    const common = [[20, 2], [0x800, 2], [0, 2], [0, 2], [33, 2], [crc(content), 4], [content.length, 4], [content.length, 4], [title.length, 2], [0, 2]];
    const local = packed([[0x04034b50, 4], ...common]);
    parts.push(local, title, content);
    directory.push(packed([[0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]), title);
    offset += local.length + title.length + content.length;
  }
  const size = directory.reduce((sum, part) => sum + part.length, 0);
  const end = packed([[0x06054b50, 4], [0, 2], [0, 2], [entries.length, 2], [entries.length, 2], [size, 4], [offset, 4], [0, 2]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
}

/** Numbers in little-endian bytes. @param {number[][]} numbers number and bytes of each */
function packed(numbers) {
  const bytes = numbers.flatMap(([number, size]) => Array.from({ length: size }, (_, place) => (number >>> (8 * place)) & 255));
  return new Uint8Array(bytes);
}

const CRC = Uint32Array.from({ length: 256 }, (_, start) => {
  let found = start;
  for (let bit = 0; bit < 8; bit += 1) found = found & 1 ? (found >>> 1) ^ 0xedb88320 : found >>> 1;
  return found;
});

/** @param {Uint8Array} content */
function crc(content) {
  let found = ~0;
  for (const byte of content) found = (found >>> 8) ^ CRC[(found ^ byte) & 255];
  return ~found >>> 0;
}
