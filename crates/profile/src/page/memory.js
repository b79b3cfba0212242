// Memory over time: the lifetime of every buffer, with arenas split into their planned buffers.
const VALUES = 7, SCRATCH = 8, UNUSED = 9, IDLE = 10;

/// Bytes of values and of scratch memory in the arena, step by step.
function usedByStep(plan) {
  const values = new Float64Array(plan.steps.length + 1);
  const scratch = new Float64Array(plan.steps.length + 1);
  for (const [, bytes, first, end, role] of plan.buffers) {
    const used = role === 0 ? values : role === 1 ? scratch : null;
    if (used) for (let step = first; step < Math.min(end, plan.steps.length); step += 1) used[step] += bytes;
  }
  return { values, scratch };
}

/// Why a planned buffer is live at a step, in the words of the library.
function planWhy(plan, number, step) {
  const [, , , , role] = plan.buffers[number];
  const named = (i) => texts[plan.steps[i][0]] + " at " + texts[plan.steps[i][1]];
  const reads = plan.readers[number].includes(step);
  const next = plan.readers[number].find((reader) => reader > step);
  if (role === 1) return "scratch memory of this step";
  const returned = role === 2 ? "returned; " : "";
  if (plan.writers[number].includes(step)) return returned + "written by this step";
  if (reads) return returned + "read by this step" + (next === undefined ? "" : ", and by " + named(next));
  if (next !== undefined) return returned + "kept for " + named(next);
  return role === 2 ? "returned" : "written and never read";
}

function planWriter(plan, number, step) {
  const writers = plan.writers[number];
  for (let i = writers.length - 1; i >= 0; i -= 1) if (writers[i] <= step) return writers[i];
  return writers.length ? writers[0] : null;
}

/// How many elements of a sorted list are <= a value.
function countUpTo(list, value) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

class Memory {
  constructor(memory, plans) {
    this.memory = memory;
    this.plans = plans;
    const count = memory.born.length;
    this.born = new Float64Array(count);
    this.died = new Float64Array(count);
    let time = 0;
    for (let i = 0; i < count; i += 1) {
      time += memory.born[i];
      this.born[i] = time;
      this.died[i] = memory.life[i] < 0 ? Infinity : time + memory.life[i];
    }
    this.runsOf = new Map();
    for (const run of memory.runs) {
      let at = run.start;
      run.times = run.steps.map((gap) => (at += gap));
      if (run.arena < 0 || !run.times.length) continue;
      if (!this.runsOf.has(run.arena)) this.runsOf.set(run.arena, { runs: [], starts: [] });
      this.runsOf.get(run.arena).runs.push(run);
      this.runsOf.get(run.arena).starts.push(run.start);
    }
    this.sum();
  }

  /// The sums by kind at every change.
  sum() {
    const { memory, born, died } = this;
    const changes = [];
    const change = (time, kind, bytes) => { if (time < memory.until || time === 0) changes.push([time, kind, bytes]); };
    for (let i = 0; i < born.length; i += 1) {
      const kind = memory.owners[memory.owner[i]][0];
      change(born[i], kind, memory.bytes[i]);
      if (died[i] !== Infinity) change(died[i], kind, -memory.bytes[i]);
    }
    const used = this.plans.map(usedByStep);
    for (const [arena, { runs }] of this.runsOf) {
      const size = memory.bytes[arena];
      for (const run of runs) {
        const { values, scratch } = used[run.plan];
        let before = [0, 0, 0, size];
        const changeTo = (time, after) => {
          after.forEach((bytes, k) => { if (bytes !== before[k]) change(time, VALUES + k, bytes - before[k]); });
          before = after;
        };
        run.times.forEach((time, step) => {
          changeTo(time, [values[step], scratch[step], size - values[step] - scratch[step], 0]);
        });
        if (run.end < died[arena]) changeTo(run.end, [0, 0, 0, size]);
      }
    }
    changes.sort((a, b) => a[0] - b[0]);
    const kinds = data.kinds.length;
    const moments = [];
    const now = new Float64Array(kinds);
    const list = [];
    let place = 0;
    while (place < changes.length || !moments.length) {
      const time = place < changes.length ? changes[place][0] : 0;
      for (; place < changes.length && changes[place][0] === time; place += 1) now[changes[place][1]] += changes[place][2];
      moments.push(time);
      list.push(Float64Array.from(now));
    }
    this.times = Float64Array.from(moments);
    this.kinds = list;
    this.totals = Float64Array.from(list, (one) => one.reduce((sum, bytes) => sum + bytes, 0));
    this.peak = 0;
    this.totals.forEach((total, i) => { if (total > this.totals[this.peak]) this.peak = i; });
    this.present = data.kinds.map((_, kind) => list.some((one) => one[kind] > 0));
  }

