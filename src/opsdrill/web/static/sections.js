// The sections of the form: every key of the scenario format has its place in one of them.

import { button, h, renew } from "./dom.js";
import { area, check, choice, group, hostChoice, line, number, odd, textControl, texts, wrongs } from "./fields.js";
import { items } from "./items.js";
import { say } from "./page.js";
import { rules } from "./rules.js";
import { dotted, isObject } from "./scenario.js";

/** @typedef {import("./scenario.js").Editor} Editor */
/** @typedef {import("./scenario.js").Path} Path */
/** @typedef {import("./fields.js").Spec} Spec */
/** @typedef {{ id: string, title: string, hint?: string, specs: Spec[] }} Section */

const run = area("run", "Command", { code: true, required: true });
const user = line("user", "User", { placeholder: "root" });
const on = hostChoice("on", "Host", "the first host");
const status = number("exit_code", "Exit status", { placeholder: "0" });

/**
 * @param {string} name
 * @param {string} empty
 * @returns {Spec}
 */
function steps(name, empty) {
  return items(name, {
    one: `${name} step`,
    first: "run",
    empty,
    add: [{ words: "Add a step", item: () => ({ run: "" }) }],
    fields: () => [run, on, user, number("timeout", "Timeout", { placeholder: "as a command", hint: "seconds" }), status],
  });
}

const ready = items("ready", {
  one: "check",
  first: "run",
  empty: "No check: nobody proves that the fault is really there.",
  add: [{ words: "Add a check", item: () => ({ run: "" }) }],
  fields: () => [
    run,
    on,
    user,
    status,
    check("fails", "Must fail", { hint: "with any status but 0" }),
    number("within", "Within", { placeholder: "10", hint: "seconds" }),
  ],
});

const replies = items("replies", {
  one: "reply",
  first: "when",
  add: [{ words: "Add a reply", item: () => ({ when: "", body: "" }) }],
  fields: () => [
    line("when", "When a message fits", { code: true, required: true, wide: true, hint: "A regular expression" }),
    number("after", "After", { placeholder: "0", hint: "seconds" }),
    area("body", "The requester answers", { required: true }),
  ],
});

const files = items("files", {
  one: "file",
  first: "from",
  empty: "No file is put on hosts.",
  redraws: true,
  add: [{ words: "Put a file on hosts", item: () => ({ from: "", to: "" }) }],
  fields: () => [
    choice("from", "File", (editor) => editor.files().map((value) => ({ value })), { unknown: "not there" }),
    line("to", "Goes to", { code: true, required: true, placeholder: "/etc/app.conf" }),
    hostChoice("on", "Host", "all hosts"),
    line("mode", "Mode", { code: true, placeholder: "0644" }),
    line("owner", "Owner", { placeholder: "root" }),
  ],
});

/** Hosts stand as `NAME` or `{name, image}`; one without an image stays as it was written.
 * @type {Spec} */
const hosts = (editor) => {
  const path = /** @type {Path} */ (["hosts"]);
  const value = editor.get(path) ?? [];
  if (!Array.isArray(value)) return odd(editor, path, "Hosts");
  const rows = value.map((host, index) => hostRow(editor, host, index));
  return h(
    "div",
    { class: "rows span", "data-path": "hosts" },
    rows.length ? null : h("p", { class: "quiet" }, "No host: only for scenarios whose steps and rules need none."),
    ...rows,
    h("div", { class: "actions" }, button("Add a host", ({ currentTarget }) => {
      editor.insert(path, value.length, freeName(editor));
      const added = `hosts[${editor.list(path).length - 1}].name`;
      renew(currentTarget, added);
      editor.hostsChanged();
      /** @type {HTMLInputElement | null} */ (document.getElementById(added))?.select(); // to be typed over
    }, { class: "small", id: "hosts.add" })),
    wrongs(path),
  );
};

/** @param {Editor} editor */
function freeName(editor) {
  const last = /^(.*?)(\d+)$/.exec(editor.hosts.at(-1) ?? "");
  if (!last) return editor.hosts.length ? "" : "web-01";
  const name = `${last[1]}${String(Number(last[2]) + 1).padStart(last[2].length, "0")}`;
  return editor.hosts.includes(name) ? "" : name;
}

