"use strict";
// Shows /data.json, and asks for it again every few seconds. Whatever comes from the cluster is put in as text, never as markup.
(() => {
  const EVERY_S = 5, STALE_S = 100, MOST_AWAY = 50;
  const STATES = { // letter and words by state, in the order of the legend; the letters are near those of sinfo
    allocated: ["", "allocated"], idle: ["", "idle"], draining: ["G", "draining"], drained: ["D", "drained"], down: ["X", "down"],
    not_responding: ["*", "not responding"], unknown: ["?", "unknown"], maintenance: ["M", "maintenance"], powering_up: ["#", "powering up"],
    powering_down: ["%", "powering down"], powered_down: ["~", "powered down"],
  };
  const AWAY = new Set(["draining", "drained", "down", "not_responding", "unknown", "maintenance"]);
  const byId = (id) => document.getElementById(id);
  const state = { data: null, now: 0, nowAt: 0, fault: "", since: 0, user: "", own: null, nodes: new Map(), tipFor: "", isShown: false };

  const make = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
    made.append(...inside.filter((one) => one !== null && one !== ""));
    return made;
  };
  const fill = (id, ...inside) => byId(id).replaceChildren(...inside);
  const draw = (tag, attributes, ...inside) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const number = (value) => value.toLocaleString("en");
  const clock = () => state.now + (performance.now() - state.nowAt) / 1000; // the cluster's clock: this machine's may be wrong
  const word = (name) => (STATES[name] || STATES.unknown)[1];
  const letter = (name) => (STATES[name] || STATES.unknown)[0];
  const look = (name) => (STATES[name] ? name : "unknown");
  const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;

  function span(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    if (whole < 100) return `${whole} s`;
    if (whole < 5400) return `${Math.round(whole / 60)} min`;
    if (whole < 172800) return `${Math.floor(whole / 3600)} h ${String(Math.floor(whole / 60) % 60).padStart(2, "0")} min`;
    return `${Math.round(whole / 86400)} days`;
  }
  const ago = (at) => (at === null || at === undefined ? "" : `${span(clock() - at)} ago`);

  // ---- the top: ages, and what is wrong

  function showAges() {
    const readings = state.data && state.data.readings;
    if (!readings) return;
    const together = readings.nodes.at !== null && Math.abs(readings.nodes.at - readings.jobs.at) < 3;
    const told = (together ? [["jobs", "nodes and jobs"], ["causes", "causes"]] : [["nodes", "nodes"], ["jobs", "jobs"], ["causes", "causes"]])
      .map(([key, name]) => (readings[key].at === null ? `${name} not read yet` : `${name} ${ago(readings[key].at)}`));
    byId("ages").textContent = told.join(" · ");
    const lines = [];
    if (state.fault) lines.push([`This page has lost its cluster ${span((performance.now() - state.since) / 1000)} ago.`,
      `Is the ssh tunnel still open? It shows what it knew last, and keeps trying. (${state.fault})`]);
    for (const [key, what] of [["nodes", "its nodes"], ["jobs", "its jobs"]]) {
      const reading = readings[key], age = reading.at === null ? null : clock() - reading.at;
      if (!state.fault && (reading.fault || age === null || age > STALE_S)) {
        const title = age === null ? `Slurm has not told ${what} yet.` : `Slurm has not told ${what} for ${span(age)}.`;
        lines.push([title, (age === null ? "" : "What it said last is shown. ") + (reading.fault || "")]);
      }
    }
    if (!state.fault && (readings.causes.fault || clock() - readings.causes.at > STALE_S + 100)) {
      lines.push(["Kubernetes has not told the causes of nodes lately.", readings.causes.fault || `The last word came ${ago(readings.causes.at)}.`]);
    }
    byId("banner").hidden = !lines.length;
    const text = JSON.stringify(lines.map((line) => line[1] + line[0].replace(/\d+ .*/, "")));
    if (byId("banner").dataset.text !== text) { // a reader of the screen hears of it once, not each second
      fill("banner", ...lines.map(([title, more]) => make("div", {}, make("strong", {}, title), more)));
      byId("banner").dataset.text = text;
    } else [...byId("banner").querySelectorAll("strong")].forEach((one, at) => { one.textContent = lines[at][0]; });
    document.body.classList.toggle("is-stale", lines.length > 0);
  }

  function showTiles({ use, queue, states }) {
    const tile = (label, value, of, share) => {
      const bar = make("div", { class: "bar", "aria-hidden": "true" }, make("i"));
      if (share !== null) bar.firstChild.style.width = `${Math.min(100, 100 * share)}%`;
      return make("div", { class: "tile" }, make("div", { class: "label" }, label),
        make("div", { class: "value" }, value, of ? make("span", { class: "of" }, ` ${of}`) : ""), share === null ? "" : bar);
    };
    const part = (used, all) => (all ? used / all : 0);
    const tiles = [];
    if (use) {
      const [nodes, allNodes, cpus, allCpus, gpus, allGpus] = use;
      if (allGpus) tiles.push(tile("GPUs in use", number(gpus), `of ${number(allGpus)}`, part(gpus, allGpus)));
      tiles.push(tile("CPUs in use", number(cpus), `of ${number(allCpus)}`, part(cpus, allCpus)));
      tiles.push(tile("Nodes in use", number(nodes), `of ${number(allNodes)}`, part(nodes, allNodes)));
    }
    const away = Object.entries(states).reduce((sum, [name, count]) => sum + (AWAY.has(look(name)) ? count : 0), 0);
    tiles.push(tile("Nodes out of service", number(away), use ? `of ${number(use[1])}` : "", use ? part(away, use[1]) : null));
    if (queue) tiles.push(tile("Jobs running", number(queue.running), `${number(queue.waiting)} waiting`,
      part(queue.running, queue.running + queue.waiting)));
    fill("tiles", ...tiles);
  }

  // ---- nodes

  const causeNames = (node) => (node.causes || []).map((cause) => cause.name);
  const label = (node) => {
    const causes = (node.causes || []).map((cause) => `${cause.name}: ${cause.evidence}`);
    return [`${node.name}, ${word(node.state)}`, ...(causes.length ? causes : node.reason ? [node.reason] : [])].join("; ");
  };

  function showNodes({ nodes, sets, states, moreNodes, hidden, readings }) {
    fill("legend", ...Object.keys(STATES).filter((name) => states[name]).map((name) =>
      make("li", {}, make("span", { class: `cell ${name}`, "aria-hidden": "true" }, letter(name)), word(name), make("b", {}, number(states[name])))));
    const note = hidden.includes("nodes") ? "Single nodes are not shown: PrivateData of this Slurm cluster hides them."
      : moreNodes ? `${number(moreNodes)} more nodes are counted above and not drawn.`
      : nodes.length ? (readings.nodes.at === null ? "These are the nodes as the controller knew them last." : "")
      : "No node is known yet.";
    byId("nodes-note").hidden = !note;
    byId("nodes-note").textContent = note;
    byId("sets").className = nodes.length > 300 ? "many" : nodes.length <= 24 ? "few" : "";

    const groups = new Map(sets.map((set) => [set.name, []]));
    state.nodes = new Map(nodes.map((node) => [node.name, node]));
    for (const node of nodes) groups.has(node.set) ? groups.get(node.set).push(node) : groups.set(node.set, [node]);
    const about = new Map(sets.map((set) => [set.name, set]));
    const shape = JSON.stringify([...groups].map(([name, members]) => [name, members.map((node) => node.name)]));
    if (byId("sets").dataset.shape !== shape) {
      byId("sets").dataset.shape = shape;
      fill("sets", ...[...groups].map(([name, members]) => {
        const list = make("ul", { class: "grid", role: "list", "aria-label": `Nodes of ${name}` });
        list.append(...members.map((node, at) => make("li", {}, make("button", { type: "button", "data-node": node.name, tabindex: at ? "-1" : "0" },
          make("span", { class: "node-name" }, node.name), make("span", { class: "letter" })))));
        return make("div", { class: "set", "data-set": name },
          make("div", { class: "set-head" }, make("h3", {}, name || "(no set)"), make("span", { class: "quiet" })), list);
      }));
    }
    for (const one of byId("sets").querySelectorAll(".set")) {
      const set = about.get(one.dataset.set), members = groups.get(one.dataset.set) || [];
      const said = !set ? plural(members.length, "node") : set.phase === "Ready" ? `${plural(members.length, "node")}, ${number(set.ready)} registered`
        : `${set.phase}: ${set.why}`;
      one.querySelector(".quiet").textContent = said;
    }
    for (const cell of byId("sets").querySelectorAll("button")) {
      const node = state.nodes.get(cell.dataset.node), text = label(node), look_ = `cell ${look(node.state)}`;
      if (cell.className !== look_) { cell.className = look_; cell.lastChild.textContent = letter(node.state); }
      if (cell.getAttribute("aria-label") !== text) cell.setAttribute("aria-label", text);
    }
    showAway(nodes);
  }

  function causes(node) {
    if (node.causes) return node.causes.map((cause) => make("div", { class: "cause" }, make("b", {}, cause.name), " ", cause.evidence));
    return [make("div", { class: "cause" }, node.reason || (node.state === "unknown" ? "Slurm has not told its state" : ""))];
  }

  function showAway(nodes) {
    const away = nodes.filter((node) => AWAY.has(look(node.state)) || node.causes);
    byId("away").hidden = !away.length;
    byId("away-note").textContent = away.length > MOST_AWAY ? `the first ${MOST_AWAY} of ${number(away.length)} nodes` : plural(away.length, "node");
    fill("away-rows", ...away.slice(0, MOST_AWAY).map((node) => make("tr", {}, make("td", { class: "tight" }, node.name),
      make("td", {}, make("span", { class: `chip ${look(node.state)}` }, word(node.state))), make("td", {}, ...causes(node)),
      make("td", {}, node.machine || ""))));
  }

  function tip(cell) {
    const node = cell && state.nodes.get(cell.dataset.node), box = byId("tip");
    state.tipFor = node ? node.name : "";
    box.hidden = !node;
    if (!node) return;
    const facts = [];
    const fact = (name, text) => { if (text) facts.push(make("dt", {}, name), make("dd", {}, text)); };
    if (node.gpus) fact("GPUs", `${node.gpus[0]} of ${node.gpus[1]} in use`);
    if (node.cpus) fact("CPUs", `${node.cpus[0]} of ${node.cpus[1]} in use`);
    fact("Slurm", node.slurm);
    fact("Reason", node.reason && `${node.reason}${node.by ? ` (${node.by}${node.since ? `, ${ago(node.since)}` : ""})` : ""}`);
    fact("Machine", node.machine);
    box.replaceChildren(make("div", { class: "tip-head" }, node.name, make("span", { class: `chip ${look(node.state)}` }, word(node.state))),
      make("dl", {}, ...facts), ...(node.causes || []).map((cause) => make("div", { class: "cause" },
        make("b", {}, cause.name), " ", cause.evidence, cause.since ? make("span", { class: "quiet" }, ` ${ago(cause.since)}`) : "",
        cause.next ? make("div", { class: "quiet" }, cause.next) : "")));
    const at = cell.getBoundingClientRect(), size = box.getBoundingClientRect();
    const under = at.bottom + 8 + size.height < innerHeight;
    box.style.left = `${Math.max(12, Math.min(at.left + at.width / 2 - size.width / 2, innerWidth - size.width - 12))}px`;
    box.style.top = `${Math.max(12, under ? at.bottom + 8 : at.top - size.height - 8)}px`;
  }

  const cellOf = (event) => (event.target instanceof Element ? event.target.closest("#sets button") : null);
  byId("sets").addEventListener("mouseover", (event) => tip(cellOf(event)));
  byId("sets").addEventListener("mouseleave", () => tip(document.querySelector("#sets button:focus-visible")));
  byId("sets").addEventListener("focusin", (event) => tip(cellOf(event)));
  byId("sets").addEventListener("focusout", () => tip(null));
  byId("sets").addEventListener("click", (event) => tip(cellOf(event)));
  addEventListener("scroll", () => tip(document.querySelector("#sets button:focus-visible")), { passive: true });
  byId("sets").addEventListener("keydown", (event) => {
    if (event.key === "Escape") return tip(null);
    const cell = cellOf(event);
    if (!cell) return;
    const cells = [...cell.closest("ul").querySelectorAll("button")], here = cells.indexOf(cell), top = cell.offsetTop;
    const row = cells.filter((one) => one.offsetTop === cells[0].offsetTop).length;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -here, End: cells.length - 1 - here };
    const next = event.key in steps ? cells[here + steps[event.key]] : null;
    if (!(event.key in steps)) return;
    event.preventDefault();
    if (!next || (top === undefined)) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  // ---- the last day

  function showDay({ history }) {
    const kinds = [["gpus", "GPUs", 5], ["cpus", "CPUs", 3], ["machines", "nodes", 1]].filter(([, , at]) => history.some((point) => point[at + 1]));
    const last = history[history.length - 1];
    fill("day-legend", ...(last ? kinds.map(([look_, name, at]) => make("li", {}, make("span", { class: `stroke ${look_}`, "aria-hidden": "true" }),
      `${name} in use`, make("b", {}, `${Math.round(100 * last[at] / Math.max(1, last[at + 1]))} %`))) : []));
    if (history.length < 2) return fill("day", make("p", { class: "quiet" }, "A point is added each minute; there are not enough for a curve yet."));
    const wide = Math.max(300, byId("day").clientWidth || 1100), high = 170, left = 38, right = wide - 8, base = high - 24, top = 8;
    const end = clock(), begin = end - 86400;
    const x = (at) => left + (right - left) * (at - begin) / 86400, y = (share) => base - (base - top) * share;
    const chart = draw("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label":
      `Share in use over the last day, now ${kinds.map(([, name, at]) => `${Math.round(100 * last[at] / Math.max(1, last[at + 1]))} % of ${name}`).join(", ")}` });
    for (const share of [0, .5, 1]) chart.append(draw("line", { class: "rule", x1: left, x2: right, y1: y(share), y2: y(share) }),
      draw("text", { x: left - 7, y: y(share) + 4, "text-anchor": "end" }, `${100 * share} %`));
    const step = wide < 560 ? 6 : 3, hour = new Date((begin + 3600) * 1000);
    hour.setMinutes(0, 0, 0);
    for (let at = hour.getTime() / 1000; at < end - 1800; at += 3600) {
      const hours = new Date(at * 1000).getHours();
      if (hours % step === 0) chart.append(draw("text", { x: x(at), y: high - 6, "text-anchor": "middle" }, `${String(hours).padStart(2, "0")}:00`));
    }
    const every = Math.max(1, Math.ceil(history.length / 480));
    for (const [look_, , at] of kinds) {
      let path = "", before = 0;
      history.forEach((point, place) => {
        if (place % every && place !== history.length - 1 || point[0] < begin) return;
        path += `${point[0] - before > 60 * every + 180 ? "M" : "L"}${x(point[0]).toFixed(1)} ${y(point[at] / Math.max(1, point[at + 1])).toFixed(1)}`;
        before = point[0];
      });
      chart.append(draw("path", { class: `curve ${look_}`, d: path.replace(/^L/, "M") }));
    }
    fill("day", chart);
    if (end - history[0][0] < 85000) byId("day").append(make("p", { class: "quiet" }, `This page has been looking for ${span(end - history[0][0])}.`));
  }

  // ---- the queue

  function when(job) {
    if (job.state === "PENDING") return job.submitted === null ? "" : `waits ${span(clock() - job.submitted)}`;
    return job.ends === null ? "" : job.ends > clock() ? `${span(job.ends - clock())} left` : "ends now";
  }

  function showQueue({ queue, hidden }) {
    fill("partitions", ...(queue ? queue.partitions : []).map((one) => make("div", { class: "partition" }, make("b", {}, one.name),
      ` ${number(one.running)} running, ${number(one.waiting)} waiting`,
      one.waiting ? make("span", { class: "quiet" }, `${one.oldest === null ? "" : `longest ${span(clock() - one.oldest)}: `}${
        one.why.map(([reason, count]) => `${reason || "no reason yet"} ${number(count)}`).slice(0, 3).join(", ")}`) : "")));
    const own = state.user && state.own && state.own.user === state.user ? state.own : null;
    const jobs = state.user ? (own ? own.jobs : []) : queue ? queue.jobs : [], more = state.user ? (own ? own.more : 0) : queue ? queue.more : 0;
    const note = hidden.includes("jobs") ? "Single jobs are not shown: PrivateData of this Slurm cluster hides them. squeue shows you your own."
      : !queue ? "" : state.user && !own ? `Asking for the jobs of ${state.user}.`
      : !jobs.length ? (state.user ? `${state.user} has no job that runs or waits.` : "No job runs or waits.")
      : more ? `The first ${number(jobs.length)} of ${number(jobs.length + more)} rows${state.user ? "" : "; a name above finds all jobs of that user"}.` : "";
    byId("jobs-note").hidden = !note;
    byId("jobs-note").textContent = note;
    byId("jobs").hidden = !jobs.length;
    fill("job-rows", ...jobs.map((job) => {
      const waits = job.state === "PENDING";
      return make("tr", {}, make("td", { class: "tight" }, job.id), make("td", {}, job.name), make("td", { class: "tight" }, job.user),
        make("td", {}, job.partition), make("td", {}, make("span", { class: `chip ${waits ? "waiting" : job.state === "RUNNING" ? "allocated" : "draining"}` },
          waits ? (job.tasks > 1 ? `${number(job.tasks)} waiting` : "waiting") : job.state.toLowerCase())),
        make("td", { class: "number" }, job.gpus ? number(job.gpus) : ""), make("td", {}, waits ? job.reason || "not looked at yet" : job.nodes),
        make("td", { class: "number" }, when(job)));
    }));
  }

  byId("whose").addEventListener("submit", (event) => { event.preventDefault(); choose(byId("user").value); });
  byId("user").addEventListener("change", () => choose(byId("user").value));
  byId("user").addEventListener("search", () => choose(byId("user").value));
  addEventListener("popstate", () => readUrl());

  function choose(user) {
    const name = user.trim();
    if (name === state.user) return;
    const url = new URL(location.href);
    name ? url.searchParams.set("user", name) : url.searchParams.delete("user");
    history.pushState(null, "", url);
    readUrl();
  }
  async function readUrl() {
    state.user = (new URL(location.href).searchParams.get("user") || "").trim().slice(0, 64);
    byId("user").value = state.user;
    if (state.data) showQueue(state.data);
    await askOwn();
    if (state.data) showQueue(state.data);
  }

  // ---- asking

  async function ask(path) {
    const answer = await fetch(path, { cache: "no-cache", signal: AbortSignal.timeout(20000) });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    const now = Number(answer.headers.get("X-Now"));
    if (now) { state.now = now; state.nowAt = performance.now(); }
    return answer.json();
  }
  async function askOwn() {
    const user = state.user;
    if (!user) return;
    try {
      const own = await ask(`/jobs.json?user=${encodeURIComponent(user)}`);
      if (state.user === user) state.own = own;
    } catch (error) { fail(error); }
  }
  function fail(error) {
    if (!state.fault) state.since = performance.now();
    state.fault = String(error.message || error).slice(0, 200);
    if (!state.data) {
      byId("banner").hidden = false;
      byId("banner").textContent = `The cluster does not answer (${state.fault}). Is the ssh tunnel open? This page keeps trying.`;
    }
  }
  async function refresh() {
    try {
      const [data] = await Promise.all([ask("/data.json"), askOwn()]);
      state.fault = "";
      if (data.readings) show(data);
    } catch (error) { fail(error); }
    showAges();
  }
  function show(data) {
    const text = JSON.stringify([data.nodes, data.sets, data.states, data.hidden, data.moreNodes, data.readings.nodes.at === null]);
    const isNew = state.text !== text;
    state.text = text;
    state.data = data;
    byId("cluster").textContent = data.cluster;
    document.title = `${data.cluster}: Slurm`;
    if (isNew) showNodes(data); else state.nodes = new Map(data.nodes.map((node) => [node.name, node]));
    showTiles(data);
    showQueue(data);
    showDay(data);
    if (!state.isShown) {
      state.isShown = true;
      requestAnimationFrame(() => { performance.mark("shown"); document.body.dataset.shown = performance.now().toFixed(0); });
    }
  }
  async function forever() {
    await refresh();
    setTimeout(forever, document.hidden ? EVERY_S * 6000 : EVERY_S * 1000);
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  addEventListener("resize", () => { if (state.data) showDay(state.data); });
  setInterval(showAges, 1000);
  readUrl();
  forever();
})();
