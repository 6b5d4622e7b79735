// One launch: its verdict, what was found and its sections, as kprof's text has them.
import { h, meanings } from "./dom.js";
import { framesOf, stackLink } from "./flame.js";
import { memoryChart } from "./memory.js";
import { rooflineChart, rooflineChoices } from "./roofline.js";
import { placeLinks, rowAt, sourceLink } from "./source.js";
import { bar, plainTable } from "./table.js";
import { timelineView } from "./timeline.js";
import { human } from "./units.js";
import { whatIfView } from "./whatif.js";

export const shape = (sizes) => (sizes ? `(${sizes.join(", ")})` : null);
export const launchLink = (launch) => `#launch-${launch.id}`;
// "3", or "3 to 104" of launches that are shown as one.
export const launchNumbers = ({ id, multiplexed }) =>
    multiplexed?.launches > 1 ? `${id} to ${multiplexed.last}` : String(id);
// Ranges of the program may be measured in place of launches.
export const isRanges = (launches) => launches.length > 0 && launches.every(({ inRange }) => inRange !== null);
export const launchTitle = (launch) => {
    const [one, many] = launch.inRange ? ["Range", "Ranges"] : ["Launch", "Launches"];
    return `${launch.multiplexed?.launches > 1 ? many : one} ${launchNumbers(launch)}`;
};

// How far samples spread around their median: in percent of it, or in its unit where it is 0.
function spreadOf(run, launch, column) {
    const { samples, mad } = launch.spreads.get(column) ?? { samples: 0, mad: null };
    if (samples < 2 || mad === null) return null;
    const value = launch.values[column];
    return value ? human((100 * mad) / Math.abs(value), "%") : human(mad, run.metric(column).unit);
}

function figure(run, launch, column) {
    if (column === null) return "";
    const { unit } = run.metric(column);
    const value = launch.values[column];
    const spread = spreadOf(run, launch, column);
    const text = [
        human(value, unit) + (launch.doubtful.has(column) ? " *" : ""),
        spread && h("span", { class: "spread" }, ` ± ${spread}`),
    ];
    return unit === "%" ? bar(value, text) : text;
}

export function meaningOf(run, column) {
    const { name, help, description } = run.metric(column);
    return [help || description, name].filter(Boolean).join("\n");
}

const labelled = (run, column, label) => h("span", { title: meaningOf(run, column) }, label);

// What the section is about, and each of its numbers.
function aboutSection(run, section) {
    const items = section.items.map(({ label, metric }) => [label, metric]);
    const cells = section.tables.flatMap(({ columns, rows }) =>
        rows.flatMap(({ label, cells }) =>
            cells.map((cell, i) => [cells.length > 1 ? `${label}, ${columns[i]}` : label, cell]),
        ),
    );
    const numbers = [...items, ...cells].filter(([, column]) => run.metric(column).name);
    return meanings(
        "About this section",
        numbers.map(([label, column]) => [label, meaningOf(run, column)]),
        section.help && h("p", {}, section.help),
    );
}

function itemTable(run, launch, section) {
    if (section.items.length === 0) return null;
    return plainTable(
        section.name,
        null,
        section.items.map((item) => [labelled(run, item.metric, item.label), figure(run, launch, item.metric)]),
    );
}

// The throughput that a table breaks down, where it is above all of its parts, as it is shown.
function exceeding(launch, table, section) {
    const whole = section.items.find((item) => item.metric === table.whole);
    const greatest = Math.max(
        ...table.rows.flatMap((row) => row.cells.map((cell) => launch.values[cell] ?? -Infinity)),
    );
    return whole && launch.values[whole.metric] > greatest + 0.005 ? whole.label : null;
}

