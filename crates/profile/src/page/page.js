// The page: figures, charts, and the views.
function figure(label, value, more, name) {
  byId("figures").append(make("div", { class: "figure" }, make("span", {}, label), make("b", { class: name || "" }, value),
    more ? make("small", {}, more) : null));
}

function drawFigures(memory) {
  const largest = data.plans.filter((plan) => plan.measured !== null).sort((a, b) => b.peak - a.peak)[0];
  if (memory) {
    const peak = memory.totals[memory.peak];
    figure("Peak memory", bytesText(peak), grouped(peak) + " bytes at " + timeText(memory.times[memory.peak]));
  }
  if (largest) {
    figure("Planned peak", bytesText(largest.peak), largest.name + ", " + grouped(largest.peak) + " bytes");
    const runs = grouped(largest.runs) + (largest.runs === 1 ? " run" : " runs");
    const equal = largest.exact ? "equal to the byte in " + runs : "differs from the plan; see below";
    figure("Measured peak", bytesText(largest.measured), equal, largest.exact ? "good" : "bad");
  }
  if (memory) {
    const { live_at_start: before, live_at_end: after, duration } = memory.memory;
    figure("Live at the end", bytesText(after), bytesText(before) + " at the start");
    figure("Time recorded", timeText(duration), grouped(data.ops.reduce((sum, row) => sum + row.count, 0)) + " calls");
  }
  for (const [label, value] of data.figures) figure(label, value);
  for (const note of data.notes) byId("notes").append(make("p", { class: "note" }, note));
  for (const warning of data.warnings) byId("notes").append(make("p", { class: "warning" }, warning));
}

/// Small charts: columns whose names end with the same word are in one.
function drawHistory() {
  const charts = new Map();
  data.columns.slice(1).forEach((name, i) => {
    const last = name.trim().split(/[\s_]+/).pop();
    if (!charts.has(last)) charts.set(last, []);
    charts.get(last).push({ name, column: i + 1 });
  });
  const place = byId("history").querySelector(".charts");
  place.replaceChildren();
  for (const [name, series] of charts) place.append(chart(name, series));
}

function chart(name, series) {
  const [width, height] = [420, 220];
  const margin = { left: 52, right: 16, top: 12, bottom: 36 };
  const lines = series.map(({ name: label, column }) => ({
    label,
    points: data.rows.flatMap((row) => (Number.isFinite(row[0]) && Number.isFinite(row[column]) && row[column] !== null ? [[row[0], row[column]]] : [])),
  }));
  const points = lines.flatMap((line) => line.points);
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
  const box = make("div", {}, make("h3", {}, name), svg);
  if (!points.length) return box;
  let [low, high] = [Math.min(...points.map((p) => p[1])), Math.max(...points.map((p) => p[1]))];
  if (low === high) [low, high] = [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const room = (high - low) * 0.06;
  [low, high] = [low >= 0 && low < room * 4 ? 0 : low - room, high + room];
  let [left, right] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
  if (left === right) [left, right] = [left - 1, right + 1];
  const x = (value) => margin.left + ((value - left) / (right - left)) * (width - margin.left - margin.right);
  const y = (value) => height - margin.bottom - ((value - low) / (high - low)) * (height - margin.top - margin.bottom);
  const text = (at, top, content, anchor) => svg.append(makeSvg("text", { x: at, y: top, "text-anchor": anchor }, content));
  const decimals = [];
  for (let unit = 1e-9; unit < 1e12; unit *= 10) decimals.push(unit, 2 * unit, 5 * unit);
  const upward = ticks(low, high, 5, decimals);
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(upward.step) - 1e-9)));
  for (const tick of upward.list) {
    svg.append(makeSvg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) }));
    text(margin.left - 7, y(tick) + 4, tick.toFixed(digits), "end");
  }
  const along = ticks(left, right, 8, decimals.filter((step) => step >= 1));
  for (const tick of along.list) text(x(tick), height - margin.bottom + 16, String(Math.round(tick)), "middle");
  text(width - margin.right, height - 4, data.columns[0], "end");
  const palette = [colours()[7], colours()[5], colours()[3], colours()[6], colours()[1]];
  lines.forEach(({ label, points: list }, i) => {
    const colour = palette[i % palette.length];
    svg.append(makeSvg("polyline", { points: list.map((p) => x(p[0]) + "," + y(p[1])).join(" "), fill: "none", stroke: colour, "stroke-width": 2 }));
    for (const [at, value] of list) {
      const dot = makeSvg("circle", { cx: x(at), cy: y(value), r: list.length > 60 ? 1.2 : 2.8, fill: colour });
      dot.append(makeSvg("title", {}, label + ", " + data.columns[0] + " " + at + ": " + value.toPrecision(5)));
      svg.append(dot);
    }
  });
  const legend = lines.map(({ label, points: list }, i) => make("span", {}, make("i", { color: palette[i % palette.length] }),
    label + (list.length ? ": " + list[list.length - 1][1].toPrecision(4) : "")));
  box.append(make("div", { class: "legend" }, ...legend));
  return box;
}

