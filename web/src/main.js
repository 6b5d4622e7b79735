// Shows the view that the fragment of the address names: #overview, #kernel-N, #launch-N, #run, #timeline and a
// kernel of the trace, #stacks and a stack, #source, #source-N and its rows, and a section of a launch:
// #launch-N/SECTION. In a comparison #/PLACE is what changed of a kernel.
import { redrawCharts } from "./charts.js";
import { enter } from "./choices.js";
import { readReport, total } from "./data.js";
import { h, kernelHeading, part } from "./dom.js";
import { revealStack, stacksView } from "./flame.js";
import { isRanges, launchLink, launchTitle, launchView } from "./launch.js";
import { linksOf, listView } from "./lists.js";
import { kernelFacts, launchTable, medianLaunch } from "./kernels.js";
import { overview } from "./overview.js";
import { programView, redrawPrograms, revealOnTimeline } from "./program.js";
import { revealRow, sourceList, sourceView } from "./source.js";
import { tracedFacts } from "./where.js";

function redraw() {
    redrawCharts();
    redrawPrograms();
}

const content = document.getElementById("content");
const titleOf = () => `${content.querySelector("h1").textContent} - kprof`;
const TITLES = { diff: "Comparison" };

// Links to what stands before and after it.
function steps(items, current, link, label, more) {
    const at = items.indexOf(current);
    const step = (item, sign) => item && h("a", { href: link(item) }, sign(label(item)));
    return h(
        "p",
        { class: "steps" },
        step(items[at - 1], (text) => `\u2190 ${text}`),
        more,
        step(items[at + 1], (text) => `${text} \u2192`),
    );
}

function kernelView(report, fragment) {
    const { run } = report;
    const group = run.groups.find((other) => other.link === `#${fragment}`);
    if (!group?.launches.length) return missing();
    const [launch, why] = medianLaunch(run, group.launches);
    const count = total(group.launches.map(({ multiplexed }) => multiplexed?.launches ?? 1));
    return [
        kernelHeading(group.kernel.name),
        run.groups.length > 1 &&
            steps(
                run.groups,
                group,
                (other) => other.link,
                (other) => `${isRanges(other.launches) ? "Range" : "Kernel"} ${run.groups.indexOf(other) + 1}`,
                h("span", {}, `${run.groups.indexOf(group) + 1} of ${run.groups.length} by gain`),
            ),
        kernelFacts(run, group),
        tracedFacts(report, group.kernel),
        group.launches.length > 1 &&
            part(
                `${count.toLocaleString("en-US")} ${isRanges(group.launches) ? "ranges" : "launches"}`,
                launchTable(run, group.launches),
            ),
        part(
            `${launchTitle(launch)}${group.launches.length > 1 ? `, ${why}` : ""}`,
            launchView(run, launch, group.link),
        ),
    ];
}

function singleView(report, id) {
    const launch = report.run.launches.find((other) => other.id === id);
    if (!launch) return missing();
    return [
        kernelHeading(launch.kernel.name),
        steps(
            report.run.launches,
            launch,
            launchLink,
            launchTitle,
            h(
                "a",
                { href: launch.group?.link },
                isRanges([launch]) ? "All ranges of this name" : "All launches of this kernel",
            ),
        ),
        part(launchTitle(launch), launchView(report.run, launch, launchLink(launch))),
    ];
}

function codeView(report, id) {
    const code = report.codes.find((other) => other.id === id);
    return code
        ? sourceView(
              code,
              report.run.launches.find((launch) => launch.code === code),
          )
        : missing();
}

function missing() {
    return [h("h1", {}, "Not in this report"), h("p", {}, h("a", { href: "#overview" }, "Overview"))];
}

function listsView(report) {
    const title = TITLES[report.page] ?? "About the run";
    const links = linksOf(report.lists);
    return [h("h1", {}, title), report.lists.map((list) => listView(list, title, links))];
}