// Rows of zeros are named below the table; where a table is sorted, its largest rows come first.
function valueTable(run, launch, table, section) {
    const above = exceeding(launch, table, section);
    const value = (column) => (column === null ? null : launch.values[column]);
    const isZero = (row) => row.cells.some((cell) => value(cell) === 0) && row.cells.every((cell) => !value(cell));
    const rows = table.rows.filter((row) => !isZero(row));
    const zeros = table.rows.filter(isZero).map((row) => row.label);
    const key = (row) => value(row.cells[0] ?? null) ?? -Infinity;
    if (table.sorted) rows.sort((a, b) => key(b) - key(a));
    return h(
        "div",
        { class: "values" },
        rows.length > 0 &&
            plainTable(
                table.title,
                ["", ...table.columns],
                rows.map((row) => [
                    labelled(run, row.cells.find((cell) => cell !== null) ?? null, row.label),
                    ...row.cells.map((cell) => figure(run, launch, cell)),
                ]),
            ),
        above &&
            h(
                "p",
                { class: "zeros" },
                `${above} is above each part here: CUPTI does not compute it from these averages`,
            ),
        zeros.length > 0 &&
            h("p", { class: "zeros" }, `${rows.length ? "" : `${table.title}. `}Zero: ${zeros.join(", ")}`),
    );
}

function gainText(found) {
    if (found.gain === null) return `${found.rule.confidence} confidence`;
    if (found.gain === 0) return `no gain, ${found.rule.confidence} confidence`;
    const what = found.rule.scope === "local" ? "of what this is about" : "of the time";
    return `up to ${human(found.gain, "%")} ${what}, ${found.rule.confidence} confidence`;
}

function finding(launch, found, view) {
    const places = placeLinks(launch.code, found.places);
    const next = launch.sections.find((section) => section.id === found.next);
    return h(
        "li",
        { class: "finding" },
        h("h4", {}, found.rule.name, h("span", { class: "gain" }, gainText(found))),
        h("p", {}, found.message),
        found.advice && h("p", { class: "advice" }, found.advice),
        places.length > 0 && h("p", {}, "In the source: ", places),
        next && h("p", {}, "Look next: ", h("a", { href: `${view}/${next.id}` }, next.name)),
    );
}

// The line that most samples are of, which leads to the source.
function hottest({ code, hot }) {
    const row = hot && rowAt(code, hot);
    const text = hot && hot.text[0].toUpperCase() + hot.text.slice(1);
    if (!code) return null;
    return [
        h("dt", {}, hot ? "Hottest" : "Source"),
        h("dd", {}, h("a", { href: sourceLink(code, row) }, text ?? "Lines and instructions")),
    ];
}

function verdict(launch, view) {
    const lines = launch.verdict.filter((line) => line.text);
    if (!lines.length && !launch.code) return null;
    return h(
        "section",
        { class: "verdict", "aria-label": "Verdict" },
        h("h3", {}, "Verdict"),
        h(
            "dl",
            {},
            lines.map((line) => {
                const section = line.key === "next" && launch.sections.find((other) => other.id === line.name);
                return [
                    h("dt", {}, line.label),
                    h("dd", {}, section ? h("a", { href: `${view}/${section.id}` }, section.name) : line.text),
                ];
            }),
            hottest(launch),
        ),
    );
}

// Findings that lack a value, and the metrics to collect for them.
function notEvaluated(launch) {
    if (!launch.notEvaluated.length) return null;
    return h(
        "details",
        { class: "not-evaluated" },
        h("summary", {}, `Not evaluated: ${launch.notEvaluated.map(({ rule }) => rule.name).join(", ")}`),
        h(
            "ul",
            {},
            launch.notEvaluated.map(({ rule, needs, why }) =>
                h(
                    "li",
                    {},
                    rule.name,
                    needs.map((name, i) => [i ? ", " : " needs ", h("code", {}, name)]),
                    why && `: ${why}`,
                ),
            ),
        ),
    );
}

function findings(launch, view) {
    if (!launch.findings.length && !launch.notEvaluated.length) return null;
    const worth = (found) => (found.gain === 0 ? -2 : (found.gain ?? -1)); // as kprof ranks them
    const sorted = [...launch.findings].sort((a, b) => worth(b) - worth(a));
    return h(
        "section",
        { class: "findings", "aria-label": "Findings" },
        h("h3", {}, `Findings (${sorted.length})`),
        sorted.length > 0 &&
            h(
                "ol",
                {},
                sorted.map((found) => finding(launch, found, view)),
            ),
        notEvaluated(launch),
    );
}

const choicesOf = (run, launch, { rooflines }) =>
    rooflineChoices(run, rooflines, [{ name: launch.kernel.name, link: launchLink(launch), launches: [launch] }]);

