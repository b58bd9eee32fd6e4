// The table of runs: how many are chosen to be compared; that newer ones came is said once.

import { say } from "./page.js";

let said = "";

function count() {
  // A batch that goes on brings others of both with every look.
  const button = /** @type {HTMLButtonElement | null} */ (document.getElementById("compare"));
  const words = document.getElementById("chosen");
  const chosen = document.querySelectorAll('input[name="run"][form="choice"]:checked').length;
  if (!button || !words) return;
  button.disabled = chosen < 2;
  const told = chosen === 0 ? "Choose two or more runs to compare them." : `${chosen} chosen${chosen < 2 ? ", choose one more" : ""}.`;
  if (words.textContent !== told) {
    words.textContent = told;
    if (chosen && told !== said) say(told);
    said = told;
  }
}

if (document.getElementById("choice")) {
  document.addEventListener("change", count);
  document.addEventListener("htmx:oobAfterSwap", count);
  document.addEventListener("htmx:afterSwap", count);
  addEventListener("pageshow", count); // the browser has put back by then what was chosen
  count();
}

let told = "";

document.addEventListener("htmx:afterSwap", () => {
  const news = document.getElementById("news")?.textContent ?? "";
  if (news && news !== told) say(news);
  told = news;
});
