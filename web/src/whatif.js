// What the theoretical occupancy would be if the launch had another block size, other registers or other shared memory.
import { h, svg } from "./dom.js";
import { plainTable } from "./table.js";
import { human } from "./units.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [300, 150, 38, 10, 10, 20];
const grouped = (value) => value.toLocaleString("en-US");
const range = ({ from, to }) => (from === to ? grouped(from) : `${grouped(from)} to ${grouped(to)}`);
const share = ({ occupancy_pct }) => (occupancy_pct > 0 ? human(occupancy_pct, "%") : "cannot run");

const stepAt = (curve, value) => curve.steps.find((step) => value >= step.from && value <= step.to);

function drawing(curve) {
    const [first, last] = [curve.steps[0].from, curve.steps[curve.steps.length - 1].to];
    const x = (value) => LEFT + ((WIDTH - LEFT - RIGHT) * (value - first)) / Math.max(last - first, 1);
    const y = (pct) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * pct) / 100;
    const line = curve.steps
        .map((step, i) => `${i ? "L" : "M"}${x(step.from)},${y(step.occupancy_pct)} H${x(step.to)}`)
        .join(" ");
    const now = stepAt(curve, curve.now);
    return svg(
        "svg",
        {
            viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
            role: "img",
            "aria-label": `Occupancy over ${curve.label}; table below`,
        },
        [0, 50, 100].map((pct) => [
            svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(pct), y2: y(pct) }),
            svg("text", { x: LEFT - 4, y: y(pct) + 4, "text-anchor": "end" }, `${pct} %`),
        ]),
        svg("text", { x: LEFT, y: HEIGHT - 5 }, grouped(first)),
        svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, grouped(last)),
        svg("path", { class: "curve", d: line }),
        now && svg("circle", { class: "now", cx: x(curve.now), cy: y(now.occupancy_pct), r: 4.5 }),
    );
}

function curveView(curve) {
    const now = stepAt(curve, curve.now);
    return h(
        "figure",
        {},
        h("figcaption", {}, `${curve.label}: ${grouped(curve.now)} now${now ? `, ${share(now)}` : ""}`),
        drawing(curve),
        h(
            "details",
            {},
            h("summary", {}, "The curve as a table"),
            plainTable(
                curve.label,
                [curve.label, "Occupancy"],
                curve.steps.map((step) => [range(step), share(step)]),
            ),
        ),
    );
}

export function whatIfView(curves) {
    if (!curves.length) return null;
    return h(
        "div",
        { class: "what-if" },
        h("h4", {}, "Theoretical occupancy, if one of these were different"),
        h("div", { class: "tables" }, curves.map(curveView)),
    );
}
