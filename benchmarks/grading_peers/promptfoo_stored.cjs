// A provider of promptfoo that gives back what is stored: the values of a run, by target.
const fs = require("fs");

const RAN = new Set(["ran", "failed", "timed_out"]);
const stored = fs
  .readFileSync(process.env.RECORDS, "utf8")
  .split("\n", Number(process.env.RUNS))
  .map((line) => {
    const tasks = JSON.parse(line).tasks;
    const calls = tasks.flatMap((task) => task.tool_calls);
    return {
      executed_commands: calls
        .filter((call) => call.kind === "shell" && RAN.has(call.outcome))
        .map((call) => call.arguments.command),
      agent_messages: tasks.flatMap((task) => task.messages.map((said) => said.text)),
    };
  });

module.exports = class {
  id() {
    return "stored";
  }

  async callApi(prompt) {
    return { output: stored[Number(prompt)] };
  }
};
