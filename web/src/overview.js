// The overview: the roofline of all kernels, and tables of kernels and launches.
import { fieldOf, mean, total } from "./data.js";
import { h } from "./dom.js";
import { kernelLink, launchLink, shape } from "./launch.js";
import { rooflineChart, rooflineChoices, rooflinesOf } from "./roofline.js";
import { bar, sortedTable } from "./table.js";
import { human } from "./units.js";

const TIME = "gpu__time_duration.sum";
const SHARES = [
    ["Compute", "sm__throughput.avg.pct_of_peak_sustained_elapsed"],
    ["Memory", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"],
    ["DRAM", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"],
    ["Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"],
];

const timeOf = (run, launches) => total(launches.map((launch) => run.value(launch, TIME)));
const name = (text, link) => h("a", { href: link, class: "name" }, text);
const limitOf = (launch) => launch.verdict.find((line) => line.key === "limit")?.name ?? null;

// What most of the time of some launches is limited by.
function commonLimit(run, launches) {
    const times = new Map();
    for (const launch of launches) {
        const limit = limitOf(launch);
        if (limit) times.set(limit, (times.get(limit) ?? 0) + (run.value(launch, TIME) ?? 1));
    }
    return [...times].sort((a, b) => b[1] - a[1])[0]?.[0] ?? null;
}

function bestFinding(launches) {
    const all = launches
        .flatMap((launch) => launch.findings)
        .filter((found) => found.gain !== null && found.rule.scope === "global");
    const best = all.sort((a, b) => b.gain - a.gain)[0];
    return best ? { name: best.rule.name, gain: best.gain } : null;
}

function shareColumns(run, launchesOf) {
    return SHARES.filter(([, metric]) => run.has(metric)).map(([label, metric]) => {
        const value = (row) => mean(launchesOf(row).map((launch) => run.value(launch, metric)));
        return { label, number: true, help: metric, value, cell: (row) => bar(value(row), human(value(row), "%")) };
    });
}

function numberColumn(label, value, unit, help) {
    return { label, number: true, help, value, cell: (row) => human(value(row), unit) };
}

function verdictColumns(run, launchesOf) {
    const worth = (row) => bestFinding(launchesOf(row));
    const limit = (row) => commonLimit(run, launchesOf(row));
    if (!run.launches.some((launch) => launch.verdict.length)) return [];
    return [
        {
            label: "Limited by",
            help: "what limits most of the time",
            value: limit,
            cell: (row) => limit(row) ?? "n/a",
        },
        {
            label: "Worth most",
            help: "the finding that could save most of the time, at most",
            value: (row) => worth(row)?.gain ?? null,
            cell: (row) => {
                const best = worth(row);
                return best ? `${best.name}: ${human(best.gain, "%")}` : "";
            },
        },
    ];
}

function kernelTable(run) {
    const all = timeOf(run, run.launches);
    const launchesOf = (group) => group.launches;
    const time = (group) => timeOf(run, group.launches);
    const repeats = run.groups.some((group) => group.launches.length > 1);
    const columns = [
        {
            label: "Kernel",
            header: true,
            value: (group) => group.kernel.name,
            cell: (group) => name(group.kernel.name, kernelLink(group.kernel)),
        },
        numberColumn("Launches", (group) => group.launches.length, ""),
        ...(all > 0
            ? [
                  numberColumn("Time", time, "ns", `${TIME}, added up`),
                  {
                      label: "Share",
                      number: true,
                      value: time,
                      cell: (group) => bar((100 * time(group)) / all, human((100 * time(group)) / all, "%")),
                  },
                  repeats &&
                      numberColumn(
                          "Mean",
                          (group) => mean(group.launches.map((launch) => run.value(launch, TIME))),
                          "ns",
                          `${TIME}, mean`,
                      ),
              ].filter(Boolean)
            : []),
        ...shareColumns(run, launchesOf),
        ...verdictColumns(run, launchesOf),
    ];
    return sortedTable({
        caption: "Kernels",
        columns,
        rows: run.groups,
        sort: all > 0 ? [2, -1] : null,
        filter: true,
    });
}

export function launchTable(run, launches, caption = "Launches") {
    const launchesOf = (launch) => [launch];
    const columns = [
        {
            label: "Launch",
            number: true,
            header: true,
            value: (launch) => launch.id,
            cell: (launch) => name(launch.id, launchLink(launch)),
        },
        {
            label: "Kernel",
            value: (launch) => launch.kernel.name,
            cell: (launch) => name(launch.kernel.name, launchLink(launch)),
        },
        { label: "Grid", value: (launch) => shape(launch.grid), cell: (launch) => shape(launch.grid) ?? "n/a" },
        { label: "Block", value: (launch) => shape(launch.block), cell: (launch) => shape(launch.block) ?? "n/a" },
        ...(run.has(TIME) ? [numberColumn("Time", (launch) => run.value(launch, TIME), "ns", TIME)] : []),
        ...shareColumns(run, launchesOf),
        ...verdictColumns(run, launchesOf),
    ];
    return sortedTable({ caption, columns, rows: launches, sort: [0, 1], filter: launches.length > 10 });
}

// A choice between two views of the same.
function tabs(label, views) {
    const place = h("div");
    const buttons = views.map(([title, make]) =>
        h(
            "button",
            {
                type: "button",
                onclick: (event) => {
                    buttons.forEach((button) =>
                        button.setAttribute("aria-pressed", String(button === event.currentTarget)),
                    );
                    place.replaceChildren(make() ?? "");
                },
            },
            title,
        ),
    );
    place.replaceChildren(views[0][1]() ?? "");
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === 0)));
    return h("div", {}, h("div", { class: "tabs", role: "group", "aria-label": label }, buttons), place);
}

