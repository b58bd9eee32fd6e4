// The start form: how many runs it makes, a list that can be narrowed, and whether the lab works.

import { call, complain, say } from "./page.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("start"));
const planned = /** @type {HTMLElement} */ (document.getElementById("planned"));
const repeat = /** @type {HTMLInputElement} */ (document.getElementById("repeat"));
const narrow = /** @type {HTMLInputElement | null} */ (document.getElementById("narrow"));
const check = /** @type {HTMLButtonElement} */ (document.getElementById("check-lab"));
const place = /** @type {HTMLElement} */ (document.getElementById("lab-check"));

function count() {
  const groups = form.querySelectorAll('input[name="scenario"]:checked');
  let scenarios = 0;
  for (const one of groups) scenarios += Number(/** @type {HTMLElement} */ (one).dataset.many);
  const agents = form.querySelectorAll("input[data-agent]:checked").length;
  const runs = scenarios * agents * Math.max(1, Number(repeat.value) || 1);
  planned.textContent = runs ? `${runs === 1 ? "1 run" : `at most ${runs} runs`}` : "";
}

form.addEventListener("input", count);
count();

if (narrow) {
  narrow.hidden = false;
  narrow.addEventListener("input", () => {
    const wanted = narrow.value.toLowerCase();
    let left = 0;
    for (const item of document.querySelectorAll("#pick-list > li")) {
      const fits = (item.textContent ?? "").toLowerCase().includes(wanted);
      /** @type {HTMLElement} */ (item).hidden = !fits;
      left += Number(fits);
    }
    say(`${left} scenarios in the list`);
  });
}

check.hidden = false;
check.addEventListener("click", async () => {
  const lab = /** @type {HTMLSelectElement} */ (document.getElementById("lab"));
  const name = lab.value || /\((.*)\)/.exec(lab.options[0].text)?.[1] || "";
  check.disabled = true;
  place.textContent = "Trying…";
  try {
    const answer = await call(`/hosts/${encodeURIComponent(name)}/check`, { headers: { "HX-Request": "true" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    place.replaceChildren(...page.body.childNodes);
  } catch (error) {
    place.textContent = "";
    complain(/** @type {Error} */ (error).message);
  } finally {
    check.disabled = false;
  }
});