/** @param {Editor} editor @param {any} host @param {number} index */
function hostRow(editor, host, index) {
  const own = ["hosts", index];
  const remove = button("Remove", ({ currentTarget }) => {
    editor.remove(["hosts"], index);
    const left = editor.list(["hosts"]).length;
    renew(currentTarget, left ? `hosts[${Math.min(index, left - 1)}].remove` : "hosts.add");
    editor.hostsChanged();
  }, { class: "plain small", id: `${dotted(own)}.remove`, "aria-label": `Remove host ${index + 1}` });
  const known = isObject(host);
  const [name, image] = known ? [host.name ?? "", host.image ?? ""] : [host, ""];
  if (typeof name !== "string" || typeof image !== "string") {
    return h("div", { class: "row-line" }, odd(editor, own, `Host ${index + 1}`), remove);
  }
  /** @param {string} key @param {string} text */
  const put = (key, text) => {
    const now = editor.get(own);
    if (key === "name" && !isObject(now)) return editor.set(own, text);
    if (key === "image" && !isObject(now)) return editor.set(own, { name: now ?? "", image: text });
    editor.set([...own, key], key === "image" && text === "" ? undefined : text);
    if (Object.keys(now).join() === "name" && !known) editor.set(own, now.name);
  };
  const controls = [["name", name, "Name"], ["image", image, "Image"]].map(([key, text, label]) => {
    const control = textControl(text, { code: true, placeholder: key === "image" ? "the lab's own" : "" }, (typed) => {
      put(key, typed);
      editor.hostsChanged();
    });
    if (key === "name") followed(editor, index, control);
    control.id = dotted([...own, key]);
    control.setAttribute("aria-describedby", `${control.id}.wrongs`);
    return h("div", { class: "field", "data-path": control.id }, h("label", { for: control.id }, `${label}${index === 0 && key === "name" ? " (the first is the default)" : ""}`), control);
  });
  return h("div", { class: "row" }, h("div", { class: "row-line" }, ...controls, remove), wrongs([...own, "name"]), wrongs([...own, "image"]), wrongs(own));
}

/**
 * A host that gets another name has it wherever it is named.
 * @param {Editor} editor
 * @param {number} index
 * @param {HTMLInputElement} control
 */
function followed(editor, index, control) {
  let before = control.value;
  control.addEventListener("change", () => {
    const [old, name] = [before, control.value];
    const names = editor.list(["hosts"]).map((host) => (isObject(host) ? host.name : host));
    const clear = name !== "" && names.filter((one) => one === name).length === 1 && names[index] === name;
    if (!clear) return;
    before = name;
    if (old === "" || old === name || names.includes(old)) return;
    const places = renamed(editor, old, name);
    if (!places) return;
    editor.told.changed();
    editor.hostsChanged();
    say(`${places} places name ${name} now`);
  });
}

/** @param {Editor} editor @param {string} old @param {string} name */
function renamed(editor, old, name) {
  let places = 0;
  for (const key of ["files", "setup", "ready", "reference", "restore", "validation"]) {
    for (const item of editor.list([key])) {
      if (!isObject(item)) continue;
      if (item.on === old) {
        item.on = name;
        places += 1;
      }
      for (const turn of Array.isArray(item.turns) ? item.turns : []) {
        const at = isObject(turn) && Array.isArray(turn.hosts) ? turn.hosts.indexOf(old) : -1;
        if (at < 0) continue;
        turn.hosts[at] = name;
        places += 1;
      }
    }
  }
  const needs = editor.get(["requires"]);
  for (const holder of isObject(needs) ? [needs, needs.by_host] : []) {
    if (!isObject(holder) || !(old in holder) || name in holder) continue;
    if (["commands", "by_host", "users", "systemd"].includes(old)) continue;
    holder[name] = holder[old];
    delete holder[old];
    places += 1;
  }
  return places;
}

/** What hosts need stands as a list, by host, or in full; whatever is changed is then written in
 * full. @type {Spec} */
