// Reads the JSON block of the page: texts and metrics are stored once and referred to by number.

const nothing = { name: null, unit: "", description: "", help: null };

function readRecord(raw, texts) {
    const [fields, values, rows] = raw;
    return {
        fields: JSON.parse(texts[fields]).map((field, i) => {
            const value = values[i];
            return Array.isArray(value)
                ? { ...field, value: value[0], unit: texts[value[1]] }
                : { ...field, value, unit: "" };
        }),
        rows: (rows ?? []).map((row) => readRecord(row, texts)),
    };
}

function readLaunch(raw, part, texts) {
    const text = (number) => (number === null || number === undefined ? null : texts[number]);
    return {
        ...raw,
        kernel: part.kernels[raw.kernel],
        process: part.processes[raw.process],
        device: part.devices[raw.device],
        sections: part.layouts[raw.layout] ?? [],
        mode: text(raw.mode),
        reason: text(raw.reason),
        disagree: text(raw.disagree),
        spreads: new Map((raw.spreads ?? []).map(([column, samples, mad]) => [column, { samples, mad }])),
        doubtful: new Set(raw.doubtful ?? []),
        whatIf: JSON.parse(text(raw.what_if) ?? "[]"),
        verdict: (raw.verdict ?? []).map(([name, pct, line], i) => ({
            ...part.verdict[i],
            name: text(name),
            pct,
            text: text(line),
        })),
        findings: (raw.findings ?? []).map((found) => ({
            ...found,
            rule: part.rules[found.rule],
            advice: text(found.advice),
            next: text(found.next),
        })),
    };
}

// Launches of one kernel.
function groupByKernel(launches) {
    const groups = new Map();
    for (const launch of launches) {
        if (!groups.has(launch.kernel)) groups.set(launch.kernel, { kernel: launch.kernel, launches: [] });
        groups.get(launch.kernel).launches.push(launch);
    }
    return [...groups.values()];
}

function readLaunches(part, texts) {
    part.kernels.forEach((kernel, i) => {
        kernel.index = i;
    });
    const columns = new Map(part.metrics.map((metric, i) => [metric.name, i]));
    const launches = part.launches.map((raw) => readLaunch(raw, part, texts));
    return {
        metrics: part.metrics,
        launches,
        groups: groupByKernel(launches),
        // The metric of a column; a report may have none of a name.
        metric: (column) => part.metrics[column] ?? nothing,
        column: (name) => columns.get(name),
        has: (name) => columns.has(name),
        value: (launch, name) => launch.values[columns.get(name)] ?? null,
    };
}

export function readReport(text) {
    const raw = JSON.parse(text);
    const launches = raw.parts.find((part) => part.part === "launches");
    return {
        page: raw.page,
        lists: raw.parts
            .filter((part) => part.part === "list")
            .map((part) => ({ ...part, records: part.records.map((record) => readRecord(record, raw.texts)) })),
        run: launches ? readLaunches(launches, raw.texts) : null,
    };
}

// The text of a field in the first record of a list.
export function fieldOf(report, list, key) {
    const record = report.lists.find((other) => other.key === list)?.records[0];
    return record?.fields.find((field) => field.key === key)?.value ?? null;
}

export function mean(values) {
    const known = values.filter((value) => value !== null);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

export function total(values) {
    return values.reduce((sum, value) => sum + (value ?? 0), 0);
}
