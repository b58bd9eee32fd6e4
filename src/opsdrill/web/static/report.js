// A report: links open the line that they lead to, and the lines can be searched.

const lines = [...document.querySelectorAll(".line")];

function arrive() {
  const found = /^#line-(\d+)$/.exec(location.hash);
  const line = found && document.getElementById(`line-${found[1]}`);
  document.querySelector(".line.here")?.classList.remove("here");
  if (!(line instanceof HTMLDetailsElement)) return;
  line.open = true;
  line.classList.add("here");
  line.querySelector("summary")?.focus();
  line.scrollIntoView({ block: "center" });
}

const form = document.getElementById("find");
const input = document.getElementById("find-text");
const told = document.getElementById("find-told");
if (form && input instanceof HTMLInputElement && told) {
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    let count = 0;
    for (const line of lines) {
      const fits = !wanted || (line.textContent ?? "").toLowerCase().includes(wanted);
      line.hidden = !fits;
      count += Number(fits);
    }
    told.textContent = wanted ? `${count} of ${lines.length} lines` : "";
  });
}

addEventListener("hashchange", arrive);
arrive();