function roofline(run, subjects) {
    const known = new Map();
    run.launches.forEach((launch) =>
        rooflinesOf(launch.sections).forEach((line) => known.set(`${line.id} ${line.work}`, line)),
    );
    const choices = rooflineChoices(run, [...known.values()], subjects);
    // The one that is used best comes first.
    const use = (choice) => total(choice.points.map((point) => point.pct));
    return rooflineChart(choices.sort((a, b) => use(b) - use(a)));
}

const ofKernels = (run) =>
    run.groups.map((group) => ({
        name: group.kernel.name,
        link: kernelLink(group.kernel),
        launches: group.launches,
    }));
const ofLaunches = (run) =>
    run.launches.map((launch) => ({
        name: `${launch.kernel.name}, launch ${launch.id}`,
        link: launchLink(launch),
        launches: [launch],
    }));

export function overview(report) {
    const { run } = report;
    const devices = [...new Set(run.launches.map((launch) => launch.device.name))];
    const all = timeOf(run, run.launches);
    const charts = roofline(run, ofKernels(run));
    return [
        h("h1", {}, "Overview"),
        h("p", { class: "lead" }, h("code", {}, fieldOf(report, "run", "command_line") ?? "")),
        h(
            "p",
            {},
            `${run.launches.length} launches of ${run.groups.length} kernels on ${devices.join(", ")}` +
                (all > 0 ? `, ${human(all, "ns")} on the GPU` : "") +
                `. Started ${fieldOf(report, "run", "start") ?? "at an unknown time"}.`,
        ),
        charts &&
            h(
                "section",
                {},
                h("h2", {}, "Roofline"),
                tabs("Points of the roofline", [
                    ["A point per kernel", () => roofline(run, ofKernels(run))],
                    ["A point per launch", () => roofline(run, ofLaunches(run))],
                ]),
            ),
        h(
            "section",
            {},
            h("h2", {}, "Kernels and launches"),
            tabs("Rows of the table", [
                ["By kernel", () => kernelTable(run)],
                ["By launch", () => launchTable(run, run.launches)],
            ]),
        ),
    ];
}