  /// The number of the last change up to a moment.
  at(time) { return Math.max(0, countUpTo(this.times, time) - 1); }

  /// The run and step in an arena at a moment.
  stepIn(arena, time) {
    const there = this.runsOf.get(arena);
    if (!there) return null;
    const run = there.runs[countUpTo(there.starts, time) - 1];
    if (!run || time >= run.end) return null;
    const step = countUpTo(run.times, time) - 1;
    return step < 0 ? null : { run, step };
  }

  /// The memory that is live at a moment.
  live(time) {
    const { memory } = this;
    const rows = [];
    const steps = [];
    const last = countUpTo(this.born, time);
    for (let i = 0; i < last; i += 1) {
      if (time >= this.died[i]) continue;
      const [kind, op, line, why] = memory.owners[memory.owner[i]];
      const running = kind === IDLE ? this.stepIn(i, time) : null;
      if (!running) {
        const died = this.died[i];
        const freed = (this.born[i] === 0 ? "freed at " : "freed after ") + timeText(died - this.born[i]);
        const end = died === Infinity ? "live at the end" : freed;
        rows.push({ bytes: memory.bytes[i], kind, op: texts[op], line: texts[line], why: texts[why] + "; " + end });
        continue;
      }
      steps.push(running);
      let unused = memory.bytes[i];
      const plan = this.plans[running.run.plan];
      plan.buffers.forEach(([, bytes, first, end, role], number) => {
        if (role === 2 || running.step < first || running.step >= end) return;
        unused -= bytes;
        const writer = planWriter(plan, number, running.step);
        const [op, line] = writer === null ? [null, null] : plan.steps[writer];
        rows.push({
          bytes, kind: role === 0 ? VALUES : SCRATCH, op: texts[op] || "", line: texts[line] || "",
          why: planWhy(plan, number, running.step),
        });
      });
      if (unused > 0) rows.push({ bytes: unused, kind: UNUSED, op: "", line: "", why: "used by other steps; alignment and packing" });
    }
    return { rows, steps };
  }
}

/// The plot of memory over time.
class MemoryView {
  constructor(memory) {
    this.memory = memory;
    this.plot = byId("memory-plot");
    this.canvas = byId("memory-canvas");
    this.margin = { left: 74, right: 14, top: 26, bottom: 30 };
    this.height = 340;
    this.range = [0, memory.memory.until];
    this.pinned = null;
    this.hovered = null;
    this.drawLegend();
    this.listen();
    this.draw();
  }

  drawLegend() {
    const palette = colours();
    const { present } = this.memory;
    byId("memory-legend").replaceChildren(...data.kinds.flatMap((name, kind) =>
      present[kind] ? [make("span", {}, make("i", { color: palette[kind] }), name)] : []));
  }

  get inner() { return this.canvas.clientWidth - this.margin.left - this.margin.right; }
  x(time) { return this.margin.left + ((time - this.range[0]) / (this.range[1] - this.range[0])) * this.inner; }
  time(x) {
    const part = Math.min(1, Math.max(0, (x - this.margin.left) / this.inner));
    return this.range[0] + part * (this.range[1] - this.range[0]);
  }

  /// The change that a pixel column shows: the one with the most bytes among those within it.
  highest(from, to) {
    const { totals } = this.memory;
    let best = this.memory.at(from);
    for (let i = best + 1; i < totals.length && this.memory.times[i] < to; i += 1) if (totals[i] > totals[best]) best = i;
    return best;
  }

