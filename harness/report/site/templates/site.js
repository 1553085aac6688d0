// The site's only script. Pages are opened from the file system, where a script may load scripts and nothing else:
// data comes as scripts that call `rlaxes.take(name, content)`. All text is set as text, never as HTML.
"use strict";

const rlaxes = (() => {
  const taken = new Map();
  const take = (name, content) => taken.set(name, content);

  function load(address, name) {
    if (taken.has(name)) return Promise.resolve(taken.get(name));
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = () => (taken.has(name) ? done(taken.get(name)) : failed(new Error(address)));
      script.onerror = () => failed(new Error(address));
      document.head.append(script);
    });
  }

  function element(tag, properties, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  // Frameworks by axis: a framework stays where it declares every value that was chosen.
  function filterFrameworks(form) {
    const cells = [...document.querySelectorAll("td[data-axis]")];
    const names = [...new Set([...document.querySelectorAll("th[data-framework]")].map((head) => head.dataset.framework))];
    const declares = (name, axis, value) =>
      cells.some((cell) => cell.dataset.framework === name && cell.dataset.axis === axis && cell.dataset.values.split(" ").includes(value));
    function show() {
      const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
      const kept = names.filter((name) => chosen.every((select) => declares(name, select.name, select.value)));
      for (const part of document.querySelectorAll("[data-framework]")) part.hidden = !kept.includes(part.dataset.framework);
      document.getElementById("shown").value = `${kept.length} of ${names.length} shown${kept.length ? ": " + kept.join(", ") : ""}.`;
    }
    form.hidden = false;
    form.addEventListener("change", show);
    form.addEventListener("reset", () => setTimeout(show));
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
  }

  // Search: an entry is found where each word stands somewhere in it.
  const MOST = 200;
  async function search() {
    const asked = (new URLSearchParams(location.search).get("q") || "").trim();
    document.querySelector("input[name=q]").value = asked;
    const said = document.getElementById("found");
    if (!asked) return void (said.textContent = "Write one or more words into the field above.");
    const entries = await load("assets/search.js", "search");
    const words = asked.toLowerCase().split(/\s+/);
    const hits = entries.filter((entry) => words.every((word) => `${entry.title} ${entry.text}`.toLowerCase().includes(word)));
    said.textContent = `${hits.length} ${hits.length === 1 ? "place has" : "places have"} “${asked}”${hits.length > MOST ? `; the first ${MOST} are shown` : ""}.`;
    const place = document.getElementById("hits");
    let kind = null;
    for (const hit of hits.slice(0, MOST)) {
      if (hit.kind !== kind) place.append(element("h2", {}, (kind = hit.kind)));
      const link = element("a", { href: hit.href }, hit.title);
      place.append(element("div", { className: "hit" }, link, element("p", { className: "small" }, ...around(hit.text, words))));
    }
  }

  function around(text, words) {
    const low = text.toLowerCase();
    const places = words.map((word) => low.indexOf(word)).filter((at) => at >= 0);
    const from = Math.max(0, Math.min(...(places.length ? places : [0])) - 80);
    const part = (from ? "… " : "") + text.slice(from, from + 260) + (text.length > from + 260 ? " …" : "");
    const split = part.split(new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "i"));
    return split.map((piece, at) => (at % 2 ? element("mark", {}, piece) : piece));
  }

  // Two dates. What bars a comparison: another machine, or a setting of the column that differs.
  const GROUPS = { systems: "version", code: "code", machine: "machine", moment: "moment" };
  const BARS = ["machine"];

  function differences(first, second) {
    const keys = [...new Set([...Object.keys(first || {}), ...Object.keys(second || {})])];
    return keys
      .map((key) => ({ key, a: (first || {})[key], b: (second || {})[key] }))
      .filter((one) => one.a !== one.b)
      .map((one) => ({ ...one, untold: one.a === undefined || one.b === undefined }));
  }

  function between(a, b, column) {
    const found = [];
    for (const [group, title] of Object.entries(GROUPS))
      for (const one of differences(a.identity[group], b.identity[group])) found.push({ ...one, what: title, bars: BARS.includes(group) });
    for (const one of differences(a.identity.settings[column], b.identity.settings[column])) found.push({ ...one, what: "setting", bars: true });
    if (a.evidence !== b.evidence) found.push({ what: "evidence", key: "grade", a: a.evidence, b: b.evidence, bars: true });
    return found;
  }

  function verdict(a, b, column, found) {
    const names = (list) => list.map((one) => `${one.what} ${one.key}`).join(", ");
    const barred = found.filter((one) => one.bars && !one.untold);
    const untold = found.filter((one) => one.bars && one.untold);
    if (a === b) return ["no", "This is the same run twice: choose another."];
    if (!a.columns[column] || !b.columns[column]) return ["no", "Only one of the two runs has this column: there is nothing to compare."];
    if (!a.identity.settings[column] || !b.identity.settings[column]) return ["no", "May not be compared: one of the two runs does not tell its settings."];
    if (barred.length) return ["no", `May not be compared value by value: ${names(barred)} ${barred.length > 1 ? "differ" : "differs"}. The values stand beside each other, without a ratio.`];
    const same = "Same settings and, as far as the runs tell, the same machine.";
    const unsure = untold.length ? ` One of the two does not tell: ${names(untold)}.` : "";
    const identity = a.identity.machine.identity ? "" : " Neither run stored an identity of its machine; the descriptions agree.";
    return [untold.length ? "no" : "yes", (untold.length ? "Cannot tell whether they may be compared." : same) + unsure + identity];
  }

  function box(label, heads, lines) {
    const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
    const table = element("table", {}, element("thead", {}, head), ...lines);
    return element("div", { className: "box", tabIndex: 0, role: "region", "aria-label": label }, table);
  }

  const line = (head, ...cells) => element("tr", {}, element("th", { scope: "row" }, head), ...cells.map((cell) => element("td", {}, cell)));

  function shown(row, remarks) {
    if (!row) return element("span", { className: "none", title: "this run has no such figure" }, "no such figure");
    const [, , value, interval, n, state, remark] = row;
    const why = remarks[remark];
    const valued = ["measured", "as written", "not comparable"].includes(state);
    if (!valued) return element("span", {}, element("span", { className: state === "failed" ? "failed" : "none" }, state), element("span", { className: "small" }, why ? ` ${why}` : ""));
    const parts = [element("span", { className: "v" }, value), element("span", { className: "i" }, interval), element("span", { className: "n" }, `n = ${n}`)];
    if (state === "not comparable") parts.push(element("span", { className: "mark off" }, state));
    if (why) parts.push(element("span", { className: "small" }, ` ${why}`));
    return element("span", {}, ...parts);
  }

  function ratio(first, second) {
    const whole = first && second && first[5] === "measured" && second[5] === "measured" && first[7] > 0 && second[7] !== null;
    return whole ? `${(second[7] / first[7]).toPrecision(3)}×` : "–";
  }

  function sides(a, b, column, all, asked, mayDivide) {
    const of = (run) => new Map(((run.columns[column] || {}).rows || []).map((row) => [`${row[0]} ${row[1]}`, row]));
    const [first, second] = [of(a), of(b)];
    const topics = new Map();
    for (const key of new Set([...first.keys(), ...second.keys()])) {
      const [tag, variant] = first.get(key) || second.get(key);
      const said = a.measures[tag] || b.measures[tag];
      const title = said.title + (variant ? `, ${variant}` : "");
      if ((!all && !said.headline) || !title.toLowerCase().includes(asked)) continue;
      const changed = a.measures[tag] && b.measures[tag] && a.measures[tag].definition !== b.measures[tag].definition;
      const head = element("span", { title: said.definition }, title);
      if (changed) head.append(" ", element("span", { className: "mark off" }, "defined otherwise"));
      const cells = [shown(first.get(key), a.remarks), shown(second.get(key), b.remarks)];
      if (mayDivide) cells.push(changed ? "–" : ratio(first.get(key), second.get(key)));
      topics.set(said.topic, [...(topics.get(said.topic) || []), line(head, ...cells)]);
    }
    const heads = ["figure", `${a.date} ${a.run}`, `${b.date} ${b.run}`, ...(mayDivide ? ["second / first"] : [])];
    const bodies = [...topics].map(([topic, lines]) => {
      const head = element("tr", { className: "topic" }, element("th", { scope: "rowgroup", colSpan: heads.length }, topic));
      return element("tbody", {}, head, ...lines);
    });
    return bodies.length ? box("two runs side by side", heads, bodies) : element("p", { className: "absent" }, "No figure of that name here.");
  }

  function told(a, b, column) {
    const found = between(a, b, column);
    const [kind, words] = verdict(a, b, column, found);
    const parts = [element("p", { className: `verdict ${kind}` }, words)];
    for (const run of a === b ? [a] : [a, b])
      for (const correction of run.corrections) parts.push(element("p", { className: "off" }, `${run.run} was corrected: ${correction}`));
    if (found.length) {
      const said = (value) => (value === undefined ? element("span", { className: "none" }, "not told") : value);
      const lines = found.map((one) => line(`${one.what}: ${one.key}`, said(one.a), said(one.b)));
      const title = `${found.length} facts differ`;
      parts.push(element("details", { open: found.length <= 20 }, element("summary", {}, title), box("what differs", ["fact", a.run, b.run], [element("tbody", {}, ...lines)])));
    }
    return [parts, kind === "yes"];
  }

  async function compare(form) {
    const { a: firstRun, b: secondRun, column, figure, all } = form.elements;
    const asked = new URLSearchParams(location.hash.slice(1));
    const has = (select, value) => [...select.options].some((option) => option.value === value);
    firstRun.selectedIndex = 1;
    for (const select of [firstRun, secondRun]) if (has(select, asked.get(select.name))) select.value = asked.get(select.name);
    if (firstRun.value === secondRun.value) firstRun.selectedIndex = (secondRun.selectedIndex + 1) % firstRun.options.length;
    let wanted = asked.get("column");

    async function show() {
      const runs = await Promise.all([firstRun, secondRun].map((one) => load(`results/${one.value}/rows.js`, one.value)));
      const [a, b] = runs;
      const names = [...new Set(runs.flatMap((run) => Object.keys(run.columns)))].sort();
      const both = names.filter((name) => a.columns[name] && b.columns[name]);
      column.replaceChildren(...names.map((name) => element("option", { value: name }, (a.columns[name] || b.columns[name]).title + (both.includes(name) ? "" : " (in one run only)"))));
      column.value = names.includes(wanted) ? wanted : both[0] || names[0];
      wanted = column.value;
      const [parts, mayDivide] = told(a, b, wanted);
      document.getElementById("between").replaceChildren(...parts);
      document.getElementById("sides").replaceChildren(sides(a, b, wanted, all.checked, figure.value.trim().toLowerCase(), mayDivide));
      location.replace(`#a=${firstRun.value}&b=${secondRun.value}&column=${encodeURIComponent(wanted)}`);
    }
    column.addEventListener("change", () => (wanted = column.value));
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    await show();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const [filter, sidesForm] = [document.getElementById("filter"), document.getElementById("compare")];
    if (filter) filterFrameworks(filter);
    if (sidesForm) compare(sidesForm);
    if (document.getElementById("found")) search();
  });

  return { take };
})();
