// The memory chart: how many bytes go between the SMs, L1, L2 and DRAM, and how often the caches hit.
import { h, svg } from "./dom.js";
import { total } from "./data.js";
import { plainTable } from "./table.js";
import { human } from "./units.js";

const SECTOR_BYTES = 32;
const sectors = (names) => ({ names, factor: SECTOR_BYTES });
const l1 = (kinds) => sectors(kinds.map((kind) => `l1tex__t_sectors_pipe_${kind}.sum`));
const l2 = (kinds) => sectors(kinds.map((kind) => `lts__t_sectors_srcunit_tex_op_${kind}.sum`));

// Each link of the chart, from left to right: what is read, written and updated, in bytes.
const LINKS = [
    {
        from: "SM",
        to: "L1/TEX",
        flows: [
            [
                "Loads",
                l1(["lsu_mem_global_op_ld", "lsu_mem_local_op_ld", "tex_mem_texture", "tex_mem_surface_op_ld"]),
                "read",
            ],
            ["Stores", l1(["lsu_mem_global_op_st", "lsu_mem_local_op_st", "tex_mem_surface_op_st"]), "write"],
            ["Atomics", l1(["lsu_mem_global_op_atom", "lsu_mem_global_op_red"]), "write"],
        ],
    },
    {
        from: "L1/TEX",
        to: "L2",
        flows: [
            ["Loads", l2(["read"]), "read"],
            ["Stores", l2(["write"]), "write"],
            ["Atomics", l2(["red", "atom_dot_alu", "atom_dot_cas"]), "write"],
        ],
    },
    {
        from: "L2",
        to: "DRAM",
        flows: [
            ["Reads", { names: ["dram__bytes_read.sum"], factor: 1 }, "read"],
            ["Writes", { names: ["dram__bytes_write.sum"], factor: 1 }, "write"],
        ],
    },
];
const BOXES = [
    ["SM", null],
    ["L1/TEX", "l1tex__t_sector_hit_rate.pct"],
    ["L2", "lts__t_sector_hit_rate.pct"],
    ["DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"],
];
const NOTES = ["", "hits", "hits", "of peak"];
const [BOX, GAP, HEIGHT] = [124, 166, 190];

function flowsOf(run, launch) {
    const valueOf = ({ names, factor }) => {
        const values = names.map((name) => run.value(launch, name));
        return values.every((value) => value === null) ? null : factor * total(values);
    };
    return LINKS.map((link) => ({
        ...link,
        flows: link.flows.map(([label, source, way]) => ({ label, way, bytes: valueOf(source) })),
    }));
}

function arrow({ label, way, bytes }, x, y, most) {
    const width = bytes > 0 && most > 0 ? 1 + (9 * bytes) / most : 1;
    const [from, to] = way === "read" ? [x + GAP - 8, x + 8] : [x + 8, x + GAP - 8];
    const tip = way === "read" ? 1 : -1;
    const head = 6 + width / 2;
    return svg(
        "g",
        { class: bytes > 0 ? `flow ${way}` : "flow none" },
        svg(
            "text",
            { x: x + GAP / 2, y: y - 8 - width / 2, "text-anchor": "middle" },
            `${label} ${human(bytes, "byte")}`,
        ),
        svg("line", { x1: from, y1: y, x2: to + tip * head, y2: y, "stroke-width": width }),
        svg("path", { d: `M${to},${y} l${tip * head * 1.3},${-head} v${2 * head} z` }),
    );
}

function box([name, metric], i, run, launch) {
    const x = i * (BOX + GAP);
    const value = metric && run.value(launch, metric);
    return svg(
        "g",
        { class: "box" },
        svg("rect", { x: x + 1, y: 1, width: BOX - 2, height: HEIGHT - 2, rx: 8 }),
        svg(
            "text",
            { x: x + BOX / 2, y: HEIGHT / 2 - (metric ? 8 : -5), "text-anchor": "middle", class: "title" },
            name,
        ),
        metric &&
            svg(
                "text",
                { x: x + BOX / 2, y: HEIGHT / 2 + 16, "text-anchor": "middle" },
                value === null ? "n/a" : `${human(value, "%")} ${NOTES[i]}`,
            ),
    );
}

export function memoryChart(run, launch) {
    const links = flowsOf(run, launch);
    const flows = links.flatMap((link) => link.flows);
    if (flows.every((flow) => flow.bytes === null)) return null;
    const most = Math.max(...flows.map((flow) => flow.bytes ?? 0));
    const width = BOXES.length * BOX + LINKS.length * GAP;
    const title = `Memory traffic of launch ${launch.id}; the table below has the same numbers`;
    return h(
        "figure",
        { class: "memory" },
        h("figcaption", {}, "Memory chart: bytes that move between the units"),
        h(
            "div",
            { class: "scroll", tabindex: "0", role: "region", "aria-label": "Memory chart" },
            svg(
                "svg",
                { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": title },
                BOXES.map((entry, i) => box(entry, i, run, launch)),
                links.flatMap((link, i) =>
                    link.flows.map((flow, k) =>
                        arrow(flow, BOX + i * (BOX + GAP), 48 + k * (link.flows.length > 2 ? 56 : 84), most),
                    ),
                ),
            ),
        ),
        h(
            "details",
            {},
            h("summary", {}, "The chart as a table"),
            plainTable(
                "Memory traffic",
                ["Between", "Kind", "Bytes"],
                links.flatMap((link) =>
                    link.flows.map((flow) => [`${link.from} and ${link.to}`, flow.label, human(flow.bytes, "byte")]),
                ),
            ),
        ),
    );
}
