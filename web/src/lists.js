// Lists of records: the run, its processes and devices, and the comparison of two reports.
import { h, named } from "./dom.js";
import { plainTable, sortedTable } from "./table.js";
import { human } from "./units.js";

const find = (record, key) => record.fields.find((field) => field.key === key);
const isMissing = (field) => field === undefined || field.value === null;

function text(field) {
    if (isMissing(field)) return field?.missing ?? "";
    if (field.integer) return field.amount ? field.value.toLocaleString("en-US") : String(field.value);
    return typeof field.value === "number" ? human(field.value, field.unit, field.signed) : field.value;
}

// The fields that people see, each key once.
function shownKeys(records) {
    const keys = new Map();
    records.forEach((record) =>
        record.fields.filter((field) => field.role === "shown").forEach((field) => keys.set(field.key, field)),
    );
    return [...keys.values()];
}

// The fields of a table: that which names the kernel comes first, where it stays in sight.
const namesKernel = (field) => field.key === "kernel" || field.key === "function";
const byKernel = (fields) => [...fields].sort((a, b) => namesKernel(b) - namesKernel(a));

const placeOf = (list, record) => `${list.key}-${list.records.indexOf(record)}`;

// Where what changed of each kernel stands: {what its record is called: its place}.
export const placesOf = (lists) =>
    new Map(
        lists
            .filter((list) => list.shape === "groups")
            .flatMap((list) => list.records.map((record) => [titleOf(record), placeOf(list, record)])),
    );

// A word such as "worse" gets a colour of its own, with the word beside it.
function cell(field, places) {
    const words = { worse: "bad", FAILED: "bad", better: "good", passed: "good", inconclusive: "unsure" };
    const kind = words[field?.value];
    if (field && namesKernel(field) && !isMissing(field)) {
        const place = places?.get(field.value);
        const name = named(field.value);
        const attributes = { class: "name", title: field.value };
        return place ? h("a", { ...attributes, href: `#/${place}` }, name) : h("span", attributes, name);
    }
    return kind ? h("span", { class: `word ${kind}` }, text(field)) : text(field);
}

function table(title, records, places) {
    const shown = (record, key) => {
        const field = find(record, key);
        return field?.role === "shown" ? field : undefined;
    };
    return sortedTable({
        caption: title,
        rows: records,
        cards: true,
        columns: byKernel(shownKeys(records)).map((field, i) => ({
            label: field.label,
            number: field.number,
            header: i === 0,
            value: (record) => shown(record, field.key)?.value ?? null,
            cell: (record) => cell(shown(record, field.key), places),
        })),
    });
}

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

// A record with rows: what heads it, then its rows below the headings that they share.
function group(record, place) {
    const keys = shownKeys(record.rows);
    const [first, ...others] = headingsOf(record);
    if (titleOf(record) === null) return null;
    return h(
        "details",
        { class: "group", id: `section-${place}` },
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

// heading: that of the page, which a list of the same title does not repeat; places: see placesOf
export function listView(list, heading, places) {
    // Records that are for programs alone have nothing to show.
    const records = list.records.filter((record) => record.fields.some((field) => field.role === "shown"));
    const parts = {
        blocks: () => records.map(block),
        table: () => table(list.title, records, places),
        groups: () => records.map((record) => group(record, placeOf(list, record))).filter(Boolean),
    };
    const shown = records.length ? parts[list.shape]() : [];
    if (shown.length === 0) return null;
    return h("section", {}, list.title !== heading && h("h2", {}, list.title), shown);
}
