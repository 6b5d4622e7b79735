// The kernels of a report and the launches of each, as tables to sort by.
import { TIME } from "./data.js";
import { h, kernelName, note } from "./dom.js";
import { isRanges, launchLink, launchNumbers, meaningOf, shape } from "./launch.js";
import { bar, helpOf, shownIn, sortedTable } from "./table.js";
import { human } from "./units.js";

const COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
const SHARES = [
    ["Compute", COMPUTE],
    ["Memory", MEMORY],
    ["DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"],
    ["Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"],
];

const share = (value) => bar(value, human(value, "%"));

const saving = (name, pct) => (pct === null ? name : [name, note(`up to ${human(pct, "%")}`)]);
// What is worth most: near its limit a kernel has no large gain, as its sentence tells.
const LITTLE = { yes: "no large gain", "as measured": "no large gain, as measured" };
const worthName = (name, little) => LITTLE[little] ?? name;
const worth = (name, pct, little) =>
    LITTLE[little] || name === null ? (worthName(name, little) ?? "nothing") : saving(name, pct);
// Of a kernel that was not measured nobody knows what is worth most.
const isUnknown = (row) => row.finding_text === null && row.not_measured >= row.launches;

// A column of a number that the summary page has of each kernel, and its name there.
function summaryColumn(key, label, unit, help) {
    const value = ({ row }) => row[key];
    const isShare = unit === "%" && key !== "gain_pct";
    return { key, label, number: true, unit, help, value, ...(isShare && { cell: (group) => share(value(group)) }) };
}

// A column of a line of the verdict: its name, and below that the share that sorts it. The sentence is a tooltip.
function factColumn(key, label, told, help) {
    const value = ({ row }) => row[`${key}_pct`];
    const name = ({ row }) => row[key];
    const said = ({ row }) => row[`${key}_text`] ?? "n/a";
    const share = (group) => value(group) !== null && note(told(human(value(group), "%")));
    const cell = (group) => h("span", { title: said(group) }, name(group) ?? "n/a", share(group));
    return { label, help, value, text: name, cell, sentence: said };
}

// Those that tell something in this report.
function kernelColumns(run) {
    const repeats = run.groups.some(({ row }) => row.launches > 1);
    const columns = [
        summaryColumn(
            "gain_pct",
            "Gain up to",
            "%",
            "what the best finding could save of the time of all kernels, at most",
        ),
        summaryColumn("time_share_pct", "Of time", "%", "share of the time of all kernels"),
        summaryColumn("time", "Time", "ns", `of all its launches: ${TIME}, added up`),
        summaryColumn("launches", isRanges(run.launches) ? "Ranges" : "Launches", ""),
        ...(repeats
            ? [
                  summaryColumn("minimum", "Minimum", "ns", "of the shortest launch"),
                  summaryColumn("median", "Median", "ns", "of one launch"),
                  summaryColumn("maximum", "Maximum", "ns", "of the longest launch"),
              ]
            : []),
        summaryColumn("compute_pct", "Compute", "%", meaningOf(run, run.column(COMPUTE))),
        summaryColumn("memory_pct", "Memory", "%", meaningOf(run, run.column(MEMORY))),
        {
            ...factColumn(
                "limit",
                "Limited by",
                (share) => `busiest unit ${share}`,
                "what limits it, and how much of its peak the busiest unit reaches, whether that is the limit or not",
            ),
            value: ({ row }) => row.limit,
        },
        factColumn(
            "stall",
            "Top stall",
            (share) => `${share} of time`,
            "what its warps wait for most, and its share of their time",
        ),
        factColumn(
            "occupancy",
            "Occupancy limit",
            (share) => `${share} of warps fit`,
            "what keeps the warp slots of an SM from being full, and the share of them that the blocks can fill",
        ),
        {
            label: "Worth most",
            help: "the finding that could save most of the kernel's time, at most",
            value: ({ row }) => row.finding_gain_pct,
            text: ({ row }) => worthName(row.finding, row.little_to_gain),
            cell: ({ row }) =>
                isUnknown(row) ? "n/a" : worth(row.finding, row.finding_gain_pct, row.little_to_gain),
            sentence: ({ row }) => row.finding_text ?? (isUnknown(row) ? "n/a" : "nothing was found"),
        },
    ];
    return columns.filter(({ value, text = value }) => run.groups.some((group) => text(group) !== null));
}

export function kernelTable(run) {
    const hasRanges = isRanges(run.launches);
    const devices = new Set(run.groups.map((group) => group.device.name));
    const columns = [
        {
            label: hasRanges ? "Range" : "Kernel",
            header: true,
            value: (group) => group.kernel.name,
            cell: (group) => [kernelName(group.kernel.name, group.link), group.row.note && note(group.row.note)],
        },
        ...(devices.size > 1 ? [{ label: "Device", value: (group) => group.device.name }] : []),
        ...kernelColumns(run),
    ];
    const gain = columns.findIndex((column) => column.key === "gain_pct");
    return sortedTable({
        caption: hasRanges ? "Ranges" : "Kernels",
        columns,
        rows: run.groups,
        sort: gain > 0 ? [gain, -1] : null,
        filter: true,
        cards: true,
    });
}

