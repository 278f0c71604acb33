"use strict";
// Texts of prompts and answers enter the page as text nodes only, never as markup.

let state = null;
let order = []; // Tiers of positions, best first: what is chosen so far.
let joining = false; // The next answer ties with the last one.
let focused = 0;
let busy = false;

const byId = (id) => document.getElementById(id);

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

async function call(path, body) {
  if (busy) return;
  busy = true;
  try {
    const asked = body === undefined ? {} :
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const reply = await fetch(`/api/${path}`, asked);
    const said = reply.headers.get("content-type") === "application/json" ? await reply.json() : null;
    if (!reply.ok) throw new Error(said ? said.error : await reply.text());
    show(said);
  } catch (error) {
    complain(error instanceof TypeError ? "no answer; is `groundrule rank` still running?" : error.message);
  } finally {
    busy = false;
  }
}

function complain(text) {
  byId("error").textContent = text;
  byId("error").hidden = !text;
}

function show(next) {
  const isNew = !state || !next.task || !state.task || state.task.key !== next.task.key;
  state = next;
  complain("");
  if (isNew) { order = []; joining = false; focused = 0; }
  byId("who").textContent = `GroundRule · ${state.annotator}`;
  byId("progress").max = state.total;
  byId("progress").value = state.done;
  const later = state.skipped ? `, ${state.skipped} for later` : "";
  byId("count").textContent = `${state.done} of ${state.total} judged${later}`;
  if (isNew) {
    byId("prompt").replaceChildren(...(state.task ? prompt() : finished()));
    byId("answers").className = state.mode;
    byId("answers").replaceChildren(...(state.task ? state.task.answers.map(card) : []));
    window.scrollTo(0, 0);
  }
  draw();
}

function finished() {
  return [element("h1", "", "All judged"), element("p", "quiet", "Everything is saved. You may close this page and stop the command with Ctrl-C.")];
}

function prompt() {
  const parts = state.task.prompt.map(message);
  if (state.task.tools.length) {
    const tools = state.task.tools.map((tool) => element("li", "",
      element("b", "", tool.name), tool.about ? ` ${tool.about}` : "",
      tool.parameters ? element("pre", "", tool.parameters) : ""));
    parts.push(element("details", "", element("summary", "", `Tools of the agent (${tools.length})`), element("ul", "tools", ...tools)));
  }
  return parts;
}

function message({ role, text }) {
  const said = element("div", "text", text);
  said.dir = "auto";
  return element("div", "message", element("h2", "", role), said);
}

function card(messages, i) {
  const alone = messages.length === 1;
  const body = alone ? [message(messages[0]).lastChild] : messages.map(message);
  const scroll = element("div", "said", ...body);
  scroll.tabIndex = 0;
  const number = element("button", "number", String(i + 1));
  const place = element("span", "place");
  const made = element("article", "card", element("div", "head", number, place), scroll);
  number.type = "button";
  if (state.mode === "compare") {
    number.setAttribute("aria-label", `Answer ${i + 1} is better`);
    place.textContent = "Choose this one";
    made.querySelector(".head").addEventListener("click", () => judge([[i], [1 - i]]));
  } else {
    number.setAttribute("aria-label", `Put answer ${i + 1} next, or take it out`);
    made.querySelector(".head").addEventListener("click", () => choose(i));
  }
  return made;
}

function choose(i) {
  if (order.some((tier) => tier.includes(i))) {
    order = order.map((tier) => tier.filter((k) => k !== i)).filter((tier) => tier.length);
  } else if (joining && order.length) {
    order[order.length - 1].push(i);
  } else {
    order.push([i]);
  }
  joining = false;
  focused = i;
  draw();
}

function back() {
  if (joining) joining = false;
  else if (order.length && order[order.length - 1].pop() !== undefined && !order[order.length - 1].length) order.pop();
  draw();
}

function tie() {
  if (state.mode === "compare") judge([[0, 1]]);
  else if (order.length && !isComplete()) { joining = !joining; draw(); }
}

const isComplete = () => state.task && order.flat().length === state.task.answers.length;

