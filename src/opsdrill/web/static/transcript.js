// The transcript: only the lines in sight are on the page, however many there are.

import { call, complain, localTimes, say } from "./page.js";

const CHUNK = 100;
const CHUNKS_KEPT = 30;
const BEYOND = 12; // lines that are ready above and below

/** @typedef {{ rows: HTMLElement[] | null }} Chunk */

export class Transcript {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.run = root.dataset.run ?? "";
    this.total = Number(root.dataset.total);
    /** @type {Map<number, Chunk>} */
    this.chunks = new Map();
    /** Heights of opened lines beyond that of a folded one. @type {Map<number, number>} */
    this.extra = new Map();
    this.current = 0;
    this.before = document.createElement("div");
    this.after = document.createElement("div");
    this.age = 0;
    const first = root.querySelector(".line");
    this.height = first instanceof HTMLElement ? first.getBoundingClientRect().height || 26 : 26;
    this.#takeServed();
    root.replaceChildren(this.before, this.after);
    root.classList.add("virtual");
    document.getElementById("line-pages")?.remove();
    let waiting = false;
    const soon = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        this.draw();
      });
    };
    root.addEventListener("scroll", soon, { passive: true });
    root.addEventListener("toggle", () => { this.#measure(); soon(); }, true);
    new ResizeObserver(soon).observe(root);
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("focusin", (event) => {
      const number = numberOf(event.target);
      if (number !== null) this.#mark(number);
    });
    root.addEventListener("click", (event) => {
      const link = event.target instanceof Element ? event.target.closest("a.whole") : null;
      if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.#whole(link);
    });
    this.draw();
  }

  /** The lines that came with the page are shown at once. */
  #takeServed() {
    const served = /** @type {HTMLElement[]} */ ([...this.root.querySelectorAll(".line")]);
    const from = Number(this.root.dataset.first);
    if (from % CHUNK || !served.length) return;
    if (served.length === this.total - from) this.chunks.set(from / CHUNK, { rows: served });
    else this.served = { from, rows: served };
    localTimes(this.root);
  }

  /** @param {number} number */
  top(number) {
    let found = number * this.height;
    for (const [place, extra] of this.extra) if (place < number) found += extra;
    return found;
  }

  /** The line at a height. @param {number} y */
  at(y) {
    const opened = [...this.extra].sort((a, b) => a[0] - b[0]);
    let added = 0;
    for (const [place, extra] of opened) {
      const begins = place * this.height + added;
      if (y < begins + this.height) break;
      if (y < begins + this.height + extra) return place;
      added += extra;
    }
    return Math.max(0, Math.min(this.total - 1, Math.floor((y - added) / this.height)));
  }

  draw() {
    const y = this.root.scrollTop;
    const first = Math.max(0, this.at(y) - BEYOND);
    const last = Math.min(this.total, this.at(y + this.root.clientHeight) + BEYOND + 1);
    /** @type {HTMLElement[]} */
    const rows = [];
    for (let number = first; number < last; number += 1) rows.push(this.#row(number));
    const there = [...this.root.children].slice(1, -1);
    if (there.length !== rows.length || rows.some((row, place) => row !== there[place])) this.#put(rows);
    this.before.style.height = `${this.top(first)}px`;
    this.after.style.height = `${this.top(this.total) - this.top(last)}px`;
    this.drawn = [first, last];
    if (this.root.scrollTop !== y) this.root.scrollTop = y;
    this.#measure();
  }

  /** Change what is there line by line, so that the one with the focus keeps it. @param {HTMLElement[]} rows */
  #put(rows) {
    const old = new Set([...this.root.children].slice(1, -1));
    let place = this.before.nextSibling;
    for (const row of rows) {
      if (row === place) place = place.nextSibling;
      else this.root.insertBefore(row, place);
      old.delete(row);
    }
    for (const row of old) row.remove(); // last, lest the list is shorter for a moment and scrolls
  }

  #measure() {
    let changed = false;
    for (const row of this.root.querySelectorAll(".line[data-number]")) {
      const number = Number(/** @type {HTMLElement} */ (row).dataset.number);
      const extra = row.hasAttribute("open") ? row.getBoundingClientRect().height - this.height : 0;
      if (Math.abs((this.extra.get(number) ?? 0) - extra) < 0.5) continue;
      changed = true;
      if (extra) this.extra.set(number, extra);
      else this.extra.delete(number);
    }
    if (changed && this.drawn) {
      this.before.style.height = `${this.top(this.drawn[0])}px`;
      this.after.style.height = `${this.top(this.total) - this.top(this.drawn[1])}px`;
    }
  }

  /** @param {number} number @returns {HTMLElement} */
  #row(number) {
    const place = Math.floor(number / CHUNK);
    let chunk = this.chunks.get(place);
    if (!chunk) {
      chunk = { rows: null };
      this.chunks.set(place, chunk);
      this.#fetch(place);
    } else {
      this.chunks.delete(place); // the one used last stands last
      this.chunks.set(place, chunk);
    }
    const served = this.served && number >= this.served.from ? this.served.rows[number - this.served.from] : undefined;
    const found = chunk.rows?.[number % CHUNK] ?? served ?? waitingRow(number);
    const summary = found.querySelector("summary");
    if (summary) summary.tabIndex = number === this.current ? 0 : -1;
    found.classList.toggle("here", number === this.here);
    found.classList.toggle("hit", this.hits?.has(number) ?? false);
    return found;
  }

  /** @param {number} place */
  async #fetch(place) {
    const age = this.age;
    await new Promise((done) => setTimeout(done, 40)); // who scrolls by does not ask
    if (this.drawn && !this.#wants(place)) {
      if (age === this.age) this.chunks.delete(place);
      return;
    }
    try {
      const answer = await call(`/runs/${this.run}/lines?from=${place * CHUNK}&count=${CHUNK}`);
      const box = document.createElement("template");
      box.innerHTML = await answer.text();
      if (age !== this.age && this.chunks.get(place)?.rows) return;
      const rows = /** @type {HTMLElement[]} */ ([...box.content.querySelectorAll(".line")]);
      const old = this.chunks.get(place)?.rows ?? (this.served?.from === place * CHUNK ? this.served.rows : []);
      rows.forEach((row, at) => {
        if (old[at]?.hasAttribute("open") || this.opening === place * CHUNK + at) row.setAttribute("open", "");
      });
      const focused = document.activeElement ? numberOf(document.activeElement) : null;
      const held = focused !== null && this.root.contains(document.activeElement);
      if (this.served?.from === place * CHUNK) this.served = undefined;
      this.chunks.set(place, { rows });
      const opened = this.opening !== undefined && Math.floor(this.opening / CHUNK) === place ? this.opening : null;
      if (opened !== null) this.opening = undefined;
      for (const known of this.chunks.keys()) {
        if (this.chunks.size <= CHUNKS_KEPT) break;
        if (!this.#wants(known)) this.chunks.delete(known);
      }
      this.draw();
      if (opened !== null) this.#reveal(opened);
      if (held && focused !== null) this.#focus(focused);
    } catch (error) {
      this.chunks.delete(place);
      complain(/** @type {Error} */ (error).message);
    }
  }

  /** Whether some line of a chunk is in sight. @param {number} place */
  #wants(place) {
    const [first, last] = this.drawn ?? [0, 0];
    return place * CHUNK < last && (place + 1) * CHUNK > first;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const number = numberOf(event.target);
    if (number === null || !(event.target instanceof Element) || event.target.localName !== "summary") return;
    const page = Math.max(1, Math.floor(this.root.clientHeight / this.height) - 1);
    const to = { ArrowDown: number + 1, ArrowUp: number - 1, Home: 0, End: this.total - 1, PageDown: number + page, PageUp: number - page }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const wanted = Math.max(0, Math.min(this.total - 1, to));
    this.#mark(wanted);
    this.#show(wanted);
    this.#focus(wanted);
  }

  /** @param {number} number */
  #mark(number) {
    if (number === this.current) return;
    const old = this.root.querySelector(`#line-${this.current} > summary`);
    if (old instanceof HTMLElement) old.tabIndex = -1;
    this.current = number;
    const next = this.root.querySelector(`#line-${number} > summary`);
    if (next instanceof HTMLElement) next.tabIndex = 0;
  }

  /** Bring a line into sight. @param {number} number @param {boolean} [middle] */
  #show(number, middle = false) {
    const top = this.top(number);
    const room = this.root.clientHeight;
    const seen = top >= this.root.scrollTop && top + this.height <= this.root.scrollTop + room;
    if (middle && !seen) this.root.scrollTop = top - room / 3;
    else if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (!seen) this.root.scrollTop = top + this.height - room;
    this.draw();
  }

  /** Bring what an opened line says into sight, its head first. @param {number} number */
  #reveal(number) {
    this.#measure();
    const top = this.top(number);
    const bottom = this.top(number + 1);
    if (bottom > this.root.scrollTop + this.root.clientHeight) {
      this.root.scrollTop = Math.min(top, bottom - this.root.clientHeight);
    }
  }

  /** @param {number} number */
  #focus(number) {
    const row = this.root.querySelector(`#line-${number}`);
    const target = row?.querySelector("summary") ?? row;
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }

  /** Go to a line, and open it. @param {number} number @param {{ focus?: boolean, open?: boolean }} [how] */
  go(number, { focus = true, open = true } = {}) {
    if (!(number >= 0 && number < this.total)) return;
    this.here = number;
    this.#mark(number);
    if (open) this.opening = number;
    this.#show(number, true);
    const row = this.root.querySelector(`#line-${number}`);
    if (open && row instanceof HTMLDetailsElement) {
      row.open = true;
      this.opening = undefined;
      this.#reveal(number);
    }
    this.root.scrollIntoView({ block: "nearest" });
    if (focus) this.#focus(number);
    say(`Line ${number}`);
  }

  /** @param {HTMLAnchorElement} link */
  async #whole(link) {
    const body = link.closest(".body");
    if (!body) return;
    link.textContent = "Loading…";
    try {
      const answer = await call(`${link.getAttribute("href")}?part=yes`);
      body.innerHTML = await answer.text();
      this.#measure();
      body.querySelector("pre")?.focus();
    } catch (error) {
      link.textContent = "Show whole";
      complain(/** @type {Error} */ (error).message);
    }
  }

  /** More was recorded: what is known is asked for again. @param {number} total */
  grow(total) {
    this.total = total;
    this.age += 1;
    const end = this.root.scrollTop + this.root.clientHeight >= this.root.scrollHeight - 2 * this.height;
    for (const place of [...this.chunks.keys()]) {
      if (this.#wants(place)) this.#fetch(place);
      else this.chunks.delete(place);
    }
    this.draw();
    if (end && this.root.scrollTop > 0) this.root.scrollTop = this.root.scrollHeight;
  }
}

