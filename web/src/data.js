// Reads the JSON block of the page: texts and metrics are stored once and referred to by number.

export const TIME = "gpu__time_duration.sum";

const asPlace = ([name, path, line]) => ({ name, path, line });

function pairsOf(list) {
    return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);
}

const frameOf = (file, line) => ((line ?? null) === null ? null : { file, line });

// The code of a kernel: its lines, those of its PTX, and its instructions, which lines have the numbers of.
function readCode(raw, files) {
    const framesOf = ([file, line, inFile, inLine]) => ({
        origin: frameOf(file, line),
        library: frameOf(inFile, inLine),
    });
    const readLines = (lines, letter) =>
        lines.map(([file, line, name, source, members, waits, numbers, stalls, ...frames], i) => ({
            ...{ key: `${letter}${i}`, file, line, function: name, source, members, waits, numbers },
            stalls: pairsOf(stalls),
            ...framesOf(frames),
        }));
    return {
        ...raw,
        files,
        lines: readLines(raw.lines, "l"),
        ptx: readLines(raw.ptx, "p"),
        instructions: raw.instructions.map(
            ([name, offset, sass, file, line, waits, numbers, stalls, ...frames], i) => ({
                ...{ key: `i${i}`, function: raw.functions[name], offset, sass, file, line, waits, numbers },
                stalls: pairsOf(stalls),
                ...framesOf(frames),
            }),
        ),
    };
}

// The call stacks of launches, with their frames, the innermost first.
function readStacks(raw, texts) {
    const frames = (raw?.frames ?? []).map(([text, file, native, installed]) => ({
        ...{ text, file: texts[file], native: native > 0, installed: installed > 0 },
    }));
    return (raw?.stacks ?? []).map(([cut, ...numbers]) => ({
        cut: cut > 0,
        frames: numbers.map((number) => frames[number]),
    }));
}

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

// [n] stands for n values of the launch before.
function readValues(raw, before) {
    const values = [];
    for (const value of raw) {
        if (Array.isArray(value)) values.push(...before.slice(values.length, values.length + value[0]));
        else values.push(value);
    }
    return values;
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
        nvtx: text(raw.nvtx),
        from: text(raw.from),
        disagree: text(raw.disagree),
        multiplexed: raw.multiplexed && {
            ...raw.multiplexed,
            text: text(raw.multiplexed.text),
            note: text(raw.multiplexed.note),
            callers: raw.multiplexed.callers?.map(([stack, line, launches]) => ({
                ...{ stack: stack ?? undefined, from: text(line) ?? undefined, launches },
            })),
        },
        spreads: new Map((raw.spreads ?? []).map(([column, samples, mad]) => [column, { samples, mad }])),
        doubtful: new Set(raw.doubtful ?? []),
        whatIf: JSON.parse(text(raw.what_if) ?? "[]"),
        verdict: (raw.verdict ?? []).map(([name, pct, line, little = "no"], i) => ({
            ...part.verdict[i],
            name: text(name),
            pct,
            text: text(line),
            little,
        })),
        notEvaluated: JSON.parse(text(raw.not_evaluated) ?? "[]").map(([rule, needs, why]) => ({
            rule: part.rules[rule],
            needs,
            why,
        })),
        hot: raw.hot && { ...asPlace(raw.hot), text: raw.hot[3] },
        findings: (raw.findings ?? []).map(([rule, gain, message, advice, next, places = []]) => ({
            places: places.map(asPlace),
            rule: part.rules[rule],
            gain,
            message,
            advice: text(advice),
            next: text(next),
        })),
    };
}

// The kernels as the summary page ranks them, each with its launches. A kernel has a row for each kind of device, and
// rows of their own for multiplexed launches; launches that were not measured go with either.
function readGroups(list, part, launches) {
    const keyOf = (kernel, device) => `${kernel.same} ${device.name}`;
    const byKey = new Map();
    const groups = (list?.records ?? []).map(({ fields }) => {
        const row = Object.fromEntries(fields.map((field) => [field.key, field.value]));
        const [kernel, device] = [part.kernels[row.kernel], part.devices[row.device]];
        return { row, kernel, device, launches: [] };
    });
    const numbers = new Map();
    for (const group of groups) {
        const key = keyOf(group.kernel, group.device);
        const number = (numbers.get(group.kernel.same) ?? 0) + 1;
        numbers.set(group.kernel.same, number);
        group.link = `#kernel-${group.kernel.same}${number > 1 ? `-${number}` : ""}`;
        byKey.set(key, [...(byKey.get(key) ?? []), group]);
    }
    for (const launch of launches) {
        const groupsOf = byKey.get(keyOf(launch.kernel, launch.device)) ?? [];
        const isOf = (group) => launch.missing || (group.row.samples !== null) === (launch.mode === "multiplex");
        launch.group = groupsOf.find(isOf) ?? groupsOf[0];
        launch.group?.launches.push(launch);
    }
    return groups;
}