function judge(tiers) { call("judge", { task: state.task.key, order: tiers }); }
function save() { if (isComplete()) judge(order); }
function skip() { if (state.task) call("skip", { task: state.task.key }); }
function undo() { if (state.can_undo) call("undo", {}); }

function button(text, key, action, options = {}) {
  const made = element("button", options.main ? "main" : "", `${text} `, element("kbd", "", key));
  made.type = "button";
  made.disabled = Boolean(options.off);
  made.setAttribute("aria-pressed", String(Boolean(options.pressed)));
  made.addEventListener("click", action);
  return made;
}

function draw() {
  const ordering = state.mode === "order";
  const shared = [button("Skip", "s", skip, { off: !state.task }), button("Undo", "u", undo, { off: !state.can_undo })];
  const own = ordering ? [
    button("Save", "Enter", save, { off: !isComplete(), main: true }),
    button("Next one ties", "=", tie, { off: !order.length || isComplete(), pressed: joining }),
    button("Take back", "Backspace", back, { off: !order.length }),
  ] : [
    button("1 is better", "1 or ←", () => judge([[0], [1]])),
    button("Equally good", "=", tie),
    button("2 is better", "2 or →", () => judge([[1], [0]])),
  ];
  const actions = byId("actions");
  const at = [...actions.children].indexOf(document.activeElement);
  actions.replaceChildren(...(state.task ? own : []), ...shared);
  actions.children[at]?.focus();
  byId("keys").textContent = !state.task ? "" : ordering
    ? "Type the numbers, best first. = ties the next with the last. Arrows and space choose too."
    : "Which answer does better what was asked?";
  if (!state.task || !ordering) { byId("order").textContent = ""; return; }
  const written = order.map((tier) => tier.map((i) => i + 1).join(" = ")).join(" > ");
  const tail = isComplete() ? "" : order.length ? (joining ? " = …" : " > …") : "best first …";
  byId("order").textContent = written + tail;
  [...byId("answers").children].forEach((made, i) => {
    const tier = order.findIndex((t) => t.includes(i));
    const before = order.slice(0, tier).flat().length;
    made.classList.toggle("placed", tier >= 0);
    made.classList.toggle("focused", i === focused);
    made.querySelector(".place").textContent = tier < 0 ? "" : `Place ${before + 1}${order[tier].length > 1 ? ", tied" : ""}`;
  });
}

function move(by) {
  const cards = [...byId("answers").children];
  focused = (focused + by + cards.length) % cards.length;
  cards[focused].scrollIntoView({ block: "nearest" });
  draw();
}

const KEYS = {
  order: {
    Enter: save, "=": tie, Backspace: back, " ": () => choose(focused),
    ArrowRight: () => move(1), ArrowDown: () => move(1), ArrowLeft: () => move(-1), ArrowUp: () => move(-1),
  },
  compare: { "=": tie, ArrowLeft: () => judge([[0], [1]]), ArrowRight: () => judge([[1], [0]]) },
};

document.addEventListener("keydown", (event) => {
  if (!state || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const onButton = event.target.closest("button, summary") && (event.key === "Enter" || event.key === " ");
  const inText = event.target.closest(".said") && ["ArrowUp", "ArrowDown", " "].includes(event.key);
  if (onButton || inText) return;
  const always = { s: skip, u: undo }[event.key.toLowerCase()];
  let action = always || (state.task && KEYS[state.mode][event.key]);
  if (!action && state.task && /^[1-9]$/.test(event.key)) {
    const i = Number(event.key) - 1;
    if (i < state.task.answers.length) action = state.mode === "compare" ? () => judge([[i], [1 - i]]) : () => choose(i);
  }
  if (!action) return;
  event.preventDefault();
  action();
});

// A click leaves the focus where it is: Enter means save, not the last button once more.
document.addEventListener("mousedown", (event) => {
  if (event.target.closest("button")) event.preventDefault();
});

// The token has become a cookie; it need not stay in the address.
history.replaceState(null, "", location.pathname);
call("state");