function drawPlanned() {
  const rows = data.plans.map((plan) => [
    [plan.name, ""], [grouped(plan.steps.length), "number"], [grouped(plan.runs), "number"],
    [grouped(plan.peak) + " B", "number"], [plan.measured === null ? "not run" : grouped(plan.measured) + " B", "number"],
    [plan.measured === null ? "" : plan.exact ? "equal" : "differs by up to " + bytesText(Math.abs(plan.measured - plan.peak)),
      plan.measured === null ? "" : plan.exact ? "good" : "bad"],
    [grouped(plan.lower_bound) + " B", "number soft"], [plan.runs ? timeText(plan.nanos / plan.runs) : "", "number"],
  ]);
  const heads = ["program", ["steps", "number"], ["runs", "number"], ["planned peak", "number"], ["measured peak", "number"], "",
    ["lower bound", "number"], ["time per run", "number"]];
  byId("planned-table").replaceChildren(table(heads, rows));
}

function start() {
  byId("title").textContent = data.title;
  const show = (id, is) => { byId(id).hidden = !is; };
  show("history", data.columns.length > 1 && data.rows.length);
  show("memory", data.memory);
  show("budget", data.budget);
  show("plan", data.plans.length);
  show("planned", data.plans.length);
  show("times", data.memory && data.ops.length);
  const memory = data.memory ? new Memory(data.memory, data.plans) : null;
  drawFigures(memory);
  drawHistory();
  drawPlanned();
  const asked = { at: wanted.get("at"), plan: Number(wanted.get("plan") || 0), step: wanted.get("step") };
  const view = memory ? new MemoryView(memory) : null;
  const plan = data.plans.length ? new PlanView(data.plans) : null;
  if (data.memory && data.ops.length) new TimesView();
  if (data.budget) new BudgetView(data.budget);
  const go = () => {
    if (plan) {
      const number = data.plans[asked.plan] ? asked.plan : 0;
      const step = asked.step === null ? null : Math.min(Math.max(0, Math.floor(Number(asked.step) || 0)), Math.max(0, data.plans[number].steps.length - 1));
      plan.choose(number, step);
    }
    if (!view) return;
    const moment = view.named(asked.at);
    if (moment === null) view.show(memory.times[memory.peak]);
    else view.pin(moment);
  };
  go();
  window.addEventListener("hashchange", () => {
    const now = new URLSearchParams(window.location.hash.slice(1));
    [asked.at, asked.plan, asked.step] = [now.get("at"), Number(now.get("plan") || 0), now.get("step")];
    go();
  });
  const redraw = () => {
    if (view) view.draw();
    if (plan) plan.draw();
  };
  let width = byId("title").clientWidth;
  new ResizeObserver(() => {
    if (byId("title").clientWidth === width) return;
    width = byId("title").clientWidth;
    redraw();
  }).observe(byId("title"));
  dark.addEventListener("change", () => {
    if (view) view.drawLegend();
    redraw();
  });
  document.body.dataset.ready = "yes";
}

start();