const requires = (editor) => {
  const path = /** @type {Path} */ (["requires"]);
  const value = editor.get(path);
  const full = inFull(value);
  if (full === null) return odd(editor, path, "Required on the hosts");
  const view = Object.assign(Object.create(editor), {
    /** @param {Path} wanted */
    get: (wanted) => (wanted[0] === "requires" ? editor.get.call({ value: { requires: full } }, wanted) : editor.get(wanted)),
    /** @param {Path} wanted @param {any} given */
    set: (wanted, given) => {
      editor.value.requires = full;
      editor.set(wanted, given);
      if (Object.keys(full).length === 0) delete editor.value.requires;
    },
  });
  const byHost = isObject(full.by_host) ? full.by_host : {};
  const names = [...new Set([...editor.hosts, ...Object.keys(byHost)])];
  return h(
    "div",
    { class: "span stack tight", "data-path": "requires" },
    h("h3", {}, "Required on the hosts"),
    h(
      "div",
      { class: "fields" },
      texts("commands", "Commands", { one: "command", code: true, hint: "that every host must have, such as curl" })(view, path),
      h(
        "div",
        { class: "stack tight" },
        check("users", "Users other than root", {})(view, path),
        check("systemd", "A running systemd", {})(view, path),
      ),
    ),
    names.length
      ? h(
          "details",
          { open: Object.keys(byHost).length > 0, id: "requires.by_host.all" },
          h("summary", {}, "Commands for one host alone"),
          h("div", { class: "fields section", "data-path": "requires.by_host" }, ...names.map((name) => texts(name, name, { one: `command for ${name}`, code: true })(view, [...path, "by_host"]))),
        )
      : null,
    wrongs(path),
  );
};

/** @param {any} value @returns {any} null for what no form of it is */
function inFull(value) {
  const made = Object.create(null);
  if (value === undefined) return made;
  if (Array.isArray(value)) {
    if (value.some((one) => typeof one !== "string")) return null;
    const commands = value.filter((one) => one !== "users" && one !== "systemd");
    if (commands.length) made.commands = commands;
    for (const name of ["users", "systemd"]) if (value.includes(name)) made[name] = true;
    return made;
  }
  if (!isObject(value)) return null;
  const own = ["commands", "by_host", "users", "systemd"];
  if (Object.keys(value).every((key) => own.includes(key))) return value;
  if ("by_host" in value) return null;
  for (const key of Object.keys(value)) {
    if (own.includes(key)) made[key] = value[key];
    else (made.by_host ??= Object.create(null))[key] = value[key];
  }
  return made;
}

/**
 * @param {{ fixedKey: boolean, upload: Spec }} with_
 * @returns {Section[]}
 */
export function sections({ fixedKey, upload }) {
  return [
    {
      id: "about",
      title: "About",
      hint: "The agent never sees any of this",
      specs: [
        line("key", "Key", { code: true, required: true, fixed: fixedKey, hint: fixedKey ? "A copy can have another one" : "Small letters, digits, hyphens; it stays" }),
        line("title", "Title", { required: true, wide: true }),
        area("description", "Description", { hint: "What the scenario tests" }),
        texts("tags", "Tags", { one: "tag", hint: "Words to select by" }),
      ],
    },
    {
      id: "ticket",
      title: "Ticket",
      hint: "What the agent is told",
      specs: [
        line("ticket_title", "Title of the ticket", { required: true, wide: true }),
        area("ticket_body", "Text of the ticket", { rows: 4 }),
        texts("operational_rules", "Operational rules", { one: "operational rule", long: true, wide: true, hint: "Given to every task" }),
      ],
    },
    { id: "hosts-section", title: "Hosts", hint: "What is worked on", specs: [hosts, requires] },
    { id: "files-section", title: "Support files", hint: "Put on hosts before setup", specs: [upload, files] },
    { id: "setup-section", title: "Setup", hint: "How the fault is made, step by step", specs: [steps("setup", "No step: the hosts stay as they are.")] },
    { id: "ready-section", title: "Readiness", hint: "Proof that the fault is really there", specs: [ready] },
    { id: "validation-section", title: "Validation", hint: "The rules that grade the work", specs: [rules] },
    { id: "replies-section", title: "Replies of the requester", hint: "On the ticket, to what the agent writes", specs: [replies] },
    { id: "reference-section", title: "Reference solution", hint: "A known right fix, for the controls only", specs: [steps("reference", "No step: the control of that name has nothing to do.")] },
    { id: "restore-section", title: "Restore", hint: "Brings a lasting host back", specs: [steps("restore", "No step; a throw-away host needs none.")] },
    {
      id: "limits-section",
      title: "Limits",
      hint: "In seconds",
      specs: [
        group("limits", "Limits", [
          number("job_seconds", "The whole job", { placeholder: "1800" }),
          number("command_seconds", "One command", { placeholder: "60" }),
          number("setup_seconds", "Setup as a whole", { placeholder: "300" }),
        ]),
      ],
    },
  ];
}
