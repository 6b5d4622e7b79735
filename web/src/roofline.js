// The roofline chart: work per second over work per byte, both on logarithmic scales, with zoom and hover. The axes
// hold powers of ten, since zooming needs a linear scale.
import { Chart, style, widthOf } from "./charts.js";
import { recall, remember } from "./choices.js";
import { h, kernelName } from "./dom.js";
import { sortedTable } from "./table.js";
import { human, scale } from "./units.js";

const GRID = { left: 84, right: 22, top: 12, bottom: 46 };
const SYMBOLS = ["circle", "triangle", "diamond", "rect"];

const power = (exponent) => 10 ** exponent;

// The rooflines of a section layout, by id, over all sections.
export function rooflinesOf(sections) {
    return sections.flatMap((section) => section.rooflines);
}

// A point for each level that a launch, or launches together, reach: time weighs launches.
export function pointsOf(run, roofline, subject, launches) {
    const sum = (column) =>
        launches.reduce(
            (all, launch) => {
                const value = launch.values[column];
                const ns = run.value(launch, "gpu__time_duration.sum") ?? 1;
                return value === null || all === null ? null : { value: all.value + value * ns, ns: all.ns + ns };
            },
            { value: 0, ns: 0 },
        );
    const mean = (column) => {
        const all = sum(column);
        return all && all.value / all.ns;
    };
    const [work, peak] = [mean(roofline.work), mean(roofline.peak)];
    return roofline.points.flatMap((level) => {
        const [traffic, bandwidth] = [mean(level.traffic), mean(level.peak)];
        if (!(work > 0 && traffic > 0 && peak > 0 && bandwidth > 0)) return [];
        const intensity = work / traffic;
        const roof = Math.min(peak, intensity * bandwidth);
        return [
            {
                ...subject,
                level: level.level,
                work,
                intensity,
                peak,
                bandwidth,
                roof,
                pct: (100 * work) / roof,
                limit: roof < peak ? `memory: ${level.level}` : "compute",
            },
        ];
    });
}

// The roofs over all points: the highest of each, since the clocks of launches differ.
function roofsOf(points) {
    const levels = new Map();
    points.forEach((point) => levels.set(point.level, Math.max(levels.get(point.level) ?? 0, point.bandwidth)));
    return { peak: Math.max(...points.map((point) => point.peak)), levels };
}

// The view begins where the lowest roof rises from its bottom and ends at 1,000 operations a byte, or behind the last
// ridge. Points further away stand at its edge.
const [FAR, DECADES] = [3, 7];

function rangeOf(points, roofs) {
    const bandwidths = [...roofs.levels.values()].map(Math.log10);
    const peak = Math.log10(roofs.peak);
    const work = points.map((point) => Math.log10(point.work));
    const top = Math.ceil(peak + 0.1);
    const bottom = Math.max(Math.min(Math.floor(Math.min(...work) - 0.15), top - 2), top - DECADES);
    const ridge = Math.max(...bandwidths.map((bandwidth) => peak - bandwidth));
    const x = points.map((point) => Math.log10(point.intensity));
    const right = Math.max(Math.ceil(ridge + 0.5), Math.min(Math.ceil(Math.max(...x) + 0.3), FAR));
    const left = Math.min(bottom - Math.min(...bandwidths), Math.floor(Math.min(...x) - 0.15));
    return { x: [Math.max(Math.floor(left * 2) / 2, right - DECADES), right], y: [bottom, top] };
}

// Where a point stands, and the arrow of one at the edge: it points to where the point would be.
function placed(point, range, symbol) {
    const inside = ([low, high], value) => {
        const margin = (high - low) / 100;
        return Math.max(low + margin, Math.min(high - margin, value));
    };
    const exact = [Math.log10(point.intensity), Math.log10(point.work)];
    const value = [inside(range.x, exact[0]), inside(range.y, exact[1])];
    const beyond = (axis, limits) => exact[axis] < limits[0] || exact[axis] > limits[1];
    if (!beyond(0, range.x) && !beyond(1, range.y)) return { value: exact, symbol };
    const turn = beyond(0, range.x) ? (exact[0] > value[0] ? -90 : 90) : exact[1] > value[1] ? 0 : 180;
    return { value, symbol: "arrow", symbolRotate: turn, symbolSize: 12 };
}