function readLaunches(part, summary, { texts, codes }) {
    const columns = new Map(part.metrics.map((metric, i) => [metric.name, i]));
    let before = [];
    const launches = part.launches.map((raw) => {
        before = readValues(raw.values, before);
        const code = codes.find((other) => other.id === raw.code);
        const inRange = raw.kind === "range" ? raw.launches : null;
        return { ...readLaunch(raw, part, texts), values: before, code, inRange };
    });
    return {
        metrics: part.metrics,
        rules: part.rules,
        launches,
        groups: readGroups(summary, part, launches),
        // The metric of a column; a report may have none of a name.
        metric: (column) => part.metrics[column] ?? nothing,
        column: (name) => columns.get(name),
        has: (name) => columns.has(name),
        value: (launch, name) => launch.values[columns.get(name)] ?? null,
    };
}

// Tables of kprof stats about a trace that the page shows as they are, where they have rows; and all of them.
export const TABLES_OF_TRACE = [
    ...["gpu_busy", "goal_sum", "lost_sum", "gpu_idle_sum", "transfer_sum", "memory_sum", "step_sum"],
    ...["pm_sampling_sum", "pm_sampling_steps", "kern_line_sum", "call_line_sum"],
];
const OF_TRACE = [...TABLES_OF_TRACE, "kern_counters", "count_command"];

// How launches spread over the reports that were merged, or the processes.
const OF_SOURCES = ["shares", "sources"];

const numbers = (text) => text.trim().split(/\s+/).map(Number);

// A kernel and shape of the trace, with the link to its counters and its code, if it was measured.
function readTraced({ fields }, index, measured) {
    const value = Object.fromEntries(fields.map((field) => [field.key, field.value]));
    const [grid, block] = [value.GridXYZ, value.BlockXYZ].map(numbers);
    const launches = measured.get(`${value.Name} ${grid} ${block}`) ?? [];
    return {
        ...{ index, grid, block, name: value.Name, share: value["Time (%)"], time: value["Total Time (ns)"] },
        ...{ launches: value.Instances, median: value["Med (ns)"], counted: value.Counted },
        ...{ countedMedian: value["Counted Med (ns)"], limit: value["Limited by"], limitPct: value["At (%)"] },
        ...{ finding: value["Worth Most"], gain: value["Gain of All (%)"] },
        link: launches[0]?.group?.link ?? null,
        code: launches.find(({ code }) => code)?.code ?? null,
    };
}

function readTrace(tables, run) {
    const measured = new Map();
    for (const launch of run?.launches ?? []) {
        const key = `${launch.kernel.demangled} ${launch.grid} ${launch.block}`;
        if (!measured.has(key)) measured.set(key, []);
        if (!launch.missing) measured.get(key).push(launch);
    }
    const list = tables.find((table) => table.key === "kern_counters");
    return (list?.records ?? []).map((record, index) => readTraced(record, index, measured));
}

export function readReport(text) {
    const raw = JSON.parse(text);
    const launches = raw.parts.find((part) => part.part === "launches");
    const lists = raw.parts
        .filter((part) => part.part === "list")
        .map((part) => ({ ...part, records: part.records.map((record) => readRecord(record, raw.texts)) }));
    const files = raw.parts.find((part) => part.part === "files")?.files ?? []; // of all codes
    const codes = raw.parts.filter((part) => part.part === "code").map((part) => readCode(part, files));
    const summary = lists.find((list) => list.key === "summary");
    const stacks = readStacks(
        raw.parts.find((part) => part.part === "stacks"),
        raw.texts,
    );
    const tables = lists.filter((list) => OF_TRACE.includes(list.key));
    const run = launches ? readLaunches(launches, summary, { texts: raw.texts, codes }) : null;
    return {
        page: raw.page,
        lists: lists.filter((list) => list !== summary && ![...OF_TRACE, ...OF_SOURCES].includes(list.key)),
        tables,
        sources: OF_SOURCES.map((key) => lists.find((list) => list.key === key)).filter(Boolean),
        traced: readTrace(tables, run),
        program: raw.parts.find((part) => part.part === "program") ?? null,
        codes,
        stacks,
        run: run && { ...run, stacks },
    };
}

// The text of a field in the first record of a list.
export function fieldOf(report, list, key) {
    const record = report.lists.find((other) => other.key === list)?.records[0];
    return record?.fields.find((field) => field.key === key)?.value ?? null;
}

export function total(values) {
    return values.reduce((sum, value) => sum + (value ?? 0), 0);
}
