// A plan's buffers as rectangles: steps to the right, offsets in memory upward.
const ROLES = ["value", "scratch", "returned"];
const roleColour = (role) => [colours()[VALUES], colours()[SCRATCH], colours()[3]][role];

class PlanView {
  constructor(plans) {
    this.plans = plans;
    this.plot = byId("plan-plot");
    this.margin = { left: 74, right: 14, top: 20, bottom: 34 };
    this.number = 0;
    this.step = null;
    byId("plan-legend").replaceChildren(...ROLES.map((name, role) =>
      make("span", {}, make("i", { color: roleColour(role) }), ["value in the arena", "scratch memory", "returned to the caller"][role])));
    if (plans.length > 1) {
      byId("plan-tabs").append(...plans.map((plan, i) => make("button", {
        type: "button", textContent: plan.name, onclick: () => { this.choose(i, null); remember("plan", i); remember("step", null); },
      })));
    }
    this.plot.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by || !this.plan.steps.length) return;
      event.preventDefault();
      this.pick(this.step + by * (event.shiftKey ? 10 : 1));
    });
    this.plot.addEventListener("mouseleave", hideTip);
  }

  get plan() { return this.plans[this.number]; }

  choose(number, step) {
    this.number = number;
    [...byId("plan-tabs").children].forEach((tab, i) => tab.setAttribute("aria-pressed", i === number));
    this.step = step === null ? this.plan.peak_step || 0 : step;
    this.draw();
    this.list();
  }

  pick(step) {
    this.step = Math.min(this.plan.steps.length - 1, Math.max(0, step));
    remember("plan", this.plans.length > 1 ? this.number : null);
    remember("step", this.step);
    this.draw();
    this.list();
  }

  draw() {
    const { plan, margin } = this;
    const width = this.plot.clientWidth;
    if (width < 120) return;
    const height = 380;
    const steps = Math.max(1, plan.steps.length);
    const inner = width - margin.left - margin.right;
    const bottom = height - margin.bottom;
    const x = (step) => margin.left + (Math.min(step, steps) / steps) * inner;
    const y = (bytes) => bottom - (bytes / Math.max(1, plan.peak)) * (bottom - margin.top);
    const svg = makeSvg("svg", { height, viewBox: `0 0 ${width} ${height}` });
    const label = (left, top, text, anchor) => svg.append(makeSvg("text", { x: left, y: top, "text-anchor": anchor }, text));
    const upward = ticks(0, plan.peak, 6, byteSteps);
    for (const tick of upward.list) {
      svg.append(makeSvg("line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) }));
      label(margin.left - 8, y(tick) + 4, tickBytes(tick, upward.step), "end");
    }
    const stepSteps = timeSteps.filter((step) => step >= 1);
    for (const tick of ticks(0, steps - 1, Math.max(2, Math.floor(inner / 80)), stepSteps).list) {
      label((x(tick) + x(tick + 1)) / 2, bottom + 16, String(tick), "middle");
    }
    label(margin.left + inner / 2, height - 3, "step, in program order", "middle");
    if (plan.peak_step !== null) {
      const left = x(plan.peak_step);
      const wide = Math.max(2, x(plan.peak_step + 1) - left);
      svg.append(makeSvg("rect", { class: "peak", x: left, y: margin.top, width: wide, height: bottom - margin.top }));
      const anchor = left < width / 2 ? "start" : "end";
      label(anchor === "start" ? left : left + wide, margin.top - 6, "peak at step " + plan.peak_step, anchor);
    }
    plan.buffers.forEach(([offset, bytes, first, end, role], number) => {
      const shade = 0.72 + 0.28 * ((number * 0.618) % 1);
      const rectangle = makeSvg("rect", {
        class: "buffer", x: x(first), y: y(offset + bytes), width: Math.max(1, x(end) - x(first)),
        height: Math.max(0.75, y(offset) - y(offset + bytes)), fill: roleColour(role), "fill-opacity": shade.toFixed(2),
        "data-buffer": number, "data-bytes": bytes,
      });
      rectangle.addEventListener("mousemove", (event) => {
        event.stopPropagation();
        this.tip(event, number);
      });
      svg.append(rectangle);
    });
    svg.append(makeSvg("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom }));
    if (plan.arena > 0 && plan.arena < plan.peak) {
      svg.append(makeSvg("line", {
        class: "axis", x1: margin.left, x2: width - margin.right, y1: y(plan.arena), y2: y(plan.arena), "stroke-dasharray": "4 3",
      }));
      // On the other side than the label of the peak.
      const right = plan.peak_step !== null && plan.peak_step < steps / 2;
      label(right ? width - margin.right : margin.left + 2, y(plan.arena) - 6, "arena ends at " + bytesText(plan.arena), right ? "end" : "start");
    }
    if (plan.steps.length) {
      const middle = (x(this.step) + x(this.step + 1)) / 2;
      svg.append(makeSvg("line", { class: "chosen-step", x1: middle, x2: middle, y1: margin.top, y2: bottom, "pointer-events": "none" }));
    }
    const stepAt = (event) => Math.floor(((event.clientX - svg.getBoundingClientRect().left - margin.left) / inner) * steps);
    svg.addEventListener("click", (event) => this.pick(stepAt(event)));
    svg.addEventListener("mousemove", (event) => {
      const step = Math.min(steps - 1, Math.max(0, stepAt(event)));
      if (!plan.steps.length) return;
      const [op, line, details] = plan.steps[step];
      showTip(event, make("b", {}, "step " + step + ": " + texts[op]), make("div", {}, texts[line]), make("div", { class: "soft" }, texts[details]));
    });
    this.plot.replaceChildren(svg);
  }

  tip(event, number) {
    const { plan } = this;
    const [offset, bytes, first, end, role] = plan.buffers[number];
    const maker = planWriter(plan, number, first);
    const [op, line, details] = maker === null ? [null, null, null] : plan.steps[maker];
    const named = (i) => "step " + i + " (" + texts[plan.steps[i][0]] + ")";
    const last = end > plan.steps.length ? "after the run" : "step " + (end - 1);
    const overwritten = plan.writers[number].slice(1);
    const readers = plan.readers[number];
    const line_of = (name, value) => make("div", {}, make("span", { class: "soft" }, name), value);
    const parts = [
      make("b", {}, (role === 1 ? "scratch of " : "") + (texts[op] || "buffer") + ", " + exactBytes(bytes)),
      line_of("line", texts[line] || ""),
      line_of("outputs", texts[details] || ""),
      line_of("kind", ["value in the arena", "scratch memory", "returned to the caller"][role]),
      line_of("memory", role === 2 ? "output buffer" : "arena, bytes " + grouped(offset) + " to " + grouped(offset + bytes)),
      line_of("live", "from step " + first + " to " + last),
    ];
    if (readers.length) parts.push(line_of("read by", readers.slice(0, 4).map(named).join(", ") + (readers.length > 4 ? ", …" : "")));
    if (overwritten.length) {
      const more = overwritten.length > 4 ? ", …" : "";
      parts.push(line_of("overwritten by", overwritten.slice(0, 4).map(named).join(", ") + more));
    }
    parts.push(line_of("live at step " + this.step, this.isLive(number) ? planWhy(plan, number, this.step) : "no"));
    showTip(event, ...parts);
  }

  isLive(number) {
    const [, , first, end, role] = this.plan.buffers[number];
    // Output buffers are allocated before the first step.
    return this.step < end && (first <= this.step || (role === 2 && end > this.plan.steps.length));
  }

  /// Lists the buffers that are live at the selected step.
  list() {
    const { plan } = this;
    const rows = [];
    let used = 0;
    plan.buffers.forEach(([, bytes, first, , role], number) => {
      if (!this.isLive(number)) return;
      const writer = planWriter(plan, number, this.step);
      const [op, line] = writer === null ? [null, null] : plan.steps[writer];
      const why = first > this.step ? "returned; allocated before the first step" : planWhy(plan, number, this.step);
      rows.push({ bytes, kind: role, colour: roleColour(role), name: ROLES[role], op: texts[op] || "", line: texts[line] || "", why });
      used += bytes;
    });
    if (plan.peak > used) {
      const why = "used by other steps; alignment and packing";
      rows.push({ bytes: plan.peak - used, kind: 3, colour: colours()[UNUSED], name: "unused", op: "", line: "", why });
    }
    const step = plan.steps[this.step];
    const at = step ? "Step " + this.step + " of " + plan.steps.length + ", " + texts[step[0]] + " at " + texts[step[1]] : "No steps";
    const title = at + ": " + bytesText(used) + " in use of " + exactBytes(plan.peak);
    byId("plan-step").replaceChildren(title, make("span", { class: "soft" }, step ? texts[step[2]] : ""));
    const list = byId("plan-alive");
    list.replaceChildren(liveTable(rows, plan.peak));
    list.dataset.rows = rows.length;
    list.dataset.step = this.step;
  }
}
