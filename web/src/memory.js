// The memory chart: what goes between the SMs, shared memory, the caches and the memories, and how often the caches
// hit.
import { h, svg } from "./dom.js";
import { total } from "./data.js";
import { plainTable, scrolling } from "./table.js";
import { human } from "./units.js";

const SECTOR_BYTES = 32;
const sectors = (names) => ({ names, factor: SECTOR_BYTES, unit: "byte" });
const l1 = (kinds) => sectors(kinds.map((kind) => `l1tex__t_sectors_pipe_${kind}.sum`));
const l2 = (kinds) => sectors(kinds.map((kind) => `lts__t_sectors_srcunit_tex_op_${kind}.sum`));
const bytes = (name) => ({ names: [name], factor: 1, unit: "byte" });
const shared = (kind) => ({
    names: [`l1tex__data_pipe_lsu_wavefronts_mem_shared_op_${kind}.sum`],
    factor: 1,
    unit: "wavefront",
});
// What L1/TEX asks L2 for of a memory that is not the device's own, and what L2 then had to fetch from there.
const other = (memory) => {
    const ops = (kinds) =>
        sectors(kinds.map((kind) => `lts__t_sectors_srcunit_tex_aperture_${memory}_op_${kind}.sum`));
    return [
        ["Loads", ops(["read"]), "read"],
        ["Stores", ops(["write"]), "write"],
        ["Atomics", ops(["red", "atom"]), "write"],
        ["L2 misses", sectors([`lts__t_sectors_aperture_${memory}_lookup_miss.sum`]), "read"],
    ];
};

// Each link of the chart: what is read, written and updated. A link that is optional is left out where the report has
// none of its metrics.
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
        from: "SM",
        to: "Shared memory",
        optional: true,
        flows: [
            ["Loads", shared("ld"), "read"],
            ["Stores", shared("st"), "write"],
            ["Atomics", shared("atom"), "write"],
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
            ["Reads", bytes("dram__bytes_read.sum"), "read"],
            ["Writes", bytes("dram__bytes_write.sum"), "write"],
        ],
    },
    { from: "L2", to: "System memory", optional: true, flows: other("sysmem") },
    { from: "L2", to: "Peer memory", optional: true, flows: other("peer") },
];
// The boxes: column, and what stands below the name.
const BOXES = {
    SM: [0],
    "L1/TEX": [1, "l1tex__t_sector_hit_rate.pct", "hits"],
    "Shared memory": [1],
    L2: [2, "lts__t_sector_hit_rate.pct", "hits"],
    DRAM: [3, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "of peak"],
    "System memory": [3],
    "Peer memory": [3],
};
const [BOX, GAP, ROW, SPACE] = [150, 146, 46, 14];

// The links that there are, each with what flows; a flow of an optional link that was not collected is left out.
function linksOf(run, launch) {
    const amountOf = ({ names, factor }) => {
        const values = names.map((name) => run.value(launch, name));
        return values.every((value) => value === null) ? null : factor * total(values);
    };
    return LINKS.map((link) => ({
        ...link,
        flows: link.flows
            .map(([label, source, way]) => ({ label, way, unit: source.unit, amount: amountOf(source) }))
            .filter((flow) => !link.optional || flow.amount !== null),
    })).filter((link) => link.flows.length);
}

// Where boxes and arrows stand: links into one column are stacked, and a box spans the links on either side of it.
function layOut(links) {
    const bottoms = [0, 0, 0, 0];
    const boxes = new Map();
    const extend = (name, top, bottom) => {
        const box = boxes.get(name) ?? { name, top, bottom };
        boxes.set(name, { name, top: Math.min(box.top, top), bottom: Math.max(box.bottom, bottom) });
    };
    for (const link of links) {
        const column = BOXES[link.to][0];
        const top = bottoms[column];
        const bottom = top + Math.max(2, link.flows.length) * ROW;
        bottoms[column] = bottom + SPACE;
        link.top = top + (bottom - top - link.flows.length * ROW) / 2;
        extend(link.to, top, bottom);
        extend(link.from, top, bottom);
    }
    return { boxes: [...boxes.values()], height: Math.max(...bottoms) - SPACE };
}

