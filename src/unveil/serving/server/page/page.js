"use strict";

const byId = (id) => document.getElementById(id);
const search = byId("search"), found = byId("found"), historyList = byId("history"), novelty = byId("novelty"), status = byId("status");
const K = 10, REASONS = 3, PAUSE = 150;

const state = { history: [], models: [], chosen: -1, hits: [], token: "", asked: 0 };

async function ask(path, body) {
  const headers = { "content-type": "application/json" };
  if (state.token) headers.authorization = `Bearer ${state.token}`;
  const options = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const answer = await fetch(path, options);
  const content = await answer.json();
  if (answer.status === 401) {
    byId("door").hidden = false;
    document.querySelector("footer").hidden = true; // a link cannot carry the token
  }
  if (!answer.ok) throw new Error(content.error || `The server answered ${answer.status}.`);
  return content;
}

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
}

function say(text, wrong = false) {
  status.textContent = text;
  status.classList.toggle("wrong", wrong);
}

const percent = (share) => (share >= 0.001 ? `${(100 * share).toFixed(2)}%` : share > 0 ? "< 0.1%" : "0%");
const titled = (item) => (item.title === item.item_id ? item.item_id : item.title);

/* Search: a combobox. Arrows move, Enter takes, Escape closes. */

function showHits(hits) {
  state.hits = hits;
  state.chosen = -1;
  found.replaceChildren(...hits.map((hit, n) => {
    const option = element("li");
    option.id = `hit-${n}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.append(element("span", titled(hit)), element("small", percent(hit.popularity)));
    option.addEventListener("mousedown", (event) => { event.preventDefault(); take(n); });
    return option;
  }));
  found.hidden = hits.length === 0;
  search.setAttribute("aria-expanded", String(hits.length > 0));
  search.removeAttribute("aria-activedescendant");
}

function choose(n) {
  [...found.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === n)));
  state.chosen = n;
  search.setAttribute("aria-activedescendant", `hit-${n}`);
  found.children[n].scrollIntoView({ block: "nearest" });
}

function take(n) {
  state.history.push({ item_id: state.hits[n].item_id, title: state.hits[n].title });
  search.value = "";
  showHits([]);
  changed();
}

let pending = 0;
search.addEventListener("input", () => {
  clearTimeout(pending);
  pending = setTimeout(look, PAUSE);
});

async function look() {
  const text = search.value.trim();
  if (!text) return showHits([]);
  try {
    const hits = await ask(`v1/items?limit=20&q=${encodeURIComponent(text)}`);
    if (search.value.trim() !== text) return;
    showHits(hits);
    say(hits.length ? "" : `No item has “${text}” in its title or id.`);
  } catch (error) { say(error.message, true); }
}

search.addEventListener("keydown", (event) => {
  const last = state.hits.length - 1;
  if (event.key === "ArrowDown" && last >= 0) choose(Math.min(state.chosen + 1, last));
  else if (event.key === "ArrowUp" && last >= 0) choose(Math.max(state.chosen - 1, 0));
  else if (event.key === "Enter" && last >= 0) take(Math.max(state.chosen, 0));
  else if (event.key === "Escape") showHits([]);
  else return;
  event.preventDefault();
});
search.addEventListener("blur", () => showHits([]));

/* History */

function showHistory() {
  historyList.replaceChildren(...state.history.map((item, n) => {
    const entry = element("li", titled(item));
    const remove = element("button", "×");
    remove.type = "button";
    remove.setAttribute("aria-label", `Remove ${titled(item)}`);
    remove.addEventListener("click", () => {
      state.history.splice(n, 1);
      changed();
      (historyList.querySelectorAll("button")[Math.min(n, state.history.length - 1)] || search).focus();
    });
    entry.append(remove);
    return entry;
  }));
  byId("empty").hidden = state.history.length > 0;
  byId("clear").hidden = state.history.length === 0;
}

byId("clear").addEventListener("click", () => { state.history = []; changed(); search.focus(); });

/* Lists */

function reason(why) {
  const factor = Math.exp(Math.abs(why.effect));
  const up = why.effect > -0.005; // "÷ 1.00" would be no effect in the colour of one
  const strength = element("b", `${up ? "×" : "÷"} ${factor < 100 ? factor.toFixed(2) : "> 100"}`, up ? "for" : "against");
  const entry = element("li");
  entry.append(strength, element("span", titled(why)));
  return entry;
}

function listed(item, elsewhere) {
  const entry = element("li");
  const name = element("span", titled(item), "name");
  if (elsewhere && !elsewhere.has(item.item_id)) name.append(element("span", "only here", "only"));
  const share = element("span", percent(item.propensity), "share");
  share.title = item.propensity_source.startsWith("popularity")
    ? `A share of all interactions, a proxy of how often it was shown: ${item.propensity_source}`
    : `How likely it is to be shown: ${item.propensity_source}`;
  entry.append(element("span", String(item.rank), "rank"), name, share);
  if (item.reasons.length) {
    const reasons = element("ul", undefined, "why");
    reasons.append(...item.reasons.map(reason));
    entry.append(reasons);
  }
  return entry;
}

/* What the dial was measured to give and to take: coverage to the right, recall upwards, this position filled. */

const SVG = "http://www.w3.org/2000/svg", WIDE = 180, HIGH = 64, EDGE = 6;

function shape(kind, attributes) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function scale(points, name, size) {
  const values = points.map((point) => point[name]);
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  return (point) => EDGE + (size - 2 * EDGE) * (point[name] - low) / span;
}

function curve(points, here, label) {
  const svg = shape("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, width: WIDE, height: HIGH, role: "img", "aria-label": label });
  const right = scale(points, "coverage", WIDE), up = scale(points, "recall", HIGH);
  const places = points.map((point) => [right(point), HIGH - up(point)]);
  svg.append(shape("polyline", { points: places.join(" ") }));
  svg.append(...places.map(([cx, cy], n) => shape("circle", { cx, cy, r: points[n] === here ? 4.5 : 2.5, class: points[n] === here ? "here" : "" })));
  return svg;
}

function measured(model) {
  if (!model.dial.length) return [];
  const away = (point) => Math.abs(point.novelty - Number(novelty.value));
  const here = model.dial.reduce((best, point) => (away(point) < away(best) ? point : best));
  const text = `At novelty ${here.novelty}, on held-out events: Recall@10 ${here.recall.toFixed(3)}, ${(100 * here.coverage).toFixed(0)}% of the catalogue listed.`;
  return [curve(model.dial, here, `Recall against coverage along the dial. ${text}`), element("span", text)];
}

function showLists(answers) {
  byId("legend").hidden = answers.every((answer) => answer.fallback);
  const ids = answers.map((answer) => new Set(answer.items.map((item) => item.item_id)));
  byId("lists").replaceChildren(...answers.map((answer, n) => {
    const part = byId("list").content.cloneNode(true);
    const model = state.models[n];
    part.querySelector("h2").textContent = answer.model;
    part.querySelector(".about").textContent = answer.fallback
      ? "The most popular items: nothing is known yet."
      : `${model.network}, ${model.items.toLocaleString("en")} items; on the right: ${model.propensity}`;
    part.querySelector("ol").append(...answer.items.map((item) => listed(item, answers.length > 1 ? ids[1 - n] : null)));
    part.querySelector(".measured").replaceChildren(...measured(model));
    return part;
  }));
}

async function changed() {
  showHistory();
  byId("novelty-value").textContent = novelty.value;
  const turn = ++state.asked;
  const question = { history: state.history.map((item) => item.item_id), k: K, novelty: Number(novelty.value), reasons: REASONS };
  try {
    if (!state.models.length) state.models = (await ask("v1/models")).slice(0, 2);
    const k = Math.min(K, ...state.models.flatMap((model) => [model.items, model.max_k]));
    const questions = state.models.map((model) => ({ ...question, k, model: model.name }));
    const { answers } = await ask("v1/recommend/batch", { questions });
    if (turn !== state.asked) return;
    showLists(answers);
    const unknown = [...new Set(answers.flatMap((answer) => answer.unknown_items))];
    say(unknown.length ? `Not known to every model: ${unknown.join(", ")}.` : "");
  } catch (error) { if (turn === state.asked) say(error.message, true); }
}

let turning = 0;
novelty.addEventListener("input", () => {
  byId("novelty-value").textContent = novelty.value;
  clearTimeout(turning);
  turning = setTimeout(changed, PAUSE);
});

byId("door").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = byId("token").value;
  byId("door").hidden = true;
  changed();
});

changed();
