// The timeline of a program: a row for each stream of a GPU and each thread, with what ran there, and below them
// one for each counter that was sampled; drawn on a canvas since there may be 200,000 activities. Names are drawn,
// or become text nodes, and never HTML.
import { shortened, style, widthOf } from "./charts.js";
import { recall, remember } from "./choices.js";
import { h } from "./dom.js";
import { human } from "./units.js";

const LABELS = 190; // width of the names of rows, in pixels, in a window that is wide enough
const MARGINS = 16; // of them
const FONT = "11px system-ui, sans-serif";
const AXIS = 20; // above all rows
const TICK = 100; // least distance, in pixels
const ROW = 18;
const GAP = 6;
const SERIES = 36; // height of a counter
const MOST_PIXELS = 32767; // from top to bottom of a canvas, on paper; higher ones stay empty
const LEAST_SHOWN = 200;
const COLORS = {
    kernel: "#3b5bdb",
    gpu_memcpy: "#f08c00",
    gpu_memset: "#fab005",
    managed: "#e8590c",
    user_annotation: "#2f9e44",
    overhead: "#c92a2a",
};
const OTHER = "#868e96";
const FOUND = "#c2410c";
const UNKNOWN = "color-mix(in srgb, var(--muted) 20%, transparent)"; // as counters are drawn
const DARK = [COLORS.kernel, COLORS.overhead, FOUND]; // light text is on these
const KINDS = {
    user_annotation: "NVTX ranges",
    calls: "calls",
    kernel: "kernels",
    gpu_memcpy: "copies",
    gpu_memset: "memory sets",
    managed: "managed memory",
    overhead: "overheads",
};
const timelines = new Set(); // that are drawn
const views = new WeakMap(); // by their elements

const UNITS = [
    ["s", 1e6],
    ["ms", 1e3],
    ["us", 1],
    ["ns", 1e-3],
];

const keyOf = (event) => `${event.pid} ${event.tid}`;
const time = (us) => human(us * 1000, "ns");
const isCall = (event) => event.cat.startsWith("cuda_");
// Processes of GPUs are numbered behind that of their host.
const callKey = (event) => `${Math.floor(event.pid / 1000)} ${event.args.correlation}`;

// Events of a row that lie in others get a level of their own.
function setLevels(row) {
    const ends = [];
    row.events.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    for (const event of row.events) {
        while (ends.length && ends[ends.length - 1] <= event.ts) ends.pop();
        event.level = ends.length;
        row.depth = Math.max(row.depth, ends.push(event.ts + event.dur));
    }
}

// The samples of a counter, [begin, length, value or null], in their order, and what a row of it shows.
function readSeries(event, y) {
    const points = event.points.filter(([at, length]) => length > 0).sort((a, b) => a[0] - b[0]);
    const known = points.filter((point) => point[2] !== null);
    const whole = known.reduce((sum, [, length]) => sum + length, 0);
    const mean = known.reduce((sum, [, length, value]) => sum + length * value, 0) / whole;
    const most = known.reduce((top, point) => Math.max(top, point[2]), 0);
    return { key: `${event.pid} 0`, name: event.name, unit: event.unit, pid: event.pid, points, mean, most, y };
}

// The first sample that ends behind a time.
function firstBehind(points, at) {
    let [low, high] = [0, points.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (points[middle][0] + points[middle][1] <= at) low = middle + 1;
        else high = middle;
    }
    return low;
}

// {rows, series, names, calls by the number that they gave their work, first, last}; made once.
function read(trace) {
    if (trace.model) return trace.model;
    const rows = new Map();
    const model = { names: new Map(), calls: new Map(), first: Infinity, last: -Infinity };
    for (const event of trace.traceEvents) {
        const key = keyOf(event);
        if (event.ph === "M") model.names.set(`${event.name} ${key}`, event.args.name);
        if (event.ph !== "X") continue;
        if (!rows.has(key)) rows.set(key, { key, pid: event.pid, tid: event.tid, events: [], depth: 1 });
        rows.get(key).events.push(event);
        model.first = Math.min(model.first, event.ts);
        model.last = Math.max(model.last, event.ts + event.dur);
        if (isCall(event) && event.args.correlation) model.calls.set(callKey(event), event);
    }
    model.rows = [...rows.values()].sort((a, b) => a.pid - b.pid || a.tid - b.tid);
    let y = AXIS + GAP;
    for (const row of model.rows) {
        setLevels(row);
        row.y = y;
        y += row.depth * ROW + GAP;
    }
    model.series = [];
    for (const event of trace.traceEvents) {
        if (event.ph !== "samples") continue;
        const series = readSeries(event, y);
        if (!series.points.length) continue;
        const [at, length] = series.points[series.points.length - 1];
        model.first = Math.min(model.first, series.points[0][0]);
        model.last = Math.max(model.last, at + length);
        model.series.push(series);
        y += SERIES + GAP;
    }
    model.height = y + GAP;
    trace.model = model;
    return model;
}

