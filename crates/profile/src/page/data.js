// Errors of the scripts are shown on the page.
function fail(message) {
  const banner = document.getElementById("error");
  banner.hidden = false;
  banner.textContent += (banner.textContent ? "\n" : "This page has an error: ") + message;
}
window.onerror = (message, _file, line) => { fail(message + " (script line " + line + ")"); };
window.onunhandledrejection = (event) => { fail(String(event.reason)); };

const data = JSON.parse(document.getElementById("data").textContent);
const texts = data.texts;
const byId = (id) => document.getElementById(id);

/// An element with text or children. Text never becomes markup.
function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") element.className = value;
    else if (name === "color") element.style.background = value;
    else if (name.startsWith("data-")) element.setAttribute(name, value);
    else element[name] = value;
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of children) element.append(child);
  return element;
}

const grouped = (n) => Math.round(n).toLocaleString("en-US");

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= (unit === 0 ? 1024 : 1023.95) && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? value + " B" : value.toFixed(1) + " " + units[unit];
}

const exactBytes = (bytes) => (bytes < 1024 ? bytes + " bytes" : bytesText(bytes) + " (" + grouped(bytes) + " bytes)");

function timeText(nanos, digits = 3) {
  const [size, unit] = nanos >= 1e9 ? [1e9, "s"] : nanos >= 1e6 ? [1e6, "ms"] : nanos >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const value = nanos / size;
  if (unit === "ns") return Math.round(value) + " ns";
  return value.toFixed(Math.max(0, digits - 1 - Math.max(0, Math.floor(Math.log10(Math.max(value, 1)))))) + " " + unit;
}

/// Ticks at round numbers of a unit, at most so many.
function ticks(low, high, most, steps) {
  const span = Math.max(high - low, Number.MIN_VALUE);
  const step = steps.find((s) => span / s <= most) || steps[steps.length - 1];
  const list = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) list.push(t);
  return { list, step };
}

const byteSteps = [];
for (let unit = 1; unit < 2 ** 60; unit *= 1024) {
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500]) byteSteps.push(step * unit);
}
const timeSteps = [];
for (let unit = 1; unit < 1e15; unit *= 10) timeSteps.push(unit, 2 * unit, 5 * unit);

/// A time on an axis whose ticks are a step apart.
function tickTime(nanos, step, high) {
  const [size, unit] = high >= 1e9 ? [1e9, "s"] : high >= 1e6 ? [1e6, "ms"] : high >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return (nanos / size).toFixed(digits) + " " + unit;
}

function tickBytes(bytes, step) {
  let [size, unit] = [1, "B"];
  for (const larger of ["KiB", "MiB", "GiB", "TiB", "PiB"]) {
    if (step < size * 1024) break;
    size *= 1024;
    unit = larger;
  }
  return grouped(bytes / size) + " " + unit;
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colours = () => [
  "#4263eb", "#9775fa", "#15aabf", "#40a860", "#f5b301", "#fd7e14", "#d6336c", "#3b9df0", "#f06595",
  dark.matches ? "#59626d" : "#b6bec8", dark.matches ? "#3a424c" : "#d5dae0",
];
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/// A table: heads are [text, class]; rows are lists of cells, each text, an element, or [content, class].
function table(heads, rows, foot) {
  const cells = (list, tag) => list.map((cell) => {
    const [content, name] = Array.isArray(cell) ? cell : [cell, ""];
    return make(tag, { class: name }, content);
  });
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr", {}, ...cells(row.cells || row, "td"));
    if (row.bytes !== undefined) line.setAttribute("data-bytes", row.bytes);
    body.append(line);
  }
  const whole = make("table", {}, make("thead", {}, make("tr", {}, ...cells(heads, "th"))), body);
  if (foot) whole.append(make("tfoot", {}, make("tr", {}, ...cells(foot, "td"))));
  return whole;
}

/// A table of live buffers, the largest first; buffers that differ only in their offset share a row.
function liveTable(rows, total) {
  const known = new Map();
  for (const row of rows) {
    const key = [row.kind, row.op, row.line, row.why].join("\n");
    const same = known.get(key);
    if (same) {
      same.bytes += row.bytes;
      same.count += 1;
    } else known.set(key, { ...row, count: 1 });
  }
  const all = [...known.values()].sort((a, b) => b.bytes - a.bytes);
  const shown = all.slice(0, 40);
  const palette = colours();
  const lines = shown.map((row) => ({
    bytes: row.bytes,
    cells: [
      [bytesText(row.bytes), "number"],
      [total ? ((100 * row.bytes) / total).toFixed(1) + " %" : "", "number soft"],
      [make("span", {}, make("i", { color: row.colour || palette[row.kind] }), row.name || data.kinds[row.kind]), "name"],
      [(row.op || "") + (row.count > 1 ? " ×" + row.count : ""), "name"],
      [row.line || "", "line"],
      [row.why, "soft"],
    ],
  }));
  const left = all.slice(40);
  if (left.length) {
    const bytes = left.reduce((sum, row) => sum + row.bytes, 0);
    lines.push({ bytes, cells: [[bytesText(bytes), "number"], "", left.length + " more", "", "", ""] });
  }
  const heads = [["bytes", "number"], ["share", "number"], "kind", "op", "line", "why it is live"];
  return table(heads, lines, [[bytesText(total), "number"], "", "total", "", "", ""]);
}

// The box beside the pointer.
function showTip(event, ...children) {
  const tip = byId("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const right = event.clientX + 16 + width > window.innerWidth;
  const below = event.clientY + 16 + height > window.innerHeight;
  tip.style.left = Math.max(4, right ? event.clientX - width - 14 : event.clientX + 16) + "px";
  tip.style.top = Math.max(4, below ? event.clientY - height - 14 : event.clientY + 16) + "px";
}
function hideTip() { byId("tip").hidden = true; }

// The selection in the URL: #at=peak&step=57
const wanted = new URLSearchParams(window.location.hash.slice(1));
function remember(name, value) {
  if (value === null) wanted.delete(name);
  else wanted.set(name, value);
  const hash = wanted.toString();
  history.replaceState(null, "", hash ? "#" + hash : window.location.pathname + window.location.search);
}
