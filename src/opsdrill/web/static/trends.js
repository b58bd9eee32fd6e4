// The lines of a trend, drawn by uPlot; the table below them has the same numbers.

const HOUR = 3600;
const DAY = 24 * HOUR;
const place = document.getElementById("chart");

/** @param {string} name */
function token(name) {
  // A canvas does not know light-dark(): an element tells what the colour is now.
  const probe = document.createElement("span");
  probe.className = `verdict ${name}`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

const hourly = place?.dataset.step === "hour";

/** A point's begin as the table writes it. @param {number | null} at in seconds */
function when(at) {
  if (at === null || at === undefined) return "–";
  const text = new Date(at * 1000).toISOString();
  return hourly ? `${text.slice(0, 10)} ${text.slice(11, 16)}` : text.slice(0, 10);
}

/** @type {any} */
let drawn;

function draw() {
  if (!place || !("uPlot" in window)) return;
  drawn?.destroy();
  const points = JSON.parse(place.dataset.points ?? "[]");
  const ink = token("");
  const share = (/** @type {any} */ _plot, /** @type {number | null} */ value) => (value === null || value === undefined ? "–" : `${value} %`);
  const line = (/** @type {string} */ label, /** @type {string} */ colour, /** @type {number[]} */ dash = []) => ({
    label, stroke: token(colour), width: 2, dash, value: share, spanGaps: true, points: { size: 6, show: true },
  });
  const axis = { stroke: ink, grid: { stroke: ink, width: 0.25 }, ticks: { stroke: ink, width: 0.25 } };
  const times = {
    ...axis,
    space: hourly ? 130 : 90,
    incrs: [...(hourly ? [1, 2, 6, 12].map((hours) => hours * HOUR) : []), ...[1, 2, 7, 14, 28, 56, 112, 364].map((days) => days * DAY)],
    values: (/** @type {any} */ _plot, /** @type {number[]} */ ticks) => ticks.map(when),
  };
  drawn = new /** @type {any} */ (window).uPlot(
    {
      width: Math.max(place.clientWidth, 200),
      height: 240,
      padding: [null, hourly ? 60 : 40, null, null],
      scales: {
        y: { range: [0, 100] },
        x: { range: (/** @type {any} */ _plot, /** @type {number} */ from, /** @type {number} */ to) => (points[0].length === 1 ? [points[0][0] - DAY, points[0][0] + DAY] : [from, to]) },
      },
      tzDate: (/** @type {number} */ at) => /** @type {any} */ (window).uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      series: [{ label: "From", value: (/** @type {any} */ _plot, /** @type {number | null} */ at) => when(at) }, line("passed", "passed"), line("compliance", "running", [6, 4]), line("error", "error", [2, 3])],
      axes: [times, { ...axis, size: 60, values: (/** @type {any} */ _plot, /** @type {number[]} */ ticks) => ticks.map((tick) => `${tick} %`) }],
    },
    points,
    place,
  );
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.querySelector("[data-theme-switch]")?.addEventListener("click", () => setTimeout(draw));
if (place) {
  let width = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    drawn?.setSize({ width: Math.max(width, 200), height: 240 });
  }).observe(place);
}