  draw() {
    const { canvas, margin, height, memory } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = this.plot.clientWidth;
    if (width < 120) return;
    canvas.style.height = height + "px";
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11.5px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    const [low, high] = this.range;
    const columns = [];
    const step = (high - low) / this.inner;
    let most = 1;
    for (let x = 0; x < this.inner; x += 1) {
      const number = this.highest(low + x * step, low + (x + 1) * step);
      columns.push(number);
      most = Math.max(most, memory.totals[number]);
    }
    const bottom = height - margin.bottom;
    const y = (bytes) => bottom - (bytes / (most * 1.04)) * (bottom - margin.top);
    const soft = style("--soft"), grid = style("--grid"), line = style("--line"), text = style("--text");
    const marks = ticks(0, most, 6, byteSteps);
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const tick of marks.list) {
      pen.fillStyle = grid;
      pen.fillRect(margin.left, Math.round(y(tick)), this.inner, 1);
      pen.fillStyle = soft;
      pen.fillText(tickBytes(tick, marks.step), margin.left - 8, y(tick));
    }
    const palette = colours();
    columns.forEach((number, x) => {
      let base = 0;
      memory.kinds[number].forEach((bytes, kind) => {
        if (!bytes) return;
        pen.fillStyle = palette[kind];
        pen.fillRect(margin.left + x, y(base + bytes), 1.02, y(base) - y(base + bytes));
        base += bytes;
      });
    });
    pen.fillStyle = line;
    pen.fillRect(margin.left, bottom, this.inner, 1);
    pen.textBaseline = "top";
    pen.textAlign = "center";
    const along = ticks(low, high, Math.max(2, Math.floor(this.inner / 110)), timeSteps);
    for (const tick of along.list) {
      pen.fillStyle = line;
      pen.fillRect(this.x(tick), bottom, 1, 5);
      pen.fillStyle = soft;
      const label = tickTime(tick, along.step, high);
      const half = pen.measureText(label).width / 2;
      pen.fillText(label, Math.min(Math.max(this.x(tick), margin.left + half - 8), width - half - 2), bottom + 9);
    }
    this.drawMarks(pen, bottom, soft);
    this.drawPeak(pen, y, text);
    this.place();
  }

  /// Marks; where a name does not fit, only its line.
  drawMarks(pen, bottom, soft) {
    let free = -Infinity;
    pen.textAlign = "left";
    pen.textBaseline = "top";
    pen.setLineDash([2, 3]);
    pen.strokeStyle = soft;
    pen.fillStyle = soft;
    for (const [time, name] of this.memory.memory.marks) {
      if (time < this.range[0] || time > this.range[1]) continue;
      const x = this.x(time);
      const wide = pen.measureText(name).width;
      if (x - free < 3) continue;
      pen.beginPath();
      pen.moveTo(x, x > free ? 4 : this.margin.top);
      pen.lineTo(x, bottom);
      pen.stroke();
      if (x > free && x + 4 + wide < this.margin.left + this.inner) {
        pen.fillText(name, x + 4, 4);
        free = x + wide + 12;
      }
    }
    pen.setLineDash([]);
  }

  drawPeak(pen, y, text) {
    const { memory } = this;
    const time = memory.times[memory.peak];
    if (time < this.range[0] || time > this.range[1]) return;
    const [x, top] = [this.x(time), y(memory.totals[memory.peak])];
    pen.fillStyle = text;
    pen.beginPath();
    pen.arc(x, top, 3.5, 0, 7);
    pen.fill();
    const label = "peak " + bytesText(memory.totals[memory.peak]);
    const left = x + 8 + pen.measureText(label).width < this.margin.left + this.inner;
    pen.textAlign = left ? "left" : "right";
    pen.textBaseline = "bottom";
    pen.lineWidth = 3;
    pen.strokeStyle = style("--card");
    pen.strokeText(label, left ? x + 7 : x - 7, top + 2);
    pen.lineWidth = 1;
    pen.fillText(label, left ? x + 7 : x - 7, top + 2);
  }

  /// Moves the cursor to the selected moment.
  place() {
    const cursor = byId("memory-cursor");
    const time = this.hovered === null ? this.pinned : this.hovered;
    cursor.hidden = time === null || time < this.range[0] || time > this.range[1];
    if (cursor.hidden) return;
    cursor.classList.toggle("loose", this.hovered !== null);
    cursor.style.left = this.x(time) + "px";
    cursor.style.top = this.margin.top + "px";
    cursor.style.height = this.height - this.margin.top - this.margin.bottom + "px";
  }

  /// Lists the memory that is live at a moment.
  show(time) {
    const { memory } = this;
    const number = memory.at(time);
    const total = memory.totals[number];
    const { rows, steps } = memory.live(time);
    const running = steps.map(({ run, step }) => {
      const plan = memory.plans[run.plan];
      const [op, line] = plan.steps[step];
      return "step " + step + " of " + plan.name + ": " + texts[op] + " at " + texts[line];
    });
    const where = number === memory.peak ? ", the peak" : "";
    const title = "At " + timeText(time, 6) + where + ": " + exactBytes(total) + " live" + (running.length ? "; " + running.join("; ") : "");
    byId("moment").textContent = title;
    const list = byId("alive");
    list.replaceChildren(liveTable(rows, total));
    list.dataset.total = total;
    list.dataset.sum = rows.reduce((sum, row) => sum + row.bytes, 0);
    list.dataset.rows = rows.length;
    this.place();
  }

  pin(time) {
    this.pinned = time;
    this.hovered = null;
    const number = this.memory.at(time);
    const isPeak = number === this.memory.peak && time === this.memory.times[number];
    remember("at", isPeak ? "peak" : (time / 1e3).toFixed(3) + "us");
    this.show(time);
  }

  pinPeak() { this.pin(this.memory.times[this.memory.peak]); }

  zoom(low, high) {
    const end = this.memory.memory.until;
    const span = Math.min(end, Math.max(50, high - low));
    const start = Math.min(Math.max(0, low), end - span);
    this.range = [start, start + span];
    this.draw();
  }

  zoomBy(factor, middle) {
    const [low, high] = this.range;
    this.zoom(middle - (middle - low) * factor, middle + (high - middle) * factor);
  }

  /// The moment that a pixel column of the plot shows.
  pointed(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const from = this.time(x);
    const number = this.highest(from, this.time(x + 1));
    return Math.max(from, this.memory.times[number]);
  }

  tip(event, time) {
    const number = this.memory.at(time);
    const palette = colours();
    const rows = data.kinds.flatMap((name, kind) => {
      const bytes = this.memory.kinds[number][kind];
      return bytes ? [make("div", {}, make("span", {}, make("i", { color: palette[kind] }), name), bytesText(bytes))] : [];
    });
    const head = make("div", {}, make("b", {}, timeText(time, 6)), make("b", {}, bytesText(this.memory.totals[number])));
    showTip(event, head, ...rows.reverse());
  }

  listen() {
    const { plot } = this;
    const box = byId("memory-selection");
    let from = null;
    plot.addEventListener("mousemove", (event) => {
      const time = this.pointed(event);
      this.hovered = time;
      this.tip(event, time);
      if (from !== null) {
        const [a, b] = [this.x(from), this.x(this.time(event.clientX - plot.getBoundingClientRect().left))];
        box.hidden = Math.abs(a - b) < 4;
        Object.assign(box.style, { left: Math.min(a, b) + "px", width: Math.abs(a - b) + "px", top: this.margin.top + "px" });
        box.style.height = this.height - this.margin.top - this.margin.bottom + "px";
      }
      if (this.pinned === null) this.show(time);
      else this.place();
    });
    plot.addEventListener("mouseleave", () => {
      hideTip();
      this.hovered = null;
      this.place();
    });
    plot.addEventListener("mousedown", (event) => { from = this.time(event.clientX - plot.getBoundingClientRect().left); });
    window.addEventListener("mouseup", (event) => {
      if (from === null) return;
      const to = this.time(event.clientX - plot.getBoundingClientRect().left);
      const start = from;
      from = null;
      box.hidden = true;
      if (Math.abs(this.x(start) - this.x(to)) >= 4) this.zoom(Math.min(start, to), Math.max(start, to));
      else this.pin(this.pointed(event));
    });
    plot.addEventListener("dblclick", () => this.zoom(0, this.memory.memory.until));
    plot.addEventListener("wheel", (event) => {
      if (document.activeElement !== plot) return;
      event.preventDefault();
      const middle = this.time(event.clientX - plot.getBoundingClientRect().left);
      this.zoomBy(event.deltaY > 0 ? 1.25 : 0.8, middle);
    }, { passive: false });
    plot.addEventListener("keydown", (event) => this.key(event));
    const middle = () => (this.pinned !== null ? this.pinned : (this.range[0] + this.range[1]) / 2);
    byId("to-peak").onclick = () => this.pinPeak();
    byId("zoom-in").onclick = () => this.zoomBy(0.5, middle());
    byId("zoom-out").onclick = () => this.zoomBy(2, middle());
    byId("zoom-all").onclick = () => this.zoom(0, this.memory.memory.until);
  }

  key(event) {
    const { times } = this.memory;
    const number = this.memory.at(this.pinned === null ? this.range[0] : this.pinned);
    const far = event.shiftKey ? 10 : 1;
    const go = (to) => {
      const time = times[Math.min(times.length - 1, Math.max(0, to))];
      const [low, high] = this.range;
      if (time < low || time > high) this.zoom(time - (high - low) / 2, time + (high - low) / 2);
      this.pin(time);
    };
    const actions = {
      ArrowLeft: () => go(number - far), ArrowRight: () => go(number + far), Home: () => go(0), End: () => go(times.length - 1),
      p: () => this.pinPeak(), "+": () => this.zoomBy(0.5, times[number]), "-": () => this.zoomBy(2, times[number]),
      Escape: () => { this.pinned = null; remember("at", null); this.place(); },
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  /// The moment that the URL names: `peak`, or a number with a unit.
  named(text) {
    if (text === "peak") return this.memory.times[this.memory.peak];
    const parts = /^([0-9.]+)(ns|us|µs|ms|s)$/.exec(text || "");
    if (!parts || !Number.isFinite(Number(parts[1]))) return null;
    const size = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 }[parts[2]];
    return Math.min(Math.round(Number(parts[1]) * size), this.memory.memory.until);
  }
}
