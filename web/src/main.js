// Shows the view that the fragment of the address names: #overview, #kernel-N, #launch-N, #launch-N/SECTION, #run.
import { readReport } from "./data.js";
import { h } from "./dom.js";
import { kernelLink, launchView } from "./launch.js";
import { listView } from "./lists.js";
import { launchTable, overview } from "./overview.js";
import { redrawCharts } from "./roofline.js";

const content = document.getElementById("content");
const TITLES = { diff: "Comparison" };

function kernelView(report, index) {
    const { run } = report;
    const group = run.groups.find((other) => other.kernel.index === index);
    if (!group) return missing();
    const first = group.launches.find((launch) => !launch.missing) ?? group.launches[0];
    return [
        h("h1", { class: "kernel" }, group.kernel.name),
        group.launches.length > 1 &&
            h(
                "section",
                {},
                h("h2", {}, `${group.launches.length} launches`),
                launchTable(run, group.launches, "Launches of this kernel"),
            ),
        h("section", {}, h("h2", {}, `Launch ${first.id}`), launchView(run, first)),
    ];
}

function singleView(report, id) {
    const launch = report.run.launches.find((other) => other.id === id);
    if (!launch) return missing();
    return [
        h("h1", { class: "kernel" }, launch.kernel.name),
        h("p", {}, h("a", { href: kernelLink(launch.kernel) }, "All launches of this kernel")),
        h("section", {}, h("h2", {}, `Launch ${launch.id}`), launchView(report.run, launch)),
    ];
}

function missing() {
    return [h("h1", {}, "Not in this report"), h("p", {}, h("a", { href: "#overview" }, "Overview"))];
}

function listsView(report) {
    return [h("h1", {}, TITLES[report.page] ?? "About the run"), report.lists.map(listView)];
}

function viewOf(report, fragment) {
    const [, kind, number] = /^(kernel|launch)-(\d+)/.exec(fragment) ?? [];
    if (!report.run || fragment === "run") return listsView(report);
    if (kind === "kernel") return kernelView(report, Number(number));
    return kind === "launch" ? singleView(report, Number(number)) : overview(report);
}

let shown = null;

// Go to a view, and within it to a section. Without `quiet`, what reads the screen starts at the new view.
function go(report, quiet) {
    const [view, section] = decodeURIComponent(location.hash.slice(1)).split("/");
    if (view === "content") return;
    if (view !== shown) {
        content.replaceChildren(...viewOf(report, view).flat(Infinity).filter(Boolean));
        document.title = `${content.querySelector("h1").textContent} - kprof`;
        shown = view;
        redrawCharts();
        if (!section) window.scrollTo(0, 0);
        if (!section && !quiet) content.focus({ preventScroll: true });
    }
    const place = section && document.getElementById(`section-${section}`);
    if (place) {
        place.scrollIntoView();
        place.focus({ preventScroll: true });
    }
}

function start() {
    let report;
    try {
        report = readReport(document.getElementById("data").textContent);
    } catch (error) {
        content.replaceChildren(
            h("h1", {}, "This report is damaged"),
            h("p", {}, "The file is not whole. Write it again with kprof."),
        );
        return;
    }
    if (report.run) {
        document
            .getElementById("nav")
            .replaceChildren(h("a", { href: "#overview" }, "Overview"), h("a", { href: "#run" }, "Run"));
    }
    addEventListener("hashchange", () => go(report, false));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
    matchMedia("print").addEventListener("change", redrawCharts);
    go(report, true);
}

start();
