// Sortable tables: the headings become buttons; a third press gives the first order back. Without a script the tables
// stand as they were written.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], written = [...body.rows];
  const key = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
  const kind = value => value === "" || value === "–" || value === "nan" ? 2 : isNaN(value) ? 1 : 0;
  const compare = (a, b, way) => kind(a) - kind(b) || way * (kind(a) === 0 ? a - b : a.localeCompare(b));
  heads.forEach((head, at) => {
    const button = document.createElement("button"), name = head.querySelector(".name");
    const ways = head.classList.contains("number") ? ["descending", "ascending"] : ["ascending", "descending"];
    button.type = "button";
    button.append(...name.childNodes);
    name.append(button);
    button.addEventListener("click", () => {
      const next = ways[ways.indexOf(head.getAttribute("aria-sort")) + 1];
      heads.forEach(other => other.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      const way = next === "ascending" ? 1 : -1;
      body.append(...(next ? [...written].sort((a, b) => compare(key(a, at), key(b, at), way)) : written));
    });
  });
}

// Values of plots: told beside the mark that the pointer is at or near to; the arrow keys walk through them. Without a
// script the browser tells them where the pointer rests.
for (const plot of document.querySelectorAll(".plot")) {
  const marks = [...plot.querySelectorAll("[data-point]")];
  if (!marks.length) continue;
  const told = marks.map(mark => mark.querySelector("title").textContent);
  marks.forEach(mark => mark.querySelector("title").remove());
  const tip = document.createElement("p"), title = plot.parentElement.querySelector("figcaption").textContent;
  tip.className = "tip";
  tip.setAttribute("role", "status");
  plot.append(tip);
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", `${title}: ${marks.length} values, the arrow keys walk through them`);
  const middle = mark => { const box = mark.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; };
  const far = ([x, y], [a, b]) => Math.hypot(x - a, y - b);
  let at = -1;
  const show = (next, spot) => {
    marks[at]?.classList.remove("on");
    at = next;
    tip.textContent = at < 0 ? "" : told[at];
    if (at < 0) return;
    marks[at].classList.add("on");
    const frame = plot.getBoundingClientRect(), [x, y] = spot ?? middle(marks[at]);
    const left = Math.min(Math.max(0, x - frame.x - tip.offsetWidth / 2), frame.width - tip.offsetWidth);
    const above = y - frame.y - tip.offsetHeight - 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < -tip.offsetHeight ? y - frame.y + 16 : above}px`;
  };
  const under = event => {
    const spot = [event.clientX, event.clientY], hit = marks.indexOf(event.target.closest("[data-point]"));
    if (hit >= 0) return show(hit, marks[hit].getBoundingClientRect().width > 40 ? spot : null);
    const away = marks.map(mark => far(spot, middle(mark))), nearest = Math.min(...away);
    show(nearest < 24 ? away.indexOf(nearest) : -1);
  };
  plot.addEventListener("pointermove", under);
  plot.addEventListener("pointerdown", under);
  plot.addEventListener("pointerleave", () => show(-1));
  plot.addEventListener("blur", () => show(-1));
  plot.addEventListener("keydown", event => {
    const last = marks.length - 1;
    const next = { ArrowRight: Math.min(at + 1, last), ArrowDown: Math.min(at + 1, last), ArrowLeft: Math.max(at - 1, 0),
      ArrowUp: Math.max(at - 1, 0), Home: 0, End: last, Escape: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    show(next);
  });
}
