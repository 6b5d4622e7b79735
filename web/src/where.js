// Where the time of a program goes, and why: the kernels of its trace, joined to what was measured of them.
import { TABLES_OF_TRACE } from "./data.js";
import { h, kernelName, note } from "./dom.js";
import { shape } from "./launch.js";
import { listView } from "./lists.js";
import { bar, sortedTable } from "./table.js";
import { human } from "./units.js";

const tableOf = (report, key) => report.tables.find((list) => list.key === key);

// The timeline has the lines that text has beside counters.
const withoutLines = (list) => ({
    ...list,
    records: list.records.map((record) => ({
        ...record,
        fields: record.fields.filter(({ key }) => key !== "Over Time"),
    })),
});

const timelineLink = (row) => `#timeline/${row.index}`;
const gain = ({ finding, gain: pct }) =>
    pct === null ? (finding ?? "n/a") : [finding, note(`up to ${human(pct, "%")} of all time`)];

// Ways from a kernel: to its counters, its source, and its launches in the timeline.
function ways(report, row) {
    const links = [
        row.link && h("a", { href: row.link }, "counters"),
        row.code && h("a", { href: `#source-${row.code.id}` }, "source"),
        report.program && h("a", { href: timelineLink(row) }, "timeline"),
    ].filter(Boolean);
    return links.map((link, i) => (i ? [" ", link] : link));
}

function kernelColumn() {
    const shapes = ({ grid, block }) => `${shape(grid)}x${shape(block)}`;
    return {
        label: "Kernel",
        header: true,
        value: ({ name }) => name,
        text: (row) => `${row.name} ${shapes(row)}`,
        cell: (row) => [kernelName(row.name, row.link), note(shapes(row))],
    };
}

function kernels(report) {
    const { traced } = report;
    const isCounted = traced.some(({ counted }) => counted > 0);
    const number = (key, label, unit, help) => ({ label, help, value: (row) => row[key], number: true, unit });
    const limit = {
        label: "Limited by",
        help: "what limits the launches that were measured, and how much of its peak the busiest unit reaches",
        value: (row) => row.limit,
        cell: (row) => [
            row.limit ?? "n/a",
            row.limitPct !== null && note(`busiest unit ${human(row.limitPct, "%")}`),
        ],
    };
    const worth = {
        label: "Worth most",
        help: "the finding that could save most, and how much of the time of all kernels, at most",
        value: (row) => row.gain,
        text: (row) => row.finding,
        cell: gain,
    };
    const columns = [
        kernelColumn(),
        {
            ...number("share", "Of time", "%", "share of the time of all kernels in the trace"),
            cell: (row) => bar(row.share, human(row.share, "%")),
        },
        number("time", "Time", "ns", "of all its launches in the trace"),
        number("launches", "Launches", "", "in the trace"),
        number("median", "Median", "ns", "of one launch in the trace"),
        ...(isCounted
            ? [
                  number("counted", "Counted", "", "launches that were measured"),
                  number("countedMedian", "Median counted", "ns", "of one launch that was measured"),
                  limit,
                  worth,
              ]
            : []),
        { label: "See", value: () => null, cell: (row) => ways(report, row) },
    ];
    return sortedTable({
        caption: "Kernels of the trace",
        columns,
        rows: traced,
        sort: [2, -1],
        filter: true,
        cards: true,
    });
}

// The line that measures kernels that have no counters yet.
function command(report) {
    const [record] = tableOf(report, "count_command")?.records ?? [];
    return (
        record && [
            h("p", {}, "Kernels that take much of the time have no counters yet. This measures them:"),
            h("p", {}, h("code", { id: "count-command" }, record.fields[0].value)),
        ]
    );
}

// Sections of the overview; nothing where the report has no trace.
export function whereViews(report) {
    if (!report.tables.length) return [];
    return [
        h(
            "section",
            { id: "where" },
            h("h2", {}, "Where the time goes"),
            report.program && h("p", {}, h("a", { href: "#timeline" }, "Timeline")),
            report.program?.missing.map((text) => h("p", {}, text)),
            report.traced.length > 0 ? kernels(report) : h("p", {}, "The trace has no kernel whose time is known."),
            command(report),
        ),
        TABLES_OF_TRACE.map((key) => tableOf(report, key))
            .filter((list) => list?.records.length)
            .map((list) => listView(withoutLines(list), "Overview")),
    ];
}

// What the trace tells of a kernel that was measured; nothing where it has none of that name.
export function tracedFacts(report, kernel) {
    const rows = report.traced.filter(({ name }) => name === kernel.demangled);
    if (!rows.length) return null;
    return h(
        "section",
        { id: "traced" },
        h("h2", {}, "In the trace"),
        rows.map((row) =>
            h(
                "p",
                {},
                `${human(row.share, "%")} of the time of all kernels: ` +
                    `${row.launches.toLocaleString("en-US")} launches of ${shape(row.grid)}x${shape(row.block)}, ` +
                    `${human(row.time, "ns")}, median ${human(row.median, "ns")}`,
                row.counted > 0 ? "" : " (not measured)",
                [" ", ways(report, { ...row, link: null })],
            ),
        ),
    );
}