/** @param {EventTarget | null} target */
function numberOf(target) {
  const row = target instanceof Element ? target.closest(".line[id]") : null;
  return row instanceof HTMLElement ? Number(row.id.replace("line-", "")) : null;
}

/** @param {number} number */
function waitingRow(number) {
  const row = document.createElement("div");
  row.className = "line waiting";
  row.id = `line-${number}`;
  row.tabIndex = -1;
  const place = document.createElement("span");
  place.className = "place";
  place.textContent = String(number);
  row.append(place, "…");
  return row;
}

/** @type {Transcript | undefined} */
let transcript;

/** The transcript of this page, made when there is something to show. */
export function shown() {
  const root = document.getElementById("lines");
  if (root && transcript?.root !== root) {
    transcript = new Transcript(root);
    find(transcript);
  }
  return transcript;
}

/** Searching and jumping. @param {Transcript} within */
function find(within) {
  const form = document.getElementById("find");
  if (!(form instanceof HTMLFormElement)) return;
  form.hidden = false;
  const input = /** @type {HTMLInputElement} */ (document.getElementById("find-text"));
  const told = /** @type {HTMLElement} */ (document.getElementById("find-told"));
  let looked = "";
  /** @type {number[]} */
  let numbers = [];
  let place = -1;
  let more = false;
  /** @param {number} step */
  const walk = async (step) => {
    const text = input.value;
    if (!text) return clear();
    if (text !== looked) {
      told.textContent = "Looking…";
      try {
        const answer = await call(`/runs/${within.run}/find?text=${encodeURIComponent(text)}`);
        ({ numbers, more } = await answer.json());
      } catch (error) {
        told.textContent = "";
        return complain(/** @type {Error} */ (error).message);
      }
      looked = text;
      place = step > 0 ? -1 : numbers.length;
      within.hits = new Set(numbers);
      const from = numbers.findIndex((number) => number >= within.current);
      if (step > 0 && from > 0) place = from - 1;
    }
    if (!numbers.length) {
      told.textContent = "Nothing found";
      within.draw();
      return;
    }
    place = (place + step + numbers.length) % numbers.length;
    told.textContent = `${place + 1} of ${numbers.length}${more ? " or more" : ""}`;
    within.go(numbers[place], { focus: false, open: false });
  };
  const clear = () => {
    looked = "";
    numbers = [];
    within.hits = undefined;
    told.textContent = "";
    within.draw();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    walk(1);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.shiftKey) {
      event.preventDefault();
      walk(-1);
    }
  });
  input.addEventListener("input", () => { if (!input.value) clear(); });
  document.getElementById("find-back")?.addEventListener("click", () => walk(-1));
  document.getElementById("jump")?.addEventListener("change", (event) => {
    const value = /** @type {HTMLSelectElement} */ (event.target).value;
    if (value) within.go(Number(value), { focus: false });
  });
}

/** Go where the address points to. */
export function arrive() {
  const found = /^#line-(\d+)$/.exec(location.hash);
  if (found) shown()?.go(Number(found[1]));
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest('a[href^="#line-"]') : null;
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  history.replaceState(null, "", link.getAttribute("href"));
  arrive();
});
addEventListener("hashchange", arrive);
shown();
arrive();
