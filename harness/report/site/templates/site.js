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
    document.getElementById("choices").open = window.innerWidth > 860;
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

  // Two dates. By the rule of `rlaxes history`, figures are held together where the work and the machine are the same;
  // what stands in `context` (versions, lock, commit, load) may differ, and is named.
  const GROUPS = [["machine", "machine", true], ["work", "setting", true], ["context", "at the time", false]];

  function between(a, b, first, second) {
    const found = [];
    if (a.evidence !== b.evidence) found.push({ what: "evidence", a: a.evidence, b: b.evidence, bars: true });
    for (const [group, title, bars] of GROUPS) {
      for (const key of new Set([...Object.keys(first[group]), ...Object.keys(second[group])])) {
        const one = { what: key === title ? key : `${title}: ${key}`, a: first[group][key], b: second[group][key], bars };
        if (one.a !== one.b) found.push(one);
      }
    }
    return found;
  }

  function verdict(a, b, first, found) {
    if (a === b) return [false, "This is the same run twice: choose another."];
    const untold = (one) => one.a === undefined || one.b === undefined;
    const names = (list) => list.map((one) => one.what).join(", ");
    const bars = found.filter((one) => one.bars);
    const differ = bars.filter((one) => !untold(one));
    if (differ.length) return [false, `These may not be compared value by value. Different: ${names(differ)}. The values stand beside each other, without a ratio.`];
    if (bars.length) return [false, `It cannot be told whether these may be compared: one of the two does not tell ${names(bars)}. No ratio is given.`];
    const unnamed = first.machine.machine.endsWith("without an id") ? " The runs are from before machines had an id: theirs are of one kind, and may be two." : "";
    return [true, `The same settings, on the same machine by what the runs tell.${unnamed}`];
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
    const heads = ["figure", a.run, b.run, ...(mayDivide ? ["second / first"] : [])];
    const bodies = [...topics].map(([topic, lines]) => {
      const head = element("tr", { className: "topic" }, element("th", { scope: "rowgroup", colSpan: heads.length }, topic));
      return element("tbody", {}, head, ...lines);
    });
    return bodies.length ? box("two runs side by side", heads, bodies) : element("p", { className: "absent" }, "No figure of that name here.");
  }

  function told(a, b, column) {
    const [first, second] = [a.columns[column], b.columns[column]];
    const found = first && second ? between(a, b, first, second) : [];
    const alone = [false, `Only ${first ? a.run : b.run} has this column: there is nothing to compare.`];
    const [may, words] = first && second ? verdict(a, b, first, found) : alone;
    const parts = [element("p", { className: may ? "verdict" : "verdict no" }, words)];
    for (const run of a === b ? [a] : [a, b])
      for (const correction of run.corrections) parts.push(element("p", { className: "off" }, `${run.run} was corrected: ${correction}`));
    if (found.length) {
      const said = (value) => (value === undefined ? element("span", { className: "none" }, "not told") : value);
      const lines = found.map((one) => line(one.what, said(one.a), said(one.b)));
      const title = `What differs between the two: ${found.length}`;
      parts.push(element("details", { open: found.length <= 12 }, element("summary", {}, title), box("what differs", ["fact", a.run, b.run], [element("tbody", {}, ...lines)])));
    }
    return [parts, may];
  }

  function timeline(run, folder) {
    const caption = element("figcaption", {}, element("b", {}, `Timeline of one step, ${run.run}`), "Its scale is its own.");
    const picture = run.timeline
      ? element("div", { className: "scroll" }, element("img", { src: `results/${folder}/figures/timeline.svg`, alt: run.timeline }))
      : element("div", { className: "absent" }, "Not drawn.");
    return element("figure", {}, caption, picture);
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
      document.getElementById("pictures").replaceChildren(timeline(a, firstRun.value), timeline(b, secondRun.value));
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
