// What is live on the pages of skillgit serve. Without it everything else works.
"use strict";

// --- Parts that change: each [data-live] has the address of a stream of parts; a part is [data-part=NAME].

const notices = new WeakMap();

function notice(page, text) {
  const place = page.querySelector("[data-part=notice]");
  if (place && notices.get(page) !== text) {
    notices.set(page, text);
    place.textContent = text;
  }
}

function identify(element) {
  return element.id || element.dataset.key || element.querySelector(":scope > summary")?.textContent || "";
}

// Replaces what a part shows; focus, selection, scrolling and open <details> stay as they are.
function replace(place, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const active = place.contains(document.activeElement) ? document.activeElement : null;
  const focus = active && (active.id ? `#${CSS.escape(active.id)}` : active.getAttribute("href") && `a[href="${CSS.escape(active.getAttribute("href"))}"]`);
  const open = new Set([...place.querySelectorAll("details[open]")].map(identify));
  const scrolled = [...place.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
  for (const details of fresh.content.querySelectorAll("details")) {
    if (open.has(identify(details))) details.open = true;
  }
  place.replaceChildren(fresh.content);
  place.querySelectorAll(".scroll").forEach((box, index) => {
    if (scrolled[index]) [box.scrollLeft, box.scrollTop] = scrolled[index];
  });
  if (focus) place.querySelector(focus)?.focus({ preventScroll: true });
}

function show(page, name, html) {
  if (name === "notice") {
    notice(page, html);
    return;
  }
  const place = page.querySelector(`[data-part="${CSS.escape(name)}"]`);
  // what is being selected is not pulled away from under the hand
  const selection = document.getSelection();
  if (!place || (selection && !selection.isCollapsed && place.contains(selection.anchorNode))) return;
  replace(place, html);
  const state = place.querySelector("[data-state]")?.dataset.state;
  if (!state) return;
  document.title = place.querySelector("[data-title]")?.dataset.title || document.title;
  for (const element of page.querySelectorAll("[data-when]")) {
    const hides = element.dataset.when !== state;
    if (element.hidden !== hides) element.hidden = hides;
  }
  const words = place.querySelector(".state .outcome")?.textContent || "";
  if (page.dataset.words !== undefined && page.dataset.words !== words) announce(words);
  page.dataset.words = words;
}

// One line for screen readers, for changes of state only.
function announce(text) {
  let place = document.getElementById("announced");
  if (!place) {
    place = document.createElement("p");
    place.id = "announced";
    place.className = "hidden";
    place.setAttribute("role", "status");
    document.body.append(place);
  }
  place.textContent = text;
}

function watch(page) {
  let source = null;
  let lost = 0;

  function open() {
    if (source || document.hidden) return;
    source = new EventSource(page.dataset.live);
    source.onmessage = (event) => {
      clearTimeout(lost);
      lost = 0;
      notice(page, "");
      const { part, html } = JSON.parse(event.data);
      show(page, part, html);
    };
    source.onopen = () => {
      clearTimeout(lost);
      lost = 0;
    };
    source.onerror = () => {
      // a stream ends now and then and is opened again; only one that stays away is worth a word
      lost = lost || setTimeout(() => notice(page, "The server does not answer. A training goes on without it."), 4000);
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 3000);
      }
    };
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  addEventListener("online", () => {
    close();
    open();
  });
  open();
}

// --- Forms that are checked while one types: [data-check] has the address, [data-checked] on the page is the answer.

function check(form) {
  const answer = document.querySelector("[data-checked]");
  let timer = 0;
  let running = null;

  async function ask() {
    if (running) running.abort(); // only the newest answer counts
    const mine = new AbortController();
    running = mine;
    answer.setAttribute("aria-busy", "true");
    const body = new URLSearchParams(new FormData(form));
    body.set("part", "1");
    try {
      const reply = await fetch(form.dataset.check, { method: "POST", body, signal: mine.signal });
      const html = await reply.text();
      if (running !== mine) return;
      if (!reply.ok) throw new Error(reply.statusText);
      replace(answer, html);
      // what belongs elsewhere in the form, as the cost beside the button that spends it
      for (const part of answer.querySelectorAll("[data-for]")) {
        form.querySelector(`[data-part="${CSS.escape(part.dataset.for)}"]`).replaceChildren(...part.childNodes);
        part.remove();
      }
      marked(form, answer);
    } catch (error) {
      if (error.name === "AbortError" || running !== mine) return;
      answer.textContent = "The check failed; the server does not answer.";
    }
    answer.removeAttribute("aria-busy");
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 400);
  });
  ask();
}

// The answer names the fields that are wrong and those that were changed.
function marked(form, answer) {
  const errors = new Map([...form.querySelectorAll("[data-error-of]")].map((place) => [place.dataset.errorOf, place]));
  const changes = new Map([...answer.querySelectorAll("[data-changed]")].map((place) => [place.dataset.changed, place.dataset.origin]));
  for (const field of form.querySelectorAll("[data-key]")) {
    const key = field.dataset.key;
    const input = field.querySelector("input:not([type=hidden]), select");
    const error = errors.get(key);
    const place = field.querySelector(".error");
    if (place) place.textContent = error ? error.textContent : "";
    if (error) input?.setAttribute("aria-invalid", "true");
    else input?.removeAttribute("aria-invalid");
    const origin = field.querySelector(".origin");
    if (origin) origin.textContent = changes.has(key) ? "you" : origin.dataset.was;
    field.classList.toggle("yours", changes.has(key));
    if (error) field.closest("details")?.setAttribute("open", "");
  }
}

