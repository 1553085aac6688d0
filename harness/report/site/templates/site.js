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
      script.onload = () => (taken.has(name) ? done(taken.get(name)) : failed(new Error(`${address} holds something else`)));
      script.onerror = () => failed(new Error(`${address} could not be loaded`));
      document.head.append(script);
    });
  }

  // An element with properties (or attributes, where it has no such property) and children.
  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const styled = (className, ...children) => element("span", { className }, ...children);
  const byId = (id) => document.getElementById(id);

  // Frameworks by axis: a framework stays where it declares every value that was chosen.
  function filterFrameworks(form) {
    const cells = [...document.querySelectorAll("td[data-axis]")].map((cell) => cell.dataset);
    const names = [...document.querySelectorAll("th[data-framework]")].map((head) => head.dataset.framework);

    function declares(name, { name: axis, value }) {
      const cell = cells.find((one) => one.framework === name && one.axis === axis);
      return Boolean(cell) && cell.values.split(" ").includes(value);
    }

    function show() {
      const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
      const kept = names.filter((name) => chosen.every((select) => declares(name, select)));
      for (const part of document.querySelectorAll("[data-framework]")) part.hidden = !kept.includes(part.dataset.framework);
      byId("shown").value = `${kept.length} of ${names.length} shown${kept.length ? `: ${kept.join(", ")}` : ""}.`;
    }

    form.addEventListener("change", show);
    form.addEventListener("reset", () => setTimeout(show)); // the fields are empty only after this event
    form.addEventListener("submit", (event) => event.preventDefault());
    byId("choices").open = window.innerWidth > 860;
    form.hidden = false;
    show();
  }

  // Search: an entry is found where each word stands somewhere in it.
  const MOST_HITS = 200;
  const BEFORE = 80;
  const SHOWN = 260;

  async function search(field) {
    const asked = (new URLSearchParams(location.search).get("q") || "").trim();
    field.value = asked;
    if (!asked) {
      byId("found").textContent = "Write one or more words into the field above.";
      return;
    }
    const words = asked.toLowerCase().split(/\s+/);
    const has = (entry, word) => `${entry.title} ${entry.text}`.toLowerCase().includes(word);
    const hits = (await load("assets/search.js", "search")).filter((entry) => words.every((word) => has(entry, word)));
    const cut = hits.length > MOST_HITS ? `; the first ${MOST_HITS} are shown` : "";
    byId("found").textContent = `${hits.length} ${hits.length === 1 ? "place has" : "places have"} “${asked}”${cut}.`;
    let kind = "";
    for (const hit of hits.slice(0, MOST_HITS)) {
      if (hit.kind !== kind) byId("hits").append(element("h2", {}, hit.kind));
      kind = hit.kind;
      const text = element("p", { className: "small" }, ...around(hit.text, words));
      byId("hits").append(element("div", { className: "hit" }, element("a", { href: hit.href }, hit.title), text));
    }
  }

  // The part of a text around the first of the words, with the words marked.
  function around(text, words) {
    const places = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0);
    const from = Math.max(0, Math.min(...places, text.length) - BEFORE);
    const begin = places.length ? from : 0;
    const part = text.slice(begin, begin + SHOWN);
    const literal = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const pieces = part.split(new RegExp(`(${literal.join("|")})`, "i"));
    const marked = pieces.map((piece, at) => (at % 2 ? element("mark", {}, piece) : piece));
    return [begin ? "… " : "", ...marked, text.length > begin + SHOWN ? " …" : ""];
  }

  // Two dates. By the rule of `rlaxes history`, figures are held together where the work and the machine are the same;
  // what stands in `context` (versions, lock, commit, load) may differ, and is named.
  const GROUPS = [["machine", "machine", true], ["work", "setting", true], ["context", "at the time", false]];

  function between(a, b, first, second) {
    const found = [];
    if (a.evidence !== b.evidence) found.push({ what: "evidence", a: a.evidence, b: b.evidence, bars: true });
    for (const [group, title, bars] of GROUPS) {
      for (const key of new Set([...Object.keys(first[group]), ...Object.keys(second[group])])) {
        const what = key === title ? key : `${title}: ${key}`;
        const one = { what, a: first[group][key], b: second[group][key], bars };
        if (one.a !== one.b) found.push(one);
      }
    }
    return found;
  }

  // Whether figures may be divided, and the words for it.
  function verdict(a, b, first, found) {
    if (a === b) return [false, "This is the same run twice: choose another."];
    const names = (list) => list.map((one) => one.what).join(", ");
    const bars = found.filter((one) => one.bars);
    const differ = bars.filter((one) => one.a !== undefined && one.b !== undefined);
    if (differ.length) {
      const rest = "The values stand beside each other, without a ratio.";
      return [false, `These may not be compared value by value. Different: ${names(differ)}. ${rest}`];
    }
    if (bars.length) {
      const untold = `one of the two does not tell ${names(bars)}`;
      return [false, `It cannot be told whether these may be compared: ${untold}. No ratio is given.`];
    }
    const noId = first.machine.machine.endsWith("without an id");
    const kind = noId ? " The runs are from before machines had an id: theirs are of one kind, and may be two." : "";
    return [true, `The same settings, on the same machine by what the runs tell.${kind}`];
  }

  function box(label, heads, bodies) {
    const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
    const table = element("table", {}, element("thead", {}, head), ...bodies);
    return element("div", { className: "box", tabIndex: 0, role: "region", "aria-label": label }, table);
  }

  function line(head, ...cells) {
    return element("tr", {}, element("th", { scope: "row" }, head), ...cells.map((cell) => element("td", {}, cell)));
  }

  function told(a, b, column) {
    const [first, second] = [a.columns[column], b.columns[column]];
    const found = first && second ? between(a, b, first, second) : [];
    const alone = [false, `Only ${first ? a.run : b.run} has this column: there is nothing to compare.`];
    const [may, words] = first && second ? verdict(a, b, first, found) : alone;
    const parts = [element("p", { className: may ? "verdict" : "verdict no" }, words)];
    for (const run of new Set([a, b])) {
      for (const said of run.corrections) parts.push(element("p", { className: "off" }, `${run.run} was corrected: ${said}`));
    }
    if (found.length) {
      const fact = (value) => (value === undefined ? styled("none", "not told") : value);
      const lines = found.map((one) => line(one.what, fact(one.a), fact(one.b)));
      const table = box("what differs", ["fact", a.run, b.run], [element("tbody", {}, ...lines)]);
      const summary = element("summary", {}, `What differs between the two: ${found.length}`);
      parts.push(element("details", { open: found.length <= 12 }, summary, table));
    }
    return [parts, may];
  }

  // A row is [measure, variant, value in words, interval in words, repeats, state, number of its remark, value].
  function shown(row, remarks) {
    if (!row) return styled("none", "no such figure in this run");
    const [, , value, interval, n, state, remark] = row;
    const why = styled("small", remarks[remark] ? ` ${remarks[remark]}` : "");
    if (value === null) return styled("", styled(state === "failed" ? "failed" : "none", state), why);
    const mark = state === "measured" ? "" : styled("mark off", state);
    return styled("", styled("v", value), styled("i", interval), styled("n", `n = ${n}`), mark, why);
  }

  function ratio(first, second) {
    const whole = first && second && first[5] === "measured" && second[5] === "measured";
    return whole && first[7] > 0 && second[7] !== null ? `${(second[7] / first[7]).toPrecision(3)}×` : "–";
  }

  function sides(a, b, column, wanted, mayDivide) {
    const of = (run) => new Map((run.columns[column]?.rows || []).map((row) => [`${row[0]} ${row[1]}`, row]));
    const [first, second] = [of(a), of(b)];
    const topics = new Map();
    for (const key of new Set([...first.keys(), ...second.keys()])) {
      const [tag, variant] = first.get(key) || second.get(key);
      const said = a.measures[tag] || b.measures[tag];
      const title = said.title + (variant ? `, ${variant}` : "");
      if (!wanted(said, title)) continue;
      const changed = a.measures[tag] && b.measures[tag] && a.measures[tag].definition !== b.measures[tag].definition;
      const mark = changed ? styled("mark off", "defined otherwise") : "";
      const cells = [shown(first.get(key), a.remarks), shown(second.get(key), b.remarks)];
      if (mayDivide) cells.push(changed ? "–" : ratio(first.get(key), second.get(key)));
      const head = element("span", { title: said.definition }, title, " ", mark);
      topics.set(said.topic, [...(topics.get(said.topic) || []), line(head, ...cells)]);
    }
    if (!topics.size) return element("p", { className: "absent" }, "No figure of that name here.");
    const heads = ["figure", a.run, b.run, ...(mayDivide ? ["second / first"] : [])];
    const bodies = [...topics].map(([topic, lines]) => {
      const head = element("th", { scope: "rowgroup", colSpan: heads.length }, topic);
      return element("tbody", {}, element("tr", { className: "topic" }, head), ...lines);
    });
    return box("two runs side by side", heads, bodies);
  }

  function timeline(run, folder) {
    const title = element("b", {}, `Timeline of one step, ${run.run}`);
    const source = `results/${folder}/figures/timeline.svg`;
    const picture = run.timeline
      ? element("div", { className: "scroll" }, element("img", { src: source, alt: run.timeline }))
      : element("div", { className: "absent" }, "Not drawn.");
    return element("figure", {}, element("figcaption", {}, title, "Its scale is its own."), picture);
  }

  function offer(select, a, b, wanted) {
    const names = [...new Set([...Object.keys(a.columns), ...Object.keys(b.columns)])].sort();
    const both = names.filter((name) => a.columns[name] && b.columns[name]);
    const title = (name) => (a.columns[name] || b.columns[name]).title + (both.includes(name) ? "" : " (in one run only)");
    select.replaceChildren(...names.map((name) => element("option", { value: name }, title(name))));
    select.value = names.includes(wanted) ? wanted : both[0] || names[0];
    return select.value;
  }

  function compare(form) {
    const { a: one, b: other, column, figure, all } = form.elements;
    const asked = new URLSearchParams(location.hash.slice(1));
    one.selectedIndex = 1;
    for (const select of [one, other]) {
      // Only what the page itself offers is ever loaded, whatever the address says.
      const known = [...select.options].some((option) => option.value === asked.get(select.name));
      if (known) select.value = asked.get(select.name);
    }
    if (one.value === other.value) one.selectedIndex = (other.selectedIndex + 1) % one.options.length;
    let wanted = asked.get("column");

    async function show() {
      const [a, b] = await Promise.all([one, other].map((select) => load(`results/${select.value}/rows.js`, select.value)));
      if (a !== taken.get(one.value) || b !== taken.get(other.value)) return; // another run was chosen meanwhile
      wanted = offer(column, a, b, wanted);
      const [parts, may] = told(a, b, wanted);
      const named = figure.value.trim().toLowerCase();
      const shows = (said, title) => (all.checked || said.headline) && title.toLowerCase().includes(named);
      byId("between").replaceChildren(...parts);
      byId("sides").replaceChildren(sides(a, b, wanted, shows, may));
      byId("pictures").replaceChildren(timeline(a, one.value), timeline(b, other.value));
      location.replace(`#a=${one.value}&b=${other.value}&column=${encodeURIComponent(wanted)}`);
    }

    column.addEventListener("input", () => (wanted = column.value)); // before the form shows it
    const showOrSay = () => show().catch(saying("between"));
    form.addEventListener("input", showOrSay);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    showOrSay();
  }

  // A page from the file system gets no event of a rejected promise, so each is caught where it begins.
  const saying = (place) => (error) => (byId(place).textContent = `This page is not whole: ${error.message}.`);

  document.addEventListener("DOMContentLoaded", () => {
    if (byId("filter")) filterFrameworks(byId("filter"));
    if (byId("compare")) compare(byId("compare"));
    if (byId("found")) search(document.querySelector("input[name=q]")).catch(saying("found"));
  });

  return { take };
})();