function arrow({ label, way, unit, amount }, x, y, most) {
    const width = amount > 0 && most > 0 ? 1 + (9 * amount) / most : 1;
    const [from, to] = way === "read" ? [x + GAP - 8, x + 8] : [x + 8, x + GAP - 8];
    const tip = way === "read" ? 1 : -1;
    const head = 5 + width / 2;
    return svg(
        "g",
        { class: amount > 0 ? `flow ${way}` : "flow none" },
        svg("text", { x: x + GAP / 2, y: y - 16, "text-anchor": "middle" }, `${label} ${amountText(amount, unit)}`),
        svg("line", { x1: from, y1: y, x2: to + tip * head, y2: y, "stroke-width": width }),
        svg("path", { d: `M${to},${y} l${tip * head * 1.3},${-head} v${2 * head} z` }),
    );
}

const PREFIXES = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
];

// Bytes, or a count that fits above an arrow.
function amountText(amount, unit) {
    const [size, prefix] = PREFIXES.find(([least]) => amount >= least) ?? [1, ""];
    if (unit === "byte" || amount === null || size === 1) return human(amount, unit === "byte" ? unit : "");
    const by = prefix === "k" ? 1e3 : size;
    return `${human(amount / by)} ${prefix}`;
}

function boxView({ name, top, bottom }, run, launch) {
    const [column, metric, note] = BOXES[name];
    const x = column * (BOX + GAP);
    const middle = (top + bottom) / 2;
    const value = metric && run.value(launch, metric);
    const below = metric ? (value === null ? "n/a" : `${human(value, "%")} ${note}`) : null;
    const line = (y, kind, text) => svg("text", { x: x + BOX / 2, y, "text-anchor": "middle", class: kind }, text);
    return svg(
        "g",
        { class: "box" },
        svg("rect", { x: x + 1, y: top + 1, width: BOX - 2, height: bottom - top - 2, rx: 8 }),
        line(middle + (below ? -6 : 5), "title", name),
        below && line(middle + 16, null, below),
    );
}

function table(links) {
    return h(
        "details",
        {},
        h("summary", {}, "The chart as a table"),
        plainTable(
            "Memory traffic",
            ["Between", "Kind", "Amount"],
            links.flatMap((link) =>
                link.flows.map(({ label, amount, unit }) => [
                    `${link.from} and ${link.to}`,
                    label,
                    human(amount, unit),
                ]),
            ),
        ),
    );
}

export function memoryChart(run, launch) {
    const links = linksOf(run, launch);
    const flows = links.flatMap((link) => link.flows);
    if (flows.every((flow) => flow.amount === null)) return null;
    const mostOf = (unit) => Math.max(...flows.filter((flow) => flow.unit === unit).map((flow) => flow.amount ?? 0));
    const most = { byte: mostOf("byte"), wavefront: mostOf("wavefront") };
    const { boxes, height } = layOut(links);
    const title = `Memory traffic of launch ${launch.id}; the table below has the same numbers`;
    return h(
        "figure",
        { class: "memory" },
        h(
            "figcaption",
            {},
            "Memory chart: bytes that move between the units",
            links.some((link) => link.to === "Shared memory") && "; of shared memory, wavefronts",
        ),
        scrolling(
            "Memory chart",
            svg(
                "svg",
                { viewBox: `0 0 ${4 * BOX + 3 * GAP} ${height}`, role: "img", "aria-label": title },
                boxes.map((box) => boxView(box, run, launch)),
                links.flatMap((link) =>
                    link.flows.map((flow, i) => {
                        const x = BOX + (BOXES[link.to][0] - 1) * (BOX + GAP);
                        return arrow(flow, x, link.top + i * ROW + ROW / 2 + 8, most[flow.unit]);
                    }),
                ),
            ),
        ),
        table(links),
    );
}
