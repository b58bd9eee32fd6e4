// The Validation section: rules, each with the fields of its validator.

import { area, check, chips, choice, hostChoice, line, number } from "./fields.js";
import { items } from "./items.js";
import { isObject } from "./scenario.js";
import { tryIt } from "./try.js";

/** @typedef {import("./scenario.js").Editor} Editor */
/** @typedef {import("./scenario.js").Path} Path */
/** @typedef {import("./fields.js").Spec} Spec */

const VALIDATORS = {
  host_state: { words: "Host state", means: "a command on a host, after the job" },
  job_resolution_status: { words: "Resolution", means: "how the job was resolved" },
  pattern_match: { words: "Pattern", means: "a text found, or found nowhere, in the evidence" },
  task_count: { words: "Task count", means: "how many tasks the job made" },
  turns: { words: "Turns", means: "which hosts worked at the same time, turn by turn" },
};

const RESOLUTIONS = ["success", "partial", "no_action", "agentic_failure", "hard_failure"];

/** @type {[string, string, string][]} */
const WHERES = [
  ["Of each task", "executed_commands", "the commands that were run"],
  ["Of each task", "task_summary", "how it ended: stop reason and summary"],
  ["Of each task", "task_description", "the objective it was given"],
  ["Of each task", "write_file", "paths of files written by a tool"],
  ["Of each task", "update_file", "paths of files edited by a tool"],
  ["Of each task", "use_mcp_tool", "MCP calls with their arguments"],
  ["Of each task", "tool_calls", "tool calls of any kind, with their arguments"],
  ["Of each task", "agent_messages", "what the agent answered"],
  ["Of each task", "operational_rules", "the operational rules it was given"],
  ["Of the job", "job_resolution", "the reasoning of its resolution"],
  ["Of the job", "job_plan", "its plan"],
  ["Of the ticket", "gateway_messages", "what was posted, but for the last message"],
  ["Of the ticket", "gateway_summary", "the last message that was posted"],
  ["Of older scenarios", "task_plan", "never a value"],
];

const wheres = WHERES.map(([group, value, means]) => ({ value, words: `${value}: ${means}`, group }));
const exitCode = number("exit_code", "Exit status", { placeholder: "0" });

/** @type {Record<string, Spec[]>} */
const FIELDS = {
  host_state: [
    area("run", "Command", { code: true, required: true, hint: "Run as root when the job is over; it passes where the command ends with the exit status" }),
    hostChoice("on", "Host", "the first host"),
    exitCode,
  ],
  job_resolution_status: [
    chips("statuses", "The resolution is one of", () => RESOLUTIONS, { required: true }),
  ],
  pattern_match: [
    line("pattern", "Pattern", { code: true, required: true, wide: true, hint: "A regular expression of Python, searched in each value apart, in capitals or not" }),
    choice("where", "Searched in", () => wheres, { broad: true }),
    check("negate", "Must be found nowhere", { redraws: true }),
  ],
  task_count: [
    number("min", "At least", { hint: "tasks" }),
    number("max", "At most", { hint: "tasks; 0: none was made" }),
  ],
  turns: [
    items("turns", {
      one: "turn",
      first: "hosts",
      empty: "No turn is listed yet.",
      add: [{ words: "Add a turn", item: () => ({}) }],
      fields: () => [
        chips("hosts", "Hosts with a task in it", (editor) => editor.hosts, { ofHosts: true, none: "The scenario has no hosts yet.", hint: "No other host may have one, unless a number is given" }),
        number("at_least", "At least", { hint: "hosts, those above among them" }),
      ],
    }),
  ],
};

/** What a new rule needs. @type {Record<string, () => Record<string, any>>} */
const NEW = {
  host_state: () => ({ run: "" }),
  job_resolution_status: () => ({ statuses: ["success"] }),
  pattern_match: () => ({ where: "executed_commands", pattern: "" }),
  task_count: () => ({ min: 1 }),
  turns: () => ({ turns: [{}] }),
};
const OWN = {
  host_state: ["run", "on", "exit_code"],
  job_resolution_status: ["statuses"],
  pattern_match: ["pattern", "where", "negate"],
  task_count: ["min", "max"],
  turns: ["turns"],
};

/** @param {string} validator */
function made(validator) {
  return Object.assign(Object.create(null), { label: "", validator }, NEW[validator]());
}

/**
 * Another validator: the fields of the one before are laid aside, and come back with it.
 * @param {Editor} editor
 * @param {Path} path of the rule
 * @param {string} validator
 */
function become(editor, path, validator) {
  const rule = editor.get(path);
  const aside = editor.earlier.get(rule) ?? new Map();
  editor.earlier.set(rule, aside);
  const wanted = /** @type {Record<string, string[]>} */ (OWN)[validator] ?? [];
  const before = /** @type {Record<string, string[]>} */ (OWN)[rule.validator] ?? [];
  for (const name of before) {
    if (wanted.includes(name) || !(name in rule)) continue;
    aside.set(name, rule[name]);
    delete rule[name];
  }
  rule.validator = validator;
  const fresh = NEW[validator]();
  const known = wanted.some((name) => aside.has(name));
  for (const name of wanted) {
    if (name in rule) continue;
    if (aside.has(name)) rule[name] = aside.get(name);
    else if (!known && name in fresh) rule[name] = fresh[name];
  }
  editor.told.changed();
}

const validator = choice(
  "validator",
  "Validator",
  () => Object.entries(VALIDATORS).map(([value, { words, means }]) => ({ value, words: `${words}: ${means}` })),
  { redraws: true, changed: become },
);

/** The rules. */
export const rules = items("validation", {
  one: "rule",
  from: 0, // as verdicts and results count them
  first: "label",
  empty: "No rules: nothing is graded but that the job completed.",
  add: Object.entries(VALIDATORS).map(([name, { words }], place) => ({
    words: `Add: ${words}`,
    item: () => made(name),
    id: place ? `validation.add.${name}` : "validation.add",
  })),
  top: () => [
    line("label", "Label", { required: true, hint: "Shown in the results" }),
    validator,
    check("required", "Required", { usual: true, hint: "Else it never fails a run" }),
  ],
  fields: (editor, path) => FIELDS[editor.get([...path, "validator"])] ?? [],
  aside: (editor, path) => {
    const rule = editor.get(path);
    return isObject(rule) && rule.validator === "pattern_match" ? tryIt(editor, path) : null;
  },
});
