// Lists of records: the run, its processes and devices, and the comparison of two reports.
import { h, kernelName } from "./dom.js";
import { plainTable, sortedTable } from "./table.js";
import { human } from "./units.js";

const find = (record, key) => record.fields.find((field) => field.key === key);
const isMissing = (field) => field === undefined || field.value === null;

function text(field) {
    if (isMissing(field)) return field?.missing ?? "";
    if (field.integer) return field.amount ? field.value.toLocaleString("en-US") : String(field.value);
    return typeof field.value === "number" ? human(field.value, field.unit, field.signed) : field.value;
}

// The fields that people see, each key once, as the first record that has it calls it.
function shownKeys(records) {
    const keys = new Map();
    for (const { fields } of records)
        for (const field of fields) if (field.role === "shown" && !keys.has(field.key)) keys.set(field.key, field);
    return [...keys.values()];
}

// The fields of a table: that which names its rows comes first, where it stays in sight, and heads a card.
const namesKernel = (field) => field.key === "kernel" || field.key === "function";
const namesRow = (field) => namesKernel(field) || ["Line", "Range", "Cause", "Operation"].includes(field.key);
const byName = (fields) => [...fields].sort((a, b) => namesRow(b) - namesRow(a));

const placeOf = (list, record) => `${list.key}-${list.records.indexOf(record)}`;

// Links to what changed of each kernel: {what its record is called: link}.
export const linksOf = (lists) =>
    new Map(
        lists
            .filter((list) => list.shape === "groups")
            .flatMap((list) => list.records.map((record) => [titleOf(record), `#/${placeOf(list, record)}`])),
    );

const OF_MACHINES = ["command_line", "executable"];

// What columns of a comparison tell, by their keys.
const HELP = {
    low_pct: "The least change of the time that its repeats allow, with the confidence above.",
    high_pct: "The greatest change of the time that its repeats allow, with the confidence above.",
    repeats: "Launches that were measured, in the baseline and in the new report.",
    change_points: "By how many points the line's share of the kernel's samples has changed.",
};

// A word such as "worse" gets a colour of its own, with the word beside it. links: of names of kernels
function cell(field, links) {
    const words = { worse: "bad", FAILED: "bad", better: "good", passed: "good", inconclusive: "unsure" };
    const kind = words[field?.value];
    if (field && namesKernel(field) && !isMissing(field)) {
        return kernelName(field.value, links?.get(field.value));
    }
    if (field && OF_MACHINES.includes(field.key))
        return h("span", { class: "name", title: text(field) }, text(field));
    return kind ? h("span", { class: `word ${kind}` }, text(field)) : text(field);
}

function table(title, records, links) {
    const shown = (record, key) => {
        const field = find(record, key);
        // Text names a kernel once above all its rows; here they may be sorted.
        return field?.role === "shown" || (field && namesKernel(field)) ? field : undefined;
    };
    const isFilled = ({ key }) => records.some((record) => text(shown(record, key)) !== "");
    return sortedTable({
        caption: title,
        rows: records,
        cards: true,
        columns: byName(shownKeys(records).filter(isFilled)).map((field, i) => ({
            label: field.label,
            help: HELP[field.key],
            number: field.number,
            unit: records.map((record) => shown(record, field.key)?.unit).find(Boolean),
            header: i === 0,
            value: (record) => shown(record, field.key)?.value ?? null,
            cell: (record) => cell(shown(record, field.key), links),
        })),
    });
}

const MOST_BLOCKS = 3; // more are a table

function block(record) {
    return h(
        "dl",
        { class: "facts" },
        record.fields
            .filter((field) => field.role === "shown" && !(isMissing(field) && field.missing === ""))
            .map((field) => [h("dt", {}, field.label), h("dd", {}, text(field))]),
    );
}

const headingsOf = (record) =>
    record.fields.filter((field) => field.role !== "machine" && !isMissing(field) && field.value !== "");

// What a record with rows is called, which has something to show; else null.
function titleOf(record) {
    const [first] = headingsOf(record);
    return first && shownKeys(record.rows).length ? text(first) : null;
}

// A record with rows: what heads it, then its rows below the headings that they share. One that is alone is open.
function group(record, place, isAlone) {
    const keys = shownKeys(record.rows);
    const [first, ...others] = headingsOf(record);
    if (titleOf(record) === null) return null;
    return h(
        "details",
        { class: "group", id: `section-${place}`, open: isAlone },
        h("summary", {}, [text(first), ...others.map(text)].join(", ")),
        plainTable(
            text(first),
            keys.map((field) => field.label),
            record.rows
                .filter((row) => row.fields.some((field) => field.role === "shown"))
                .map((row) =>
                    keys.map((field) =>
                        cell(find(row, field.key)?.role === "shown" ? find(row, field.key) : undefined),
                    ),
                ),
        ),
    );
}

// heading: that of the page, which a list of the same title does not repeat; links: of names of kernels
export function listView(list, heading, links) {
    // Records that are for programs alone have nothing to show.
    const records = list.records.filter((record) => record.fields.some((field) => field.role === "shown"));
    const parts = {
        blocks: () => (records.length > MOST_BLOCKS ? parts.table() : records.map(block)),
        table: () => table(list.title, records, links),
        groups: () =>
            records.map((record) => group(record, placeOf(list, record), records.length === 1)).filter(Boolean),
    };
    const shown = records.length ? parts[list.shape]() : [];
    if (shown.length === 0) return null;
    return h("section", {}, list.title !== heading && h("h2", {}, list.title), shown);
}
