"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const make = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined && text !== null) node.textContent = text; // text nodes only: nothing is ever parsed
    return node;
  };

  // Search and filter.
  const search = find("search"), state = find("state"), shown = find("shown");
  const rows = [...document.querySelectorAll(".row")];
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const hit = words.every((word) => row.dataset.text.includes(word)) && (!state || !state.value || row.dataset.state === state.value);
      row.hidden = !hit;
      count += hit;
    }
    shown.textContent = `${count} of ${rows.length} tasks`;
  };
  search.addEventListener("input", filter);
  if (state) state.addEventListener("change", filter);
  search.form.addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName) && !(dialog && dialog.open)) {
      event.preventDefault();
      search.focus();
    }
  });

  // One trial.
  const dialog = find("trial");
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

  const callNode = (call) => {
    const node = make("div", `call${call.wrote ? " wrote" : ""}${call.caused.length ? " caused" : ""}`);
    node.append(make("span", "", `#${call.index} ${call.line}`));
    if (call.actor) node.append(make("span", "tag", `by ${call.actor}`));
    if (call.wrote) node.append(make("span", "tag", "changed records"));
    if (call.caused.length) node.append(make("span", "tag cause", `caused effect ${call.caused.join(", ")}`));
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
    const head = make("p");
    head.append(make("span", "", `${effect.number}. `), make("span", `kind ${effect.kind}`, effect.kind), document.createTextNode(` ${effect.place}`));
    node.append(head);
    if (effect.caused_by) node.append(make("p", "", `Caused by call #${effect.call}: ${effect.caused_by}`));
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
    facts.append(`${again}ended by ${view.end_reason}, ${view.seconds.toFixed(2)} s, ${view.model_requests} model requests, ${view.input_tokens.toLocaleString("en")} + ${view.output_tokens.toLocaleString("en")} tokens, ${cost}`);
    body.append(facts);
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
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  };
  const cells = () => [...document.querySelectorAll(".row:not([hidden]) a.cell")];
  const step = (by) => {
    const all = cells(), at = all.findIndex((cell) => cell.hash === location.hash);
    const next = all[at + by];
    if (at >= 0 && next) location.replace(next.hash);
  };
  let opener = null;
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#t"]');
    if (link) opener = link;
  });
  dialog.addEventListener("close", () => {
    if (place()) history.replaceState(null, "", location.pathname + location.search);
    if (opener) opener.focus();
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