// Of a trace that is too long for the page.
function lacksText({ of, each }) {
    const [all, some] = [of, each].map((count) => count.toLocaleString("en-US"));
    return `Of ${all} activities the longest ${some} of each kind are shown`;
}

const labelOfRange = ({ most, unit }) => `0 to ${human(most, unit)}`;

class ProgramTimeline {
    // countersOf: the link to the counters of a kernel by its name, or null
    constructor(trace, countersOf) {
        Object.assign(this, { model: read(trace), countersOf, words: "", chosen: null, drag: null });
        [this.hits, this.hasWords] = [[], new Map()]; // what was found, and whether a name has the words
        this.rowOf = new Map(this.model.rows.map((row) => [row.key, row]));
        const { from = this.model.first, to = this.model.last, words = "" } = recall("timeline") ?? {};
        this.place(from, to);
        const labels = this.model.rows.map((row) => this.labelOf(row));
        for (const series of this.model.series) labels.push(series.name, labelOfRange(series));
        this.widest = labels.reduce((widest, label) => Math.max(widest, widthOf(label, FONT)), 0);
        this.canvas = h("canvas", {
            tabindex: "0",
            role: "application",
            "aria-label":
                `${this.model.rows.length} rows of streams and threads${this.counters()}; ` +
                "+ and -: zoom, arrows: move, search: details",
        });
        this.detail = h(
            "div",
            { id: "detail", role: "status" },
            "Ctrl and wheel, or + and -: zoom. Drag, or arrows: move. Click: details.",
        );
        this.found = h("span", { id: "found", role: "status" });
        this.span = h("span", { id: "span" });
        this.search = h("input", { id: "search", type: "search", oninput: () => this.find(this.search.value) });
        this.search.value = words;
        this.others = [this.controls(trace), this.legend(), this.detail];
        const [controls, ...below] = this.others;
        this.stage = h("div", { class: "stage" }, controls, this.canvas, below);
        this.element = h("div", { class: "program" }, this.stage);
        views.set(this.element, this);
        this.listen();
        this.mark(words);
        new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    // How much of the rows there is space for. The stage stays in sight while the page scrolls through all of them.
    get shown() {
        const { height } = this.model;
        if (matchMedia("print").matches) return Math.min(height, MOST_PIXELS);
        const others = this.others.reduce((sum, { offsetHeight }) => sum + offsetHeight, 3 * ROW);
        return Math.min(height, Math.max(LEAST_SHOWN, window.innerHeight - others));
    }

    get scrolled() {
        return Math.max(0, Math.min(-this.element.getBoundingClientRect().top, this.model.height - this.shown));
    }

    scrollTo(y) {
        const most = this.model.height - this.shown;
        scrollBy(0, Math.max(0, Math.min(y, most)) + this.element.getBoundingClientRect().top);
    }

    follow() {
        if (this.canvas.isConnected && this.scrolled !== this.top) this.draw();
    }

    // What the colours mean that the rows have.
    legend() {
        const seen = new Set();
        for (const row of this.model.rows)
            for (const event of row.events) seen.add(isCall(event) ? "calls" : event.cat);
        const dot = (mark) => h("span", { class: "dot", vars: { "--mark": mark }, "aria-hidden": "true" });
        return h(
            "p",
            { id: "legend" },
            Object.keys(KINDS)
                .filter((kind) => seen.has(kind))
                .map((kind) => h("span", {}, dot(COLORS[kind] ?? OTHER), KINDS[kind])),
            this.model.series.length > 0 && h("span", {}, dot(UNKNOWN), "no sample"),
        );
    }

    counters() {
        const { length } = this.model.series;
        return length ? `, and ${length} of counters` : "";
    }

    controls(trace) {
        this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.next());
        const zoom = (label, title, factor) =>
            h(
                "button",
                {
                    ...{ type: "button", title, "aria-label": title },
                    onclick: () => this.zoom(factor, (this.from + this.to) / 2),
                },
                label,
            );
        return h(
            "div",
            { class: "controls" },
            h("label", {}, "Search ", this.search),
            h("button", { id: "next", type: "button", onclick: () => this.next() }, "Next"),
            h("button", { id: "all", type: "button", onclick: () => this.look(-Infinity, Infinity) }, "All"),
            h("span", {}, zoom("+", "Zoom in", 0.5), " ", zoom("\u2212", "Zoom out", 2)),
            this.span,
            this.found,
            h(
                "span",
                { id: "lacks" },
                [trace.lacks && lacksText(trace.lacks), ...trace.missing].filter(Boolean).join(". "),
            ),
        );
    }