function viewOf(report, fragment) {
    if (report.program && (!report.run || fragment === "timeline")) return programView(report);
    if (!report.run || fragment === "run") return listsView(report);
    if (/^kernel-[\d-]+$/.test(fragment)) return kernelView(report, fragment);
    if (fragment === "stacks" && report.stacks.length) return stacksView(report);
    if (fragment === "source") return [h("h1", {}, "Source"), sourceList(report.codes)];
    const [, code] = /^source-(\d+)$/.exec(fragment) ?? [];
    if (code) return codeView(report, Number(code));
    const [, id] = /^launch-(\d+)$/.exec(fragment) ?? [];
    return id ? singleView(report, Number(id)) : overview(report);
}

const MOST_KEPT = 10; // views
let shown = null;
let entry = 0; // of the browser's history, that is shown
let top = 0; // how far the reader has scrolled
const kept = new Map(); // what the reader left, by its entry

function keep() {
    kept.delete(entry);
    kept.set(entry, { view: shown, nodes: [...content.childNodes], top, focus: document.activeElement });
    if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
}

// On the way back, show a view as the reader left it: tables keep their order, filter and page. False: it is not kept.
function restore(view) {
    const { nodes, ...left } = kept.get(entry) ?? {};
    if (left.view !== view) return false;
    content.replaceChildren(...nodes);
    left.focus.focus({ preventScroll: true });
    scrollTo(0, left.top);
    return true;
}

// Number the entries of the history in their order. A link makes one without a number, in place of all behind it.
function arrive(isSameView) {
    const found = enter(shown === null ? 0 : entry + 1, isSameView);
    if (found.isNew) kept.delete(found.entry);
    entry = found.entry;
}

// The parts of the fragment, which anybody may have typed.
function address() {
    try {
        return decodeURIComponent(location.hash.slice(1)).split("/");
    } catch {
        return [""];
    }
}

// Go to a view, and within it to a section. Without `quiet`, what reads the screen starts at the new view.
function go(report, quiet) {
    const [view, section] = address();
    if (shown !== null && view !== shown) keep();
    arrive(view === shown);
    if (view !== shown && restore(view)) {
        shown = view;
        document.title = titleOf();
        return redraw();
    }
    if (view !== shown) {
        content.replaceChildren(...viewOf(report, view).flat(Infinity).filter(Boolean));
        document.title = titleOf();
        shown = view;
        redraw();
        if (!section) window.scrollTo(0, 0);
        if (!section && !quiet) content.focus({ preventScroll: true });
    }
    if (/^source-/.test(view) && section) revealRow(section);
    if (view === "stacks" && section) revealStack(section);
    if (view === "timeline" && report.traced[section]) revealOnTimeline(report.traced[section].name);
    const place = section && document.getElementById(`section-${section}`);
    if (place) {
        const isFolded = place.tagName === "DETAILS";
        if (isFolded) place.open = true;
        place.scrollIntoView();
        (isFolded ? place.firstElementChild : place).focus({ preventScroll: true });
    }
}

// On paper, what a click opens is open: the tables of charts, and what a comparison found.
function openForPrint(isPrint) {
    for (const details of content.querySelectorAll("details:not(.help, .what-if *)")) {
        if (isPrint && !details.open) details.dataset.opened = "";
        if (isPrint || "opened" in details.dataset) details.open = isPrint;
        if (!isPrint) delete details.dataset.opened;
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
            .replaceChildren(
                h("a", { href: "#overview" }, "Overview"),
                ...(report.program ? [h("a", { href: "#timeline" }, "Timeline")] : []),
                ...(report.stacks.length ? [h("a", { href: "#stacks" }, "Call stacks")] : []),
                ...(report.codes.length ? [h("a", { href: "#source" }, "Source")] : []),
                h("a", { href: "#run" }, "Run"),
            );
    }
    document.querySelector(".skip").addEventListener("click", (event) => {
        event.preventDefault();
        content.focus();
    });
    addEventListener("hashchange", () => go(report, false));
    addEventListener("scroll", () => (top = scrollY));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    matchMedia("print").addEventListener("change", (event) => {
        openForPrint(event.matches);
        redraw();
    });
    go(report, true);
}

start();
