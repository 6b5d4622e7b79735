// What a launch has over time: a chart for each metric below the other, which zoom together.
import { Chart, shortened, style, widthOf } from "./charts.js";
import { h, meanings } from "./dom.js";
import { plainTable } from "./table.js";
import { human } from "./units.js";

const ROW = 64; // height of a chart, in pixels
const GAP = 26; // above each, for its name
const AXIS = 34; // below the last one
const SIDES = { left: 16, right: 16 };
const FONT = "12px sans-serif"; // as ECharts writes names

// A line of steps: each sample has its value from its begin to its end. A value that is not known leaves a gap.
function stepsOf({ starts, durations, values }) {
    return values.flatMap((value, i) => [
        [starts[i], value],
        [starts[i] + durations[i], value],
    ]);
}

// A metric's name with its range, which stays whole.
function nameOf({ label, unit, most }, least, top, width) {
    const isFlat = least === 0 && most === 0; // the chart has a height all the same
    const both = isFlat ? human(0, unit) : `${human(least, unit)} to ${human(top, unit)}`;
    const range = most === null ? "" : `, ${both}`;
    return shortened(label, width - widthOf(range, FONT), FONT) + range;
}

function optionsOf({ series, end }, width) {
    const [text, grid, line] = ["--ink", "--grid", "--accent"].map(style);
    const tops = series.map((_, i) => i * (ROW + GAP) + GAP);
    const last = series.length - 1;
    return {
        animation: false,
        textStyle: { color: text },
        tooltip: {
            trigger: "axis",
            renderMode: "richText",
            formatter: (items) =>
                [
                    human(items[0].value[0], "ns"),
                    ...items.map(({ seriesIndex, value }) => labelOf(series[seriesIndex], value[1])),
                ].join("\n"),
        },
        axisPointer: { link: [{ xAxisIndex: "all" }] },
        dataZoom: [
            { type: "inside", xAxisIndex: series.map((_, i) => i), filterMode: "none", zoomOnMouseWheel: "ctrl" },
        ],
        grid: tops.map((top) => ({ ...SIDES, top, height: ROW })),
        xAxis: series.map((_, i) => ({
            ...{ gridIndex: i, type: "value", min: 0, max: end },
            axisLabel: {
                ...{ show: i === last, formatter: (ns) => human(ns, "ns"), color: text, hideOverlap: true },
                ...{ alignMinLabel: "left", alignMaxLabel: "right" }, // where there is space for them
            },
            axisLine: { lineStyle: { color: grid } },
            splitLine: { show: false },
        })),
        yAxis: series.map((one, i) => {
            const [least, most] = [Math.min(0, one.least ?? 0), one.most > 0 ? one.most : 1];
            const name = nameOf(one, least, most, width);
            return {
                ...{ gridIndex: i, type: "value", min: least, max: most, name, nameGap: 6 },
                nameTextStyle: { align: "left", color: text },
                axisLabel: { show: false },
                axisTick: { show: false },
                splitLine: { show: false },
            };
        }),
        series: series.map((one, i) => ({
            ...{ type: "line", xAxisIndex: i, yAxisIndex: i, data: stepsOf(one), showSymbol: false },
            lineStyle: { width: 1, color: line },
            itemStyle: { color: line },
            areaStyle: { opacity: 0.2 },
        })),
    };
}

const labelOf = ({ label, unit }, value) => `${label}: ${human(value, unit)}`;

class Timeline extends Chart {
    followsWidth = true; // since names do

    constructor(timeline) {
        super();
        this.timeline = timeline;
        const { series } = timeline;
        const label = `${series.length} metrics over time, also in the table below`;
        this.attach(h("div", { class: "timeline", role: "img", "aria-label": label }));
        this.box.style.setProperty("height", `${series.length * (ROW + GAP) + AXIS}px`);
        this.element = h("figure", {}, this.controls(), this.box);
    }

    controls() {
        const all = () => this.chart?.dispatchAction({ type: "dataZoom", start: 0, end: 100 });
        return h(
            "div",
            { class: "controls" },
            h("button", { type: "button", title: "Show all of the launch", onclick: all }, "Reset"),
            h("span", {}, "Ctrl and the wheel zoom, dragging moves"),
        );
    }

    paint() {
        const width = this.chart.getWidth() - SIDES.left - SIDES.right;
        this.chart.setOption(optionsOf(this.timeline, width), { notMerge: true });
    }
}

const meaningOf = ({ help, name }) => [help, name].filter(Boolean).join("\n");

// The launch's section of it, or null.
export function timelineView({ timeline }) {
    if (!timeline) return null;
    const { series, interval, end, reason, laid_over: laidOver } = timeline;
    return h(
        "section",
        { id: "section-timeline", tabindex: "-1" },
        h("h3", {}, "Over time"),
        reason && h("p", {}, reason),
        series.length > 0 &&
            h(
                "p",
                {},
                `${human(end, "ns")}, a sample every ${human(interval, "ns")}`,
                laidOver > 1 && `, mean of ${laidOver} launches laid over one another`,
            ),
        series.length > 0 && new Timeline(timeline).element,
        series.length > 0 &&
            plainTable(
                "Over time",
                ["", "Least", "Mean", "Most"],
                series.map(({ label, unit, least, mean, most, ...about }) => [
                    h("span", { title: meaningOf(about) }, label),
                    ...[least, mean, most].map((value) => human(value, unit)),
                ]),
            ),
        meanings(
            "What the metrics tell",
            series.map((one) => [one.label, meaningOf(one)]),
        ),
    );
}
