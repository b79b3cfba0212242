// Time per op and per line.
class TimesView {
  constructor() {
    this.all = false;
    byId("by-op").onclick = () => this.show("op");
    byId("by-line").onclick = () => this.show("line");
    const { duration, outside } = data.memory;
    byId("times-note").textContent = "Own time excludes nested calls. No op ran for " + timeText(outside) + " of " +
      timeText(duration) + " (" + ((100 * outside) / Math.max(1, duration)).toFixed(1) + " %): tracing, planning, reading data, your own code.";
    this.show("op");
  }

  show(by) {
    byId("by-op").setAttribute("aria-pressed", by === "op");
    byId("by-line").setAttribute("aria-pressed", by === "line");
    const list = by === "op" ? data.ops : data.lines;
    const rows = this.all ? list : list.slice(0, 20);
    const most = Math.max(1e-12, ...rows.map((row) => row.share));
    const rate = (value) => (value === null ? "" : value >= 100 ? grouped(value) : value.toPrecision(2));
    const lines = rows.map((row) => {
      const bar = make("div");
      bar.style.width = ((100 * row.share) / most).toFixed(1) + "%";
      const names = by === "op" ? [[row.op, "name"], [texts[row.line], "line soft"]] : [[texts[row.line], "line"], [row.op, "name soft"]];
      return [
        ...names, [bar, "meter"], [(100 * row.share).toFixed(1) + " %", "number"], [timeText(row.own), "number"],
        [timeText(row.total), "number soft"], [grouped(row.count), "number"], [timeText(row.total / row.count), "number"],
        [rate(row.gflops), "number"], [rate(row.gbytes), "number"],
      ];
    });
    const heads = [
      ...(by === "op" ? ["op", "slowest line"] : ["line", "slowest op"]), "", ["share", "number"], ["own time", "number"],
      ["with nested calls", "number"], ["calls", "number"], ["per call", "number"], ["GFLOP/s", "number"], ["GB/s", "number"],
    ];
    const place = byId("times-table");
    place.replaceChildren(table(heads, lines));
    place.dataset.rows = list.length;
    if (list.length > rows.length) {
      const more = make("button", { type: "button", textContent: "Show all " + list.length });
      more.onclick = () => { this.all = true; this.show(by); };
      place.append(make("p", {}, more));
    }
  }
}
