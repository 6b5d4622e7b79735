// The overview: the tables of kernels and launches, and the roofline of all.
import { recall, remember } from "./choices.js";
import { fieldOf, total } from "./data.js";
import { h, part } from "./dom.js";
import { kernelTable, launchTable } from "./kernels.js";
import { isRanges, launchLink, launchTitle } from "./launch.js";
import { listView } from "./lists.js";
import { rooflineChart, rooflineChoices, rooflinesOf } from "./roofline.js";
import { human } from "./units.js";
import { whereViews } from "./where.js";

// A choice between two views of the same.
function tabs(label, views) {
    const key = `tabs ${label}`;
    const first = Math.max(
        0,
        views.findIndex(([title]) => title === recall(key)),
    );
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
                    remember(key, title);
                },
            },
            title,
        ),
    );
    place.replaceChildren(views[first][1]() ?? "");
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === first)));
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
        link: group.link,
        launches: group.launches,
    }));
const ofLaunches = (run) =>
    run.launches.map((launch) => ({
        name: `${launch.kernel.name}, ${launchTitle(launch).toLowerCase()}`,
        link: launchLink(launch),
        launches: [launch],
    }));

const counted = (count, one) =>
    `${count.toLocaleString("en-US")} ${one}${count === 1 ? "" : one.endsWith("h") ? "es" : "s"}`;

// Each row of a kernel with samples tells of all launches of the kernel that no row counts.
function notCounted(run) {
    const byKernel = new Map(run.groups.map(({ kernel }) => [kernel.same, 0]));
    run.groups.forEach(({ kernel, row }) =>
        byKernel.set(kernel.same, Math.max(byKernel.get(kernel.same), row.not_counted)),
    );
    return total([...byKernel.values()]);
}

function commandLine(report) {
    const line = fieldOf(report, "run", "command_line") ?? "";
    return h("p", { class: "lead" }, h("code", { title: line }, line));
}

const MOST_REASONS = 3;

// Why launches have no values, the most frequent reasons.
function notMeasured(run) {
    const reasons = new Map();
    for (const { missing, reason } of run.launches) if (missing) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    const sorted = [...reasons].sort((a, b) => b[1] - a[1]);
    const one = isRanges(run.launches) ? "range" : "launch";
    const line = ([reason, count]) => h("p", {}, `${counted(count, one)} not measured: ${reason ?? "not known why"}`);
    return [
        sorted.slice(0, MOST_REASONS).map(line),
        sorted.length > MOST_REASONS && h("p", {}, `${sorted.length - MOST_REASONS} more reasons: see the launches`),
    ];
}

function counts(run, launches, names) {
    if (!isRanges(run.launches)) return `${counted(launches, "launch")} of ${counted(names, "kernel")}`;
    const inside = counted(total(run.launches.map(({ inRange }) => inRange)), "launch");
    return `${counted(launches, "range")} of ${counted(names, "name")}, with ${inside},`;
}

// What was measured, when and where, in two lines.
function lead(report) {
    const { run } = report;
    const devices = [...new Set(run.launches.map((launch) => launch.device.name))];
    const kernels = new Set(run.groups.map((group) => group.kernel.same)); // one may have several rows
    const more = notCounted(run);
    const time = total(run.groups.map((group) => group.row.time));
    const launches = total(run.groups.map((group) => group.row.launches));
    return [
        commandLine(report),
        h(
            "p",
            {},
            `${counts(run, launches, kernels.size)} on ${devices.join(", ")}` +
                (time > 0 ? `, ${human(time, "ns")} on the GPU` : "") +
                (more > 0 ? `; ${counted(more, "more launch")} not counted` : "") +
                `. Started ${fieldOf(report, "run", "start") ?? "at an unknown time"}.`,
        ),
        notMeasured(run),
    ];
}

// A census and a trace measure no launch, and tell of all.
function ofOthers(report) {
    return [
        h("h1", {}, "Overview"),
        commandLine(report),
        !report.tables.length && h("p", {}, "No launch was measured: kprof --census --top N measures kernels, too."),
        whereViews(report),
        report.lists.filter((list) => list.key.startsWith("census")).map((list) => listView(list, "Overview")),
    ];
}

export function overview(report) {
    const { run } = report;
    if (run.launches.length === 0) return ofOthers(report);
    const hasRanges = isRanges(run.launches);
    const charts = roofline(run, ofKernels(run));
    const links = new Map(run.groups.map((group) => [group.kernel.name, group.link]));
    return [
        h("h1", {}, "Overview"),
        lead(report),
        whereViews(report),
        part(
            hasRanges ? "Ranges" : "Kernels and launches",
            tabs("Rows of the table", [
                [hasRanges ? "By name" : "By kernel", () => kernelTable(run)],
                [hasRanges ? "One by one" : "By launch", () => launchTable(run, run.launches)],
            ]),
        ),
        report.sources.map((list) => listView(list, "Overview", links)),
        charts &&
            part(
                "Roofline",
                tabs("Points of the roofline", [
                    [`A point per ${hasRanges ? "name" : "kernel"}`, () => roofline(run, ofKernels(run))],
                    [`A point per ${hasRanges ? "range" : "launch"}`, () => roofline(run, ofLaunches(run))],
                ]),
            ),
    ];
}