// The name of a kernel without its types.
function shortName(name) {
    const plain =
        name
            .replace(/[<(].*/s, "")
            .split(/[ :]+/)
            .pop() || name;
    return plain.length > 30 ? `${plain.slice(0, 29)}\u2026` : plain;
}

const crosses = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// Where the label of a point may stand, the best place first: [left, top, right, bottom] for a label of some width.
function placesOf([x, y], width) {
    const [half, far] = [width / 2, width + 9];
    return {
        top: [x - half, y - 19, x + half, y - 6],
        right: [x + 8, y - 6, x + far, y + 6],
        left: [x - far, y - 6, x - 8, y + 6],
        bottom: [x - half, y + 6, x + half, y + 19],
    };
}

const CELL = 64; // pixels

// What is taken of the chart, by cells, so that thousands of points stay quick.
class Taken {
    constructor() {
        this.cells = new Map();
    }

    cellsOf([left, top, right, bottom]) {
        const keys = [];
        for (let x = Math.floor(left / CELL); x <= right / CELL; x++)
            for (let y = Math.floor(top / CELL); y <= bottom / CELL; y++) keys.push(`${x} ${y}`);
        return keys;
    }

    add(place) {
        for (const key of this.cellsOf(place)) {
            if (!this.cells.has(key)) this.cells.set(key, []);
            this.cells.get(key).push(place);
        }
    }

    isFree(place) {
        return this.cellsOf(place).every((key) => !this.cells.get(key)?.some((other) => crosses(place, other)));
    }
}

const LABEL_SIZE = 11; // pixels
const LABEL_FONT = `${LABEL_SIZE}px sans-serif`; // as ECharts writes it

// Gives points labels as long as there is space that no other point or label takes. One label is enough for points of a
// kernel that stand together. spots: [{dot, at: [x, y], text}]
function placeLabels(spots, [left, top, right, bottom]) {
    const taken = new Taken();
    spots.forEach(({ at: [x, y] }) => taken.add([x - 5, y - 5, x + 5, y + 5]));
    const labelled = new Map(); // places of the points with each text
    const isInside = (place) => place[0] >= left && place[1] >= top && place[2] <= right && place[3] <= bottom;
    spots.forEach(({ dot }) => delete dot.label);
    for (const { dot, at, text } of spots) {
        const places = Object.entries(placesOf(at, widthOf(text, LABEL_FONT)));
        const isKnown = labelled.get(text)?.some((other) => Math.hypot(other[0] - at[0], other[1] - at[1]) < 12);
        const found = !isKnown && places.find(([, place]) => isInside(place) && taken.isFree(place));
        dot.label = { show: Boolean(found), position: found ? found[0] : undefined, formatter: text };
        if (!found) continue;
        taken.add(found[1]);
        if (!labelled.has(text)) labelled.set(text, []);
        labelled.get(text).push(at);
    }
}

function roofSeries(name, data, color) {
    return {
        name,
        type: "line",
        data,
        symbol: "none",
        silent: true,
        animation: false,
        z: 1,
        lineStyle: { color, width: 1.5 },
        id: `roof-${name}`,
        tooltip: { show: false },
    };
}

function tooltip(point) {
    return h(
        "div",
        { class: "tip" },
        h("strong", {}, point.name),
        h("br"),
        `${point.level}: ${human(point.work, point.unit)} at ${human(point.intensity, point.perByte)}`,
        h("br"),
        `${human(point.pct, "%")} of the roof, limited by ${point.limit}`,
    );
}

function axis(name, range, format, text) {
    return {
        type: "value",
        name,
        nameLocation: "middle",
        nameGap: 30,
        min: range[0],
        max: range[1],
        minInterval: 0.25,
        nameTextStyle: { color: text },
        axisLabel: { color: text, hideOverlap: true, formatter: format },
        axisLine: { onZero: false, lineStyle: { color: style("--line") } },
        splitLine: { lineStyle: { color: style("--grid") } },
    };
}

function optionsOf(points, shown, unit, perByte) {
    const roofs = roofsOf(points);
    const range = rangeOf(points, roofs);
    const text = style("--muted");
    const levels = [...roofs.levels.keys()];
    const color = (level) => style(`--level-${levels.indexOf(level) % 4}`);
    const lines = levels
        .filter((level) => shown.has(level))
        .map((level) => {
            const ridge = Math.log10(roofs.peak / roofs.levels.get(level));
            const start = [range.x[0], range.x[0] + Math.log10(roofs.levels.get(level))];
            return roofSeries(level, [start, [ridge, Math.log10(roofs.peak)]], color(level));
        });
    const first = Math.min(
        ...levels
            .filter((level) => shown.has(level))
            .map((level) => Math.log10(roofs.peak / roofs.levels.get(level))),
    );
    if (lines.length)
        lines.push(
            roofSeries(
                "Compute",
                [
                    [first, Math.log10(roofs.peak)],
                    [range.x[1], Math.log10(roofs.peak)],
                ],
                style("--ink"),
            ),
        );
    const dots = levels
        .filter((level) => shown.has(level))
        .map((level) => ({
            id: `dots-${level}`,
            type: "scatter",
            symbolSize: 9,
            label: { distance: 4, color: text, fontSize: LABEL_SIZE },
            z: 2,
            animation: false,
            itemStyle: { color: color(level), opacity: 0.8, borderColor: style("--paper"), borderWidth: 0.5 },
            emphasis: { scale: 1.6 },
            data: points
                .filter((point) => point.level === level)
                .map((point) => ({
                    ...placed(point, range, SYMBOLS[levels.indexOf(level) % 4]),
                    point: { ...point, unit, perByte },
                })),
        }));
    return {
        animation: false,
        grid: GRID,
        xAxis: axis(perByte, range.x, (v) => shortNumber(power(v)), text),
        yAxis: { ...axis("", range.y, (v) => shortValue(power(v), unit), text), nameGap: 70 },
        dataZoom: [
            { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl" },
            { type: "inside", yAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl" },
        ],
        tooltip: {
            trigger: "item",
            confine: true,
            backgroundColor: style("--paper"),
            borderColor: style("--line"),
            textStyle: { color: style("--ink"), fontSize: 13 },
            extraCssText: "max-width:32rem;white-space:normal",
            formatter: (item) => tooltip(item.data.point),
        },
        series: [...lines, ...dots],
    };
}

function shortValue(value, unit) {
    const [number, spelled] = scale(Number(value.toPrecision(2)), unit);
    return `${parseFloat(number)} ${spelled}`;
}

function shortNumber(value) {
    const step = Math.max(0, Math.min(3, Math.floor(Math.log10(value * 1.001) / 3)));
    return `${Number((value / 1000 ** step).toPrecision(2))}${["", "k", "M", "G"][step]}`;
}

// Zoom both axes by a factor around the middle.
function zoom(chart, factor) {
    chart.getOption().dataZoom.forEach((part, i) => {
        const middle = (part.start + part.end) / 2;
        const half = Math.min(50, ((part.end - part.start) / 2) * factor);
        const start = Math.max(0, Math.min(middle - half, 100 - 2 * half));
        chart.dispatchAction({ type: "dataZoom", dataZoomIndex: i, start, end: start + 2 * half });
    });
}

function pointTable(caption, points, unit, perByte) {
    return sortedTable({
        caption,
        rows: points,
        sort: null,
        columns: [
            {
                label: "Kernel",
                header: true,
                value: (p) => p.name,
                cell: (p) => kernelName(p.name, p.link),
            },
            { label: "Level", value: (p) => p.level },
            { label: "Achieved", number: true, unit, value: (p) => p.work },
            { label: "Intensity", number: true, unit: perByte, value: (p) => p.intensity },
            { label: "Roof", number: true, unit, value: (p) => p.roof },
            { label: "Of roof", number: true, unit: "%", value: (p) => p.pct },
            { label: "Limited by", value: (p) => p.limit },
        ],
    });
}

class RooflineChart extends Chart {
    followsWidth = true; // since the places of labels do

    // choices: [{label, unit, points}]: of each roofline that has any
    constructor(choices) {
        super();
        this.choices = choices;
        this.key = `roofline ${choices.map(({ label }) => label).sort()}`;
        const { label, hidden = [] } = recall(this.key) ?? {};
        this.choice = choices.find((choice) => choice.label === label) ?? choices[0];
        this.hidden = new Set(hidden);
        this.attach(h("div", { class: "chart", role: "img" }));
        this.toggles = h("span", { class: "toggles" });
        this.points = h("details", { class: "points" });
        this.element = h("figure", { class: "roofline" }, this.controls(), this.box, this.points);
        this.show();
    }

    controls() {
        const select = h(
            "select",
            {
                onchange: () => {
                    this.choice = this.choices[select.selectedIndex];
                    this.show();
                    this.keep();
                },
            },
            this.choices.map((choice) => h("option", { selected: choice === this.choice }, choice.label)),
        );
        const button = (label, title, action) =>
            h("button", { type: "button", "aria-label": title, title, onclick: action }, label);
        return h(
            "div",
            { class: "controls" },
            h("label", {}, "Roofline ", select),
            this.toggles,
            h(
                "span",
                { class: "zoom" },
                button("+", "Zoom in", () => zoom(this.chart, 0.5)),
                button("\u2212", "Zoom out", () => zoom(this.chart, 2)),
                button("Reset", "Show all", () => zoom(this.chart, 1000)),
            ),
        );
    }

    keep() {
        remember(this.key, { label: this.choice.label, hidden: [...this.hidden] });
    }

    show() {
        const roofs = roofsOf(this.choice.points);
        this.toggles.replaceChildren(
            ...[...roofs.levels].map(([level, bandwidth], i) =>
                h(
                    "label",
                    { class: "toggle", vars: { "--mark": `var(--level-${i % 4})` } },
                    h("input", {
                        type: "checkbox",
                        checked: !this.hidden.has(level),
                        onchange: (event) => {
                            if (event.target.checked) this.hidden.delete(level);
                            else this.hidden.add(level);
                            this.draw(true);
                            this.keep();
                        },
                    }),
                    ` ${level} ${human(bandwidth, "byte/second")}`,
                ),
            ),
            h("span", {}, `Peak ${human(roofs.peak, this.choice.unit)}`),
        );
        this.box.setAttribute(
            "aria-label",
            `Roofline chart, ${this.choice.label}: ${this.choice.points.length} points, also in the table below`,
        );
        this.points.replaceChildren(
            h("summary", {}, `The ${this.choice.points.length} points as a table`),
            pointTable(
                `Points of the roofline ${this.choice.label}`,
                this.choice.points,
                this.choice.unit,
                this.choice.perByte,
            ),
        );
        this.draw(true);
    }

    listen() {
        this.chart.on("click", (item) => {
            if (item.data?.point) location.hash = item.data.point.link;
        });
        this.chart.on("datazoom", () => this.label());
    }

    paint() {
        const { points, unit, perByte } = this.choice;
        const levels = new Set(points.map((point) => point.level).filter((level) => !this.hidden.has(level)));
        const option = optionsOf(points, levels, unit, perByte);
        this.dots = option.series.filter((series) => series.type === "scatter");
        this.chart.setOption(option, { notMerge: true });
        this.label();
    }

    // Labels depend on how far the chart is zoomed.
    label() {
        const isOne = new Set(this.choice.points.map((point) => point.link)).size === 1;
        const grid = { xAxisIndex: 0, yAxisIndex: 0 };
        const spots = this.dots
            .flatMap((series) => series.data)
            .map((dot) => ({
                dot,
                at: this.chart.convertToPixel(grid, dot.value),
                text: isOne ? dot.point.level : shortName(dot.point.name),
            }));
        placeLabels(spots, [
            GRID.left,
            GRID.top,
            this.chart.getWidth() - GRID.right,
            this.chart.getHeight() - GRID.bottom,
        ]);
        this.chart.setOption({ series: this.dots.map(({ id, data }) => ({ id, data })) });
    }
}

export function rooflineChart(choices) {
    return choices.length ? new RooflineChart(choices).element : null;
}

// One choice for each roofline with work. subjects: [{name, link, launches}]
export function rooflineChoices(run, rooflines, subjects) {
    return rooflines
        .map((roofline) => {
            const unit = run.metric(roofline.work).unit;
            return {
                label: roofline.label,
                unit,
                perByte: unit.replace("/second", "/byte"),
                points: subjects.flatMap(({ launches, ...subject }) => pointsOf(run, roofline, subject, launches)),
            };
        })
        .filter((choice) => choice.points.length > 0)
        .map((choice) => ({ ...choice, perByte: perByteOf(choice.perByte) }));
}

function perByteOf(unit) {
    return unit.startsWith("flop") ? "FLOP/byte" : unit.startsWith("op") ? "OP/byte" : unit;
}
