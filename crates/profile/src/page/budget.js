// The plans for every memory budget: bytes against time.
class BudgetView {
  constructor(budget) {
    this.budget = budget;
    this.draw();
    this.list();
  }

  draw() {
    const { rows, allowed, bytes_bound: least } = this.budget;
    const [width, height] = [1000, 320];
    const margin = { left: 64, right: 20, top: 14, bottom: 40 };
    // Plans that take much longer than twice the time are in the table only.
    const shown = rows.filter((row) => row.time <= 2.5);
    const [left, right] = [0, Math.max(...shown.map((row) => row.bytes), allowed || 0) * 1.04];
    const high = Math.max(1.1, ...shown.map((row) => row.time)) * 1.03;
    const x = (bytes) => margin.left + ((bytes - left) / (right - left)) * (width - margin.left - margin.right);
    const y = (time) => height - margin.bottom - ((time - 1) / (high - 1)) * (height - margin.top - margin.bottom);
    const svg = makeSvg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Time against bytes" });
    const text = (at, top, content, anchor) => svg.append(makeSvg("text", { x: at, y: top, "text-anchor": anchor }, content));
    const across = (at, name) => svg.append(makeSvg("line", { class: name, x1: at, x2: at, y1: margin.top, y2: height - margin.bottom }));
    const times = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
    for (const tick of ticks(1, high, 6, times).list) {
      svg.append(makeSvg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) }));
      text(margin.left - 7, y(tick) + 4, tick.toFixed(2) + " ×", "end");
    }
    const bytes = ticks(left, right, 8, byteSteps);
    for (const tick of bytes.list) text(x(tick), height - margin.bottom + 16, tickBytes(tick, bytes.step), "middle");
    text(width - margin.right, height - 6, "bytes that a call allocates", "end");
    if (least < right) across(x(least), "bound");
    if (allowed !== null && allowed < right) across(x(allowed), "allowed");
    const line = (value) => shown.map((row) => x(row.bytes) + "," + y(Math.max(1, value(row)))).join(" ");
    svg.append(makeSvg("polyline", { class: "bound", points: line((row) => row.bound), fill: "none" }));
    svg.append(makeSvg("polyline", { class: "frontier", points: line((row) => row.time), fill: "none" }));
    for (const row of shown) {
      const dot = makeSvg("circle", { class: row.chosen ? "dot chosen" : "dot", cx: x(row.bytes), cy: y(row.time), r: row.chosen ? 6 : 3.2 });
      dot.addEventListener("pointermove", (event) => showTip(event, make("b", {}, exactBytes(row.bytes)), make("div", {}, this.sentence(row))));
      dot.addEventListener("pointerleave", hideTip);
      svg.append(dot);
    }
    byId("budget-plot").replaceChildren(svg);
  }

  sentence(row) {
    const repeated = row.repeated === 0 ? "no step repeated" : row.repeated === 1 ? "one step repeated" : grouped(row.repeated) + " steps repeated";
    const parts = row.parts > 1 ? ", " + row.parts + " micro-batches" : "";
    return row.time.toFixed(3) + " times the work, " + repeated + parts;
  }

  list() {
    const fastest = this.budget.rows[this.budget.rows.length - 1];
    const rows = [...this.budget.rows].reverse().map((row) => ({
      bytes: row.bytes,
      cells: [
        [row.chosen ? "chosen" : "", "good"], [bytesText(row.bytes), "number"],
        [((100 * row.bytes) / Math.max(1, fastest.bytes)).toFixed(1) + " %", "number soft"],
        [row.time.toFixed(3) + " ×", "number"], [row.bound.toFixed(3) + " ×", "number soft"],
        [grouped(row.repeated), "number"], [String(row.parts), "number"], [row.lines, "line soft"],
      ],
    }));
    const heads = ["", ["bytes", "number"], ["share", "number"], ["time", "number"], ["at least", "number"], ["repeated", "number"],
      ["parts", "number"], "what is repeated most"];
    const place = byId("budget-table");
    place.replaceChildren(table(heads, rows));
    place.dataset.rows = rows.length;
  }
}