    listen() {
        this.canvas.addEventListener("wheel", (event) => {
            if (!event.ctrlKey) return; // which scrolls the page
            event.preventDefault();
            this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(event.offsetX));
        });
        this.canvas.addEventListener("keydown", (event) => this.press(event));
        this.canvas.addEventListener("pointerdown", (event) => {
            this.canvas.setPointerCapture(event.pointerId);
            this.drag = { x: event.offsetX, from: this.from, moved: false };
        });
        this.canvas.addEventListener("pointermove", (event) => this.move(event));
        this.canvas.addEventListener("pointerup", (event) => {
            const isClick = this.drag && !this.drag.moved;
            const place = [event.offsetX, event.offsetY + this.top];
            const hit = isClick && this.eventAt(...place);
            this.drag = null;
            if (hit) this.show(hit);
            else if (isClick) this.showSample(...place);
        });
    }

    // In a narrow window they take up to half of it, where they are so long.
    get labels() {
        const { clientWidth } = this.canvas;
        const wanted = Math.min(this.widest + MARGINS, 0.5 * clientWidth);
        return Math.min(LABELS, Math.round(Math.max(0.3 * clientWidth, wanted)));
    }

    labelOf({ key }) {
        return this.model.names.get(`thread_name ${key}`) ?? key;
    }

    // Beside a row.
    write(pen, label, y) {
        pen.fillStyle = style("--muted");
        pen.fillText(shortened(label, this.left - MARGINS, FONT), MARGINS / 2, y);
    }

    get width() {
        return Math.max(1, this.canvas.clientWidth - this.labels);
    }

    // While it is drawn: asking for the width takes longer than all else.
    x(at) {
        return this.left + (at - this.from) * this.pixels;
    }

    timeAt(px) {
        return this.from + ((px - this.labels) / this.width) * (this.to - this.from);
    }

    zoom(factor, middle) {
        this.look(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
    }

    press(event) {
        const step = (this.to - this.from) / 5;
        const moves = { ArrowLeft: -step, ArrowRight: step };
        const zooms = { "+": 0.8, "-": 1.25 };
        if (event.key in moves) this.look(this.from + moves[event.key], this.to + moves[event.key]);
        else if (event.key in zooms) this.zoom(zooms[event.key], (this.from + this.to) / 2);
        else return;
        event.preventDefault();
    }

    move(event) {
        if (!this.drag) return;
        const by = ((event.offsetX - this.drag.x) / this.width) * (this.to - this.from);
        this.drag.moved ||= Math.abs(event.offsetX - this.drag.x) > 3;
        this.look(this.drag.from - by, this.drag.from - by + (this.to - this.from));
    }

    place(low, high) {
        const { first, last } = this.model;
        const span = Math.min(Math.max(high - low, 0.01), last - first);
        this.from = Math.min(Math.max(low, first), last - span);
        this.to = this.from + span;
    }

    look(low, high) {
        this.place(low, high);
        this.draw();
        this.keep();
    }

    keep() {
        const { from, to, search } = this;
        remember("timeline", { from, to, words: search.value });
    }

    isHit({ name }) {
        if (this.words === "") return false;
        if (!this.hasWords.has(name)) this.hasWords.set(name, name.toLowerCase().includes(this.words));
        return this.hasWords.get(name);
    }

    // Search for words, and show the first that has them.
    find(words) {
        this.mark(words);
        if (this.hits.length) this.next();
        else this.draw();
        this.keep();
    }

    mark(words) {
        this.words = words.trim().toLowerCase();
        this.chosen = null;
        this.hasWords = new Map();
        this.hits = this.model.rows.flatMap((row) => row.events.filter((event) => this.isHit(event)));
        this.hits.sort((a, b) => a.ts - b.ts);
        this.found.textContent = this.words === "" ? "" : `${this.hits.length.toLocaleString("en-US")} found`;
    }

    // The next that was found behind the one that is shown.
    next() {
        const isOn = this.chosen && this.isHit(this.chosen);
        const next = this.hits.find((event) => !isOn || event.ts > this.chosen.ts) ?? this.hits[0];
        if (!next) return;
        const half = (this.to - this.from) / 2;
        if (next.ts < this.from || next.ts + next.dur > this.to) this.place(next.ts - half, next.ts + half);
        const y = this.rowOf.get(keyOf(next)).y + next.level * ROW;
        if (y < this.top + AXIS || y + ROW > this.top + this.shown) this.scrollTo(y - this.shown / 2);
        this.show(next);
    }

    eventAt(px, py) {
        const row = this.model.rows.find(({ y, depth }) => py >= y && py < y + depth * ROW);
        const level = row && Math.floor((py - row.y) / ROW);
        const [at, slack] = [this.timeAt(px), ((this.to - this.from) / this.width) * 2];
        return row?.events.find((e) => e.level === level && e.ts - slack <= at && at <= e.ts + e.dur + slack);
    }

    show(event) {
        const { names, first } = this.model;
        const counters = event.cat === "kernel" ? this.countersOf(event.name) : null;
        const where = [names.get(`process_name ${event.pid} 0`), names.get(`thread_name ${keyOf(event)}`)];
        const args = Object.entries(event.args).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
        this.chosen = event;
        this.detail.replaceChildren(
            h("p", {}, h("code", {}, event.name), counters && [" ", h("a", { href: counters }, "counters")]),
            h("p", {}, where.filter(Boolean).join(", ")),
            h("p", {}, `begins at ${time(event.ts - first)}, takes ${time(event.dur)}`),
            h("p", {}, args.join(", ")),
        );
        this.draw();
    }

    // The value of a counter where somebody clicks.
    showSample(px, py) {
        const series = this.model.series.find(({ y }) => py >= y && py < y + SERIES);
        if (!series) return;
        const at = this.timeAt(px);
        const point = series.points[firstBehind(series.points, at)];
        const value = point && point[0] <= at ? point[2] : null;
        const shown = value === null ? "not known" : `${human(value, series.unit)}`;
        this.chosen = null;
        this.detail.replaceChildren(
            h("p", {}, h("code", {}, series.name)),
            h("p", {}, this.model.names.get(`process_name ${series.key}`) ?? ""),
            h(
                "p",
                {},
                `${shown} at ${time(at - this.model.first)}; mean ${human(series.mean, series.unit)}, `,
                `most ${human(series.most, series.unit)}`,
            ),
        );
        this.draw();
    }

    // Samples that share a column of pixels are drawn as their mean. What is not known stays grey.
    drawSeries(pen, series) {
        const { points, most, y } = series;
        this.write(pen, series.name, y + 12);
        this.write(pen, labelOfRange(series), y + 26);
        pen.fillRect(this.left, y + SERIES, this.width, 1);
        pen.globalAlpha = 0.2;
        pen.fillRect(this.left, y, this.width, SERIES);
        pen.globalAlpha = 1;
        pen.fillStyle = COLORS.kernel;
        let i = firstBehind(points, this.from);
        while (i < points.length && points[i][0] < this.to) {
            const left = Math.max(this.left, Math.floor(this.x(points[i][0])));
            let [right, sum, known] = [left, 0, 0];
            do {
                const [at, length, value] = points[i++];
                right = Math.max(right, this.x(at + length));
                if (value === null) continue;
                sum += value * length;
                known += length;
            } while (i < points.length && points[i][0] < this.to && this.x(points[i][0]) < left + 1);
            if (!known) continue;
            const height = most > 0 ? (sum / known / most) * (SERIES - 2) : 0;
            const width = Math.max(1, right - left);
            pen.clearRect(left, y, width, SERIES);
            pen.fillRect(left, y + SERIES - height, width, height);
        }
    }

    // A round time for each line, since the first activity, with the digits that tell one from the next.
    drawAxis(pen, height) {
        const { first } = this.model;
        const least = TICK / this.pixels;
        const size = 10 ** Math.floor(Math.log10(least));
        const step = size * ([1, 2, 5].find((part) => part * size >= least) ?? 10);
        const [unit, us] = UNITS.find((other) => this.to - first >= other[1]) ?? UNITS[UNITS.length - 1];
        const digits = Math.max(0, -Math.floor(Math.log10(step / us) + 1e-9));
        pen.strokeStyle = style("--grid");
        pen.fillStyle = style("--muted");
        for (let tick = Math.ceil((this.from - first) / step); tick * step <= this.to - first; tick++) {
            const x = Math.round(this.x(first + tick * step)) + 0.5;
            const label = `${((tick * step) / us).toFixed(digits)} ${unit}`;
            pen.strokeRect(x, AXIS - 4, 0, height - AXIS);
            if (x + 3 + widthOf(label, FONT) <= this.canvas.clientWidth) pen.fillText(label, x + 3, 12);
        }
        pen.strokeStyle = style("--ink");
    }

    drawEvent(pen, row, event) {
        const [left, right] = [Math.max(this.left, this.x(event.ts)), this.x(event.ts + event.dur)];
        const [width, top] = [Math.max(1, right - left), row.y + event.level * ROW];
        pen.globalAlpha = this.words !== "" && !this.isHit(event) ? 0.25 : 1;
        const color = this.isHit(event) ? FOUND : (COLORS[event.cat] ?? OTHER);
        pen.fillStyle = color;
        pen.fillRect(left, top, width, ROW - 2);
        if (event === this.chosen) pen.strokeRect(left, top, width, ROW - 2);
        const seen = Math.min(right, this.canvas.clientWidth) - left;
        if (seen > 40) {
            const told = event.name.replace(/^void /, ""); // what a template returns tells least
            pen.fillStyle = DARK.includes(color) ? "#fff" : "#14181f";
            pen.fillText(shortened(told, seen - 6, FONT, { dropsEnd: true }), left + 3, top + 12);
        }
        pen.globalAlpha = 1;
    }

    // Several events in one column of pixels are drawn once.
    drawRow(pen, row) {
        const at = [];
        for (const event of row.events) {
            if (event.ts > this.to) break;
            if (event.ts + event.dur < this.from) continue;
            const right = this.x(event.ts + event.dur);
            if (right <= (at[event.level] ?? 0) && !this.isHit(event) && event !== this.chosen) continue;
            at[event.level] = Math.max(Math.floor(this.x(event.ts)) + 1, right);
            this.drawEvent(pen, row, event);
        }
        this.write(pen, this.labelOf(row), row.y + 12);
    }

    // From the call that asked for what is chosen.
    drawFlow(pen) {
        const { chosen } = this;
        const call = chosen && !isCall(chosen) && this.model.calls.get(callKey(chosen));
        if (!call) return;
        const middle = (event) => this.rowOf.get(keyOf(event)).y + event.level * ROW + ROW / 2;
        pen.beginPath();
        pen.moveTo(this.x(call.ts), middle(call));
        pen.lineTo(this.x(chosen.ts), middle(chosen));
        pen.stroke();
    }

    draw() {
        if (!this.canvas.isConnected || !this.canvas.clientWidth) return;
        timelines.add(this);
        const { first, height, rows } = this.model;
        const { shown } = this;
        this.top = this.scrolled;
        const isSeen = ({ y, depth }) => y < this.top + shown && y + (depth ? depth * ROW : SERIES) > this.top;
        const scale = Math.min(window.devicePixelRatio || 1, MOST_PIXELS / shown);
        this.left = this.labels;
        this.pixels = this.width / (this.to - this.from);
        const pen = this.canvas.getContext("2d");
        const span = [this.from - first, this.to - first, this.to - this.from].map(time);
        this.canvas.style.setProperty("height", `${shown}px`);
        this.element.style.setProperty("height", `${this.stage.offsetHeight + height - shown}px`);
        this.canvas.width = this.canvas.clientWidth * scale;
        this.canvas.height = shown * scale;
        pen.scale(scale, scale);
        pen.font = FONT;
        pen.strokeStyle = style("--ink");
        this.span.textContent = `${span[0]} to ${span[1]}, ${span[2]}`;
        this.drawAxis(pen, shown);
        pen.beginPath();
        pen.rect(0, AXIS, this.canvas.clientWidth, shown);
        pen.clip();
        pen.translate(0, -this.top);
        rows.filter(isSeen).forEach((row) => this.drawRow(pen, row));
        this.model.series.filter(isSeen).forEach((series) => this.drawSeries(pen, series));
        this.drawFlow(pen);
    }
}

// Draw them in the colours that the page has now, and forget those that have gone.
export function redrawPrograms() {
    for (const timeline of timelines) {
        if (timeline.canvas.isConnected) timeline.draw();
        else timelines.delete(timeline);
    }
}

addEventListener("scroll", () => timelines.forEach((timeline) => timeline.follow()));
addEventListener("resize", redrawPrograms);

export function programView({ program, traced }) {
    const links = new Map(traced.map((row) => [row.name, row.link]));
    const { rows, series } = read(program);
    if (!rows.length && !series.length)
        return [h("h1", {}, "Timeline"), h("p", {}, "The trace has nothing with a time.")];
    return [h("h1", {}, "Timeline"), new ProgramTimeline(program, (name) => links.get(name) ?? null).element];
}

// Search for what has a name.
export function revealOnTimeline(name) {
    const shown = views.get(document.querySelector(".program"));
    if (!shown) return;
    shown.search.value = name;
    shown.find(name);
}