// The row of one kernel; its sentences take a line each. The verdict on its only launch has them too.
export function kernelFacts(run, group) {
    const columns = kernelColumns(run).filter(({ sentence }) => !sentence || group.launches.length > 1);
    const fact = (label, value, isLong) =>
        h("div", { class: isLong && "long" }, h("dt", {}, label), h("dd", {}, value));
    return [
        h(
            "dl",
            { class: "stats" },
            columns.map(({ sentence, ...column }) =>
                fact(column.label, sentence ? sentence(group) : shownIn(column, group), Boolean(sentence)),
            ),
            group.row.note && fact("Note", group.row.note, true),
        ),
        helpOf(columns),
    ];
}

const lineOf = (launch, key) => launch.verdict.find((line) => line.key === key);
const limitOf = (launch) => lineOf(launch, "limit")?.name ?? null;

// The finding that is worth most, by its name and gain.
function bestOf(run, launch) {
    const best = lineOf(launch, "finding");
    const rule = best && run.rules.find((other) => other.id === best.name);
    return { name: rule?.name ?? null, pct: rule ? best.pct : null, little: best?.little };
}

function verdictColumns(run) {
    if (!run.launches.some((launch) => launch.verdict.length)) return [];
    return [
        { label: "Limited by", help: "what the launch is limited by", value: limitOf },
        {
            label: "Worth most",
            help: "the finding that could save most of the launch's time, at most",
            value: (launch) => bestOf(run, launch).pct,
            text: (launch) => worthName(bestOf(run, launch).name, bestOf(run, launch).little),
            cell: (launch) => {
                const { name, pct, little } = bestOf(run, launch);
                if (launch.missing && name === null) return "n/a";
                return worth(name, pct, little);
            },
        },
    ];
}

function shareColumns(run) {
    return SHARES.filter(([, metric]) => run.has(metric)).map(([label, metric]) => {
        const value = (launch) => run.value(launch, metric);
        const help = meaningOf(run, run.column(metric));
        return { label, number: true, unit: "%", help, value, cell: (launch) => share(value(launch)) };
    });
}

// Why the row of a launch is not one launch's values.
function launchNote({ missing, multiplexed }) {
    if (missing) return "not measured";
    if (!multiplexed) return null;
    const { launches, used } = multiplexed;
    return `${launches} multiplexed, ${used ? `${used} sample${used === 1 ? "" : "s"}` : "no whole sample"}`;
}

const processName = ({ process }) => `${process.id} on ${process.host}`;

export function launchTable(run, launches) {
    const [one, many] = isRanges(launches) ? ["Range", "Ranges"] : ["Launch", "Launches"];
    const time = (launch) => run.value(launch, TIME);
    const kernels = new Set(launches.map((launch) => launch.kernel));
    const columns = [
        {
            label: one,
            number: true,
            header: true,
            value: (launch) => launch.id,
            text: (launch) => [launchNumbers(launch), launchNote(launch)].join(" "),
            cell: (launch) => [
                kernelName(launchNumbers(launch), launchLink(launch)),
                launchNote(launch) && note(launchNote(launch)),
            ],
        },
        ...(kernels.size > 1
            ? [
                  {
                      label: isRanges(launches) ? "Name" : "Kernel",
                      value: (launch) => launch.kernel.name,
                      cell: (launch) => kernelName(launch.kernel.name, launchLink(launch)),
                  },
              ]
            : []),
        ...(new Set(launches.map(processName)).size > 1 ? [{ label: "Process", value: processName }] : []),
        { label: "Grid", value: (launch) => shape(launch.grid) },
        { label: "Block", value: (launch) => shape(launch.block) },
        ...(run.has(TIME)
            ? [{ label: "Time", number: true, unit: "ns", help: meaningOf(run, run.column(TIME)), value: time }]
            : []),
        ...shareColumns(run),
        ...verdictColumns(run),
    ];
    return sortedTable({ caption: many, columns, rows: launches, sort: [0, 1] });
}

// The launch in the middle by duration, and why it is the one; the shorter of two.
export function medianLaunch(run, launches) {
    const time = (launch) => run.value(launch, TIME);
    const timed = launches.filter((launch) => time(launch) !== null).sort((a, b) => time(a) - time(b));
    const why = timed.length > 1 ? "the median by duration" : "the only one with a duration";
    if (timed.length) return [timed[Math.floor((timed.length - 1) / 2)], why];
    return [launches.find((launch) => !launch.missing) ?? launches[0], "the first"];
}