// A section of rooflines without a point tells nothing where others show its items too.
function withoutWork(run, launch, sections) {
    const isIdle = (section) => section.rooflines.length > 0 && !choicesOf(run, launch, section).length;
    const others = sections.filter((section) => !isIdle(section));
    const shown = new Set(others.flatMap((section) => section.items.map((item) => item.metric)));
    return sections.filter((section) => isIdle(section) && section.items.every((item) => shown.has(item.metric)));
}

function noWork(sections) {
    if (!sections.length) return null;
    return h(
        "p",
        { class: "zeros idle" },
        "No work: ",
        sections.map(({ id, name }, i) => [i > 0 && ", ", h("span", { id: `section-${id}`, tabindex: "-1" }, name)]),
    );
}

function rooflines(run, launch, section) {
    if (!section.rooflines.length) return null;
    const choices = choicesOf(run, launch, section);
    return choices.length
        ? rooflineChart(choices)
        : h("p", { class: "zeros" }, `No work: ${section.rooflines.map((roofline) => roofline.label).join(", ")}`);
}

function sectionOf(run, launch, section) {
    return h(
        "section",
        { id: `section-${section.id}`, tabindex: "-1" },
        h("h3", {}, section.name),
        aboutSection(run, section),
        section.id === "MemoryWorkloadAnalysis" && memoryChart(run, launch),
        h(
            "div",
            { class: "tables" },
            itemTable(run, launch, section),
            section.tables.map((table) => valueTable(run, launch, table, section)),
        ),
        rooflines(run, launch, section),
        section.what_if && whatIfView(launch.whatIf),
    );
}

function factsOf(launch) {
    const { device, process } = launch;
    const many = launch.multiplexed;
    return [
        [launch.inRange ? "Range" : "Launch", launchNumbers(launch)],
        ["Launches in it", launch.inRange?.toLocaleString("en-US")],
        ["Grid", shape(launch.grid)],
        ["Block", shape(launch.block)],
        ["Process", `${process.id} ${process.name ?? ""}`],
        ["Device", `${device.name}, CC ${device.cc}`],
        ["Context", launch.context],
        ["Stream", launch.stream],
        ["Graph node", launch.node],
        ["NVTX ranges", launch.nvtx],
        [
            "Launched from",
            launch.stack === undefined ? launch.from : h("a", { href: stackLink(launch) }, launch.from),
        ],
        ["Passes", launch.passes && !many ? `${launch.passes} (${launch.mode} replay)` : null],
        ["Values", many?.text],
        ["Note", many?.note],
        [launch.missing ? "Not measured" : "Note", launch.reason],
        ["* passes disagree", launch.disagree],
    ].filter(([, value]) => value !== null && value !== undefined);
}

// Does a section show a share of more than all, or of less than nothing?
function hasExcess(run, launch, section) {
    const cells = section.tables.flatMap((table) => table.rows.flatMap((row) => row.cells));
    const columns = [...section.items.map((item) => item.metric), ...cells];
    return columns.some(
        (column) =>
            column !== null &&
            run.metric(column).unit === "%" &&
            (launch.values[column] > 100.005 || launch.values[column] < -0.005),
    );
}

// view: the link of the view that shows it
export function launchView(run, launch, view) {
    const idle = withoutWork(run, launch, launch.sections);
    const sections = launch.sections.filter((section) => !idle.includes(section));
    return [
        h(
            "dl",
            { class: "facts" },
            factsOf(launch).map(([label, value]) => [h("dt", {}, label), h("dd", {}, value)]),
        ),
        framesOf(run.stacks, launch),
        launch.missing && !launch.code
            ? null
            : [
                  verdict(launch, view),
                  findings(launch, view),
                  h(
                      "nav",
                      { class: "contents", "aria-label": "Sections" },
                      sections.map((section) => h("a", { href: `${view}/${section.id}` }, section.name)),
                  ),
                  timelineView(launch),
                  sections.map((section) => sectionOf(run, launch, section)),
                  noWork(idle),
                  launch.multiplexed?.used > 1 &&
                      h(
                          "p",
                          { class: "zeros" },
                          "± is the median distance of the samples from the median, in percent of it, or in its " +
                              "unit where it is 0",
                      ),
                  sections.some((section) => hasExcess(run, launch, section)) &&
                      h(
                          "p",
                          { class: "zeros" },
                          "Shares above 100 % or below 0 % join counters of several passes, or of a launch too short " +
                              "for them",
                      ),
              ],
    ];
}
