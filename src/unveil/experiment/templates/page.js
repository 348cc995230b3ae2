// Sortable tables: the headings become buttons. Without a script the tables stand as they were written.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
  const compare = (a, b) => (a !== "" && b !== "" && !isNaN(a) && !isNaN(b)) ? a - b : a.localeCompare(b);
  heads.forEach((head, at) => {
    const button = document.createElement("button"), name = head.querySelector(".name");
    button.type = "button";
    button.append(...name.childNodes);
    name.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "descending" ||
        (!head.hasAttribute("aria-sort") && !head.classList.contains("number"));
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "ascending" : "descending");
      const way = falling ? 1 : -1;
      body.append(...[...body.rows].sort((a, b) => way * compare(key(a, at), key(b, at))));
    });
  });
}