// --- Zoom: drawing over a curve, or a key on it, asks for that part of the axis; the address keeps it.

function zoom(figure) {
  const svg = [...figure.querySelectorAll("svg.curve")].find((one) => one.getBoundingClientRect().width) || figure.querySelector("svg.curve");
  const [first, last] = svg.dataset.ends.split(" ").map(Number);

  function show(from, to) {
    const query = new URLSearchParams(location.search);
    const digits = last - first > 10 ? 0 : 3;
    if (from === null) query.delete("within");
    else query.set("within", `${+Math.max(0, from).toFixed(digits)}-${+to.toFixed(digits)}`);
    query.set("focus", "curve");
    location.search = query;
  }

  if (new URLSearchParams(location.search).get("focus") === "curve") figure.focus({ preventScroll: false });
  figure.addEventListener("keydown", (event) => {
    if (event.target !== figure || event.ctrlKey || event.metaKey || event.altKey) return;
    const width = last - first;
    const parts = { "+": [first + width / 4, last - width / 4], "-": [first - width / 2, last + width / 2], ArrowLeft: [first - Math.min(first, width / 2), last - Math.min(first, width / 2)], ArrowRight: [first + width / 2, last + width / 2], 0: [null, null] }[event.key];
    // whole steps and calls cannot be divided
    if (!parts || (event.key === "+" && width <= (svg.dataset.unit === "dollars" ? 0.01 : 2))) return;
    event.preventDefault();
    show(...parts);
  });
  for (const drawing of figure.querySelectorAll("svg.curve")) {
    const [left, right, top, bottom] = drawing.dataset.axes.split(" ").map(Number);
    const place = (event) => Math.min(right, Math.max(left, new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse()).x));
    const amount = (x) => first + ((x - left) / (right - left)) * (last - first);
    let start = null;
    let brush = null;
    drawing.addEventListener("pointerdown", (event) => {
      if (event.button || event.target.closest("a")) return;
      event.preventDefault();
      start = place(event);
      drawing.setPointerCapture(event.pointerId);
      brush = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      brush.setAttribute("class", "brush");
      brush.setAttribute("y", top);
      brush.setAttribute("height", bottom - top);
      drawing.append(brush);
    });
    drawing.addEventListener("pointermove", (event) => {
      if (start === null) return;
      brush.setAttribute("x", Math.min(start, place(event)));
      brush.setAttribute("width", Math.abs(place(event) - start));
    });
    for (const name of ["pointerup", "pointercancel"]) {
      drawing.addEventListener(name, (event) => {
        if (start === null) return;
        const ends = [amount(start), amount(place(event))].sort((a, b) => a - b);
        brush.remove();
        start = null;
        if (name === "pointerup" && ends[1] - ends[0] > (last - first) / 100) show(...ends);
      });
    }
  }
}

// --- Copying, and keys.

function copyable(element) {
  if (!navigator.clipboard) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(element.textContent);
    button.textContent = "copied";
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  element.after(" ", button);
}

// Calls a handler for each key that types nothing and is none of the browser's.
function onKey(handle) {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) handle(event);
  });
}

onKey((event) => {
  if (event.key !== "/") return;
  const filter = document.querySelector("[data-filter], input[type=search]");
  if (!filter) return;
  event.preventDefault();
  filter.focus();
});

// Drafts are gone through with keys: from one card to the next, and each with its own buttons.
const drafts = [...document.querySelectorAll("article.draft")];
const card = () => drafts.find((draft) => draft.ariaCurrent === "true");

document.addEventListener("focusin", (event) => {
  const focused = event.target.closest("article.draft");
  if (!focused) return;
  drafts.forEach((draft) => { draft.ariaCurrent = draft === focused ? "true" : null; });
  document.querySelector("#progress").textContent = focused.dataset.progress;
});

onKey((event) => {
  const said = document.querySelector(".review #said");
  if (!said) return;
  const step = { j: 1, k: -1 }[event.key];
  const selector = `:is(button, summary)[data-hotkey="${CSS.escape(event.key)}"]`;
  const button = card()?.querySelector(selector) ?? document.querySelector(`.review ${selector}`);
  if (step) {
    const next = drafts[drafts.indexOf(card()) + step];
    if (next) next.focus();
    else said.textContent = `there is no card ${step > 0 ? "below" : "above"}`;
  } else if (button?.disabled) said.textContent = button.title;
  else if (button) {
    event.preventDefault();
    button.click();
    if (button.closest("details")?.open) button.closest("details").querySelector("textarea").focus();
  }
});

if (card() && card() !== drafts[0]) card().focus();

// From one item to the next: links with a key.
onKey((event) => document.querySelector(`a[data-hotkey="${CSS.escape(event.key)}"]`)?.click());

// A form that starts something is sent once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, 5000);
});

document.querySelectorAll("[data-live]").forEach(watch);
document.querySelectorAll("form[data-check]").forEach(check);
document.querySelectorAll("[data-zoom]").forEach(zoom);
document.querySelectorAll("[data-copy]").forEach(copyable);
