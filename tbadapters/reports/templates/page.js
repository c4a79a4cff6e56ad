"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const make = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined && text !== null) node.textContent = text; // text nodes only: nothing is ever parsed
    return node;
  };

  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  // Search, filters and order.
  const search = find("search"), state = find("state"), tag = find("tag"), look = find("look"), order = find("order");
  const shown = find("shown"), grid = find("grid"), dialog = find("trial");
  const rows = [...grid.children];
  const holds = (list, select) => !select || !select.value || (list || "").split(" ").includes(select.value);
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let tasks = 0, trials = 0;
    for (const cell of grid.querySelectorAll(".hit")) cell.classList.remove("hit");
    if (look && look.value) grid.dataset.look = look.value;
    else delete grid.dataset.look;
    for (const row of rows) {
      let hit = words.every((word) => row.dataset.text.includes(word)) && holds(row.dataset.state, state) && holds(row.dataset.tags, tag);
      if (hit && look && look.value) {
        const cells = row.querySelectorAll(`[data-looks~="${look.value}"]`);
        for (const cell of cells) cell.classList.add("hit");
        trials += cells.length;
        hit = cells.length > 0;
      }
      row.hidden = !hit;
      tasks += hit;
    }
    shown.textContent = `${tasks} of ${counted(rows.length, "task")}${look && look.value ? `, ${counted(trials, "trial")}` : ""}`;
    if (stop && (!stop.isConnected || stop.closest(".row").hidden)) stopAt(grid.querySelector(".row:not([hidden]) a.cell"));
  };
  const sort = () => {
    const by = order.value, rank = (row) => by in row.dataset ? Number(row.dataset[by]) : Infinity;
    const difference = (a, b) => { const [x, y] = [rank(a), rank(b)]; return x === y ? 0 : x - y; };
    grid.append(...(by ? [...rows].sort(difference) : rows)); // equal ones stay in the suite's order
  };
  search.addEventListener("input", filter);
  for (const select of [state, tag, look]) if (select) select.addEventListener("change", filter);
  order.addEventListener("change", sort);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !(dialog && dialog.open)) {
      event.preventDefault();
      search.focus();
    }
  });

  // From cell to cell: the grid is one stop of the Tab key, arrows do the rest.
  let stop = null;
  const stopAt = (cell) => {
    if (stop) stop.tabIndex = -1;
    stop = cell;
    if (stop) stop.tabIndex = 0;
  };
  const beside = (cell, key) => {
    const line = [...cell.parentNode.children], at = line.indexOf(cell);
    if (key === "ArrowLeft") return line[at - 1];
    if (key === "ArrowRight") return line[at + 1];
    if (key === "Home") return line[0];
    if (key === "End") return line[line.length - 1];
    let row = cell.closest(".row");
    do row = key === "ArrowUp" ? row.previousElementSibling : row.nextElementSibling;
    while (row && row.hidden);
    return row && row.querySelectorAll("a.cell")[at];
  };
  for (const cell of grid.querySelectorAll("a.cell")) cell.tabIndex = -1;
  stopAt(grid.querySelector("a.cell"));
  grid.addEventListener("focusin", (event) => { if (event.target.matches("a.cell")) stopAt(event.target); });
  grid.addEventListener("mouseover", (event) => { if (event.target.matches("a.cell")) event.target.title = event.target.getAttribute("aria-label"); });
  grid.addEventListener("keydown", (event) => {
    if (!event.target.matches("a.cell") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    const next = beside(event.target, event.key);
    if (next) next.focus();
  });

  // One trial.
  if (!dialog) return;
  const body = find("trial-body"), title = find("trial-title");
  const loaded = new Map();
  const load = async (number) => {
    if (!loaded.has(number)) {
      const bytes = Uint8Array.from(atob(find(`d${number}`).textContent.trim()), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      loaded.set(number, await new Response(stream).json());
    }
    return loaded.get(number);
  };
  const place = () => {
    const match = /^#t(\d+)\/(\d+)$/.exec(location.hash);
    return match && find(`d${match[1]}`) ? { number: Number(match[1]), index: Number(match[2]) } : null;
  };
  const cellOf = (at) => find(`t${at.number}`).querySelectorAll("a.cell")[at.index];

  const jump = (text, to) => {
    const button = make("button", "jump", text);
    button.type = "button";
    button.addEventListener("click", () => {
      const node = body.querySelector(to);
      node.scrollIntoView({ block: "center" });
      node.focus();
    });
    return button;
  };
  const callNode = (call) => {
    const node = make("div", `call${call.wrote ? " wrote" : ""}${call.caused.length ? " caused" : ""}`);
    node.dataset.call = call.index;
    node.tabIndex = -1;
    node.append(make("span", "", `#${call.index} ${call.line}`));
    if (call.actor) node.append(make("span", "tag", `by ${call.actor}`));
    if (call.wrote) node.append(make("span", "tag", "changed records"));
    for (const number of call.caused) {
      const cause = make("span", "tag cause");
      cause.append(jump(`caused effect ${number}`, `[data-effect="${number}"]`));
      node.append(cause);
    }
    node.append(make("div", `answer${call.is_error ? " error" : ""}`, (call.is_error ? "error: " : "") + call.result));
    return node;
  };
  const stepNode = (step) => {
    if (step.call) return callNode(step.call);
    if (step.kind !== "user" && step.kind !== "agent") return make("p", "meta", `${step.kind}: ${step.text}`);
    const node = make("div", `said ${step.kind}`);
    node.append(make("span", "who", step.kind), document.createTextNode(step.text));
    return node;
  };
  const effectNode = (effect) => {
    const node = make("div", "effect");
    node.dataset.effect = effect.number;
    node.tabIndex = -1;
    const head = make("p");
    head.append(make("span", "", `${effect.number}. `), make("span", `kind ${effect.kind}`, effect.kind), document.createTextNode(` ${effect.place}`));
    node.append(head);
    if (effect.caused_by) {
      const cause = make("p", "", "Caused by ");
      cause.append(jump(`call #${effect.call}`, `[data-call="${effect.call}"]`), document.createTextNode(`: ${effect.caused_by}`));
      node.append(cause);
    }
    if (effect.golden) node.append(make("p", "", `Golden action: ${effect.golden}`));
    const table = make("table"), top = make("tr"), scroll = make("div", "scroll");
    for (const name of ["column", "initial", "final", "expected"]) top.append(make("th", "", name));
    table.append(make("thead"), make("tbody"));
    table.tHead.append(top);
    for (const cell of effect.cells) {
      const line = make("tr");
      for (const name of ["column", "initial", "final", "expected"]) {
        line.append(make("td", name === "final" && cell.final !== cell.expected ? "differs" : "", cell[name] ?? "—"));
      }
      table.tBodies[0].append(line);
    }
    scroll.append(table);
    node.append(scroll);
    return node;
  };
  const fill = (view, number, index) => {
    body.replaceChildren();
    const name = document.querySelector(`#t${number} .name`).textContent;
    title.textContent = `${name}, trial ${index}`;
    if (!view) {
      body.append(make("p", "warn", "This trial was not run."));
      return;
    }
    const facts = make("p");
    facts.append(make("span", `badge ${view.verdict.replace(" ", "_")}`, view.verdict));
    const cost = view.cost === null ? "cost unknown" : `$${view.cost.toPrecision(3)}`;
    const again = view.attempt ? `attempt ${view.attempt + 1}, ` : "";
    facts.append(`${again}ended by ${view.end_reason}, ${view.seconds.toFixed(2)} s, ${view.model_requests} model requests, ${view.input_tokens.toLocaleString("en")} + ${view.output_tokens.toLocaleString("en")} tokens, ${cost}${view.apart.length ? `; apart from that: ${view.apart.join(", ")}` : ""}`);
    body.append(facts);
    for (const fault of view.earlier) body.append(make("p", "meta", `An earlier attempt ended by a fault of the ${fault}`));
    if (view.fault) body.append(make("p", "warn", `Fault of the ${view.fault}`));
    for (const reason of view.reasons) body.append(make("p", "", reason));
    if (view.effects.length) {
      body.append(make("h3", "", view.end_state ? `Effects, against the nearest allowed end state: ${view.end_state}` : "Effects"), ...view.effects.map(effectNode));
    }
    body.append(make("h3", "", "Conversation"), ...view.steps.map(stepNode));
  };
  const show = async () => {
    const at = place();
    if (!at) {
      if (dialog.open) dialog.close();
      return;
    }
    try {
      const trials = await load(at.number);
      fill(trials[at.index], at.number, at.index);
    } catch (error) {
      body.replaceChildren(make("p", "warn", `This browser can't unpack the trial: ${error}`));
    }
    last = at;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  const step = (by) => {
    const all = [...grid.querySelectorAll(grid.dataset.look ? ".row:not([hidden]) a.hit" : ".row:not([hidden]) a.cell")];
    const next = all[all.findIndex((cell) => cell.hash === location.hash) + by];
    if (next && all.some((cell) => cell.hash === location.hash)) location.replace(next.hash);
  };
  let last = null;
  dialog.addEventListener("close", () => {
    if (place()) history.replaceState(null, "", location.pathname + location.search);
    const cell = last && cellOf(last); // back to where one is, which need not be where one came from
    if (cell) cell.focus();
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  find("before").addEventListener("click", () => step(-1));
  find("after").addEventListener("click", () => step(1));
  find("close").addEventListener("click", () => dialog.close());
  window.addEventListener("hashchange", show);
  show();
})();
