// The code of a kernel: its lines with a bar of what the reader chooses, and the instructions of a line below it
// once it is opened. Only the rows of one page are made, so that thousands of instructions, of one line, too, stay
// quick.
import { recall, remember } from "./choices.js";
import { h, kernelHeading, kernelName, named, note } from "./dom.js";
import { bar, copyButton, countText, scrolling, showPages, sortedTable } from "./table.js";
import { human } from "./units.js";

const PAGE_ROWS = 100;
const TOLD_STALLS = 3;
const ADDRESS_MS = 200;
const MOST_KEPT_OPEN = 100; // rows, over a reload
const STALL_COLOURS = 4; // and one for all others

export const sourceLink = (code, row) => `#source-${code.id}${row ? `/${row.key}` : ""}`;

// The row of a place that the verdict or a finding names; undefined: there is none.
export function rowAt(code, place) {
    if (!code) return undefined;
    if (place.path !== null)
        return code.lines.find((row) => row.line === place.line && code.files[row.file]?.path === place.path);
    const [, offset, name] = /^(?:instruction )?0x([0-9a-f]+)(?: of (.*))?$/.exec(place.name) ?? [];
    const isThere = (row) => row.offset === parseInt(offset, 16) && (!name || row.function === name);
    return offset && code.instructions.find(isThere);
}

// Links to places of the code, for those that the page has.
export function placeLinks(code, places) {
    const links = places.map((place) => [place, rowAt(code, place)]).filter(([, row]) => row);
    return links.map(([place, row], i) => [i > 0 && ", ", h("a", { href: sourceLink(code, row) }, place.name)]);
}

const address = (row) => `0x${row.offset.toString(16).padStart(4, "0")}`;

function placeOf(code, row) {
    const file = code.files[row.file];
    return file && row.line !== null ? `${file.name}:${row.line}` : null;
}

// A reason has one colour in all rows of a kernel: its most frequent reasons have their own, the others share one.
function colourOf(code, reason) {
    if (!code.ranks) {
        const sums = code.reasons.map(() => 0);
        code.instructions.forEach((row) => row.stalls.forEach(([at, samples]) => (sums[at] += samples)));
        code.ranks = sums.map((_, at) => at).sort((a, b) => sums[b] - sums[a]);
    }
    return `stall-${Math.min(code.ranks.indexOf(reason), STALL_COLOURS)}`;
}

// What most warps wait for at a row, and a bar of it.
function stalls(code, row) {
    const all = row.numbers[code.columns.findIndex(({ key }) => key === "samples")];
    if (!(all > 0) || row.stalls.length === 0) return null;
    const told = [...row.stalls].sort((a, b) => b[1] - a[1]).slice(0, TOLD_STALLS);
    const pct = (samples) => (100 * samples) / all;
    const name = ([reason, samples]) => `${code.reasons[reason]} ${pct(samples).toFixed(0)} %`;
    return [
        h(
            "span",
            { class: "stalls", "aria-hidden": "true" },
            told.map(([reason, samples]) =>
                h("span", { class: colourOf(code, reason), vars: { "--share": `${pct(samples)}%` } }),
            ),
        ),
        h(
            "span",
            { class: "stall-names" },
            told
                .filter(([, samples], i) => i === 0 || pct(samples) >= 1)
                .map((stall, i) => [
                    i > 0 && ", ",
                    h(
                        "span",
                        {},
                        h("span", { class: `dot ${colourOf(code, stall[0])}`, "aria-hidden": "true" }),
                        name(stall),
                    ),
                ]),
        ),
    ];
}

class SourceView {
    constructor(code) {
        this.code = code;
        this.kinds = [
            { key: "lines", label: "lines", head: "Line", rows: code.lines },
            { key: "ptx", label: "PTX lines", head: "PTX line", rows: code.ptx },
            { key: "instructions", label: "instructions", head: "Instruction", rows: code.instructions },
        ].filter(({ key, rows }) => rows.length || key === "instructions");
        for (const kind of this.kinds) {
            const linesOf = (line) => (line.members ?? []).map((i) => [code.instructions[i], line]);
            kind.lines = new Map(kind.rows.flatMap(linesOf));
        }
        this.recall();
        this.body = h("tbody", { role: "rowgroup" });
        this.head = h("tr", { role: "row" });
        this.state = h("p", { class: "state", role: "status" });
        this.meaning = h("p", { class: "zeros" });
        this.pager = h("div", { class: "pager" });
        this.element = h(
            "div",
            { class: "source" },
            this.controls(),
            this.meaning,
            scrolling(
                "Lines and instructions",
                h(
                    "table",
                    { role: "table" },
                    h("caption", { class: "unseen" }, "Lines and instructions"),
                    h("thead", { role: "rowgroup" }, this.head),
                    this.body,
                ),
            ),
            h("div", { class: "foot" }, this.state, this.pager),
        );
        views.set(this.element, this);
        this.show();
    }

    // What the reader has chosen before, maybe on a page of another kprof: the column by its key, rows by theirs.
    recall() {
        const chosen = recall("source") ?? {};
        const { query = "", page = 0, byHeat = true, column, opened = [], kind = this.code.rows } = chosen;
        const rows = this.kinds.flatMap((other) => other.rows).filter(({ key }) => opened.includes(key));
        Object.assign(this, { query, page, byHeat, current: null, open: new Set(rows) });
        this.kind = this.kinds.find(({ key }) => key === kind) ?? this.kinds[0];
        this.column = Math.max(
            0,
            this.code.columns.findIndex(({ key }) => key === column),
        );
    }

    change(what) {
        Object.assign(this, what);
        this.show();
        const { query, page, byHeat } = this;
        const opened = [...this.open].slice(-MOST_KEPT_OPEN).map(({ key }) => key);
        const column = this.code.columns[this.column]?.key;
        remember("source", { query, page, byHeat, kind: this.kind.key, opened, column });
    }

    get rows() {
        return this.kind.rows;
    }

    get ofLines() {
        return this.kind.key !== "instructions";
    }

    ofKind(kind) {
        return { kind, current: kind === this.kind ? this.current : null };
    }

    // The line of an instruction; undefined: the kernel has none of that kind.
    lineIn(key, row) {
        return this.kinds.find((kind) => kind.key === key)?.lines.get(row);
    }

    controls() {
        const choice = (label, options, selected, onchange) =>
            h(
                "label",
                {},
                `${label} `,
                h(
                    "select",
                    { onchange: ({ target }) => this.change({ ...onchange(target.selectedIndex), page: 0 }) },
                    options.map((option, i) => h("option", { selected: i === selected }, option)),
                ),
            );
        const labels = this.code.columns.map(({ label }) => label);
        const kinds = this.kinds.map(({ label }) => label);
        const kind = choice("Rows", kinds, this.kinds.indexOf(this.kind), (i) => this.ofKind(this.kinds[i]));
        this.chooser = kind.querySelector("select");
        this.input = h("input", {
            type: "search",
            value: this.query,
            oninput: () => {
                this.query = this.input.value;
                this.turnTo(this.shown().find((row) => !this.open.has(row) && this.matches(row)));
                this.change({});
            },
        });
        return h(
            "div",
            { class: "controls" },
            labels.length > 0 && choice("Heat", labels, this.column, (column) => ({ column })),
            choice("Order", ["hottest first", "of the source"], this.byHeat ? 0 : 1, (i) => ({ byHeat: i === 0 })),
            kinds.length > 1 && kind,
            h("label", {}, "Search ", this.input),
            h("button", { type: "button", onclick: () => this.next(1), title: "n" }, "Next hottest"),
            h("button", { type: "button", onclick: () => this.next(-1), title: "p" }, "Previous"),
            copyButton(() => this.cells()),
            h("span", { class: "keys" }, "Keys: n and p next and previous hottest, / search, arrows and Enter"),
        );
    }

    heat(row) {
        return row.numbers[this.column] ?? null;
    }

    byHeatOf(rows) {
        return [...rows].sort((a, b) => (this.heat(b) ?? -1) - (this.heat(a) ?? -1));
    }

    // A line is found by its own text and by those of its instructions.
    textOf(row) {
        if (row.text === undefined) {
            const own = [placeOf(this.code, row), row.source, row.sass, row.offset !== undefined && address(row)];
            const below = this.membersOf(row).map((member) => `${address(member)} ${member.sass ?? ""}`);
            row.text = [...own, ...below].filter(Boolean).join(" ").toLowerCase();
        }
        return row.text;
    }

    membersOf(row) {
        return (row.members ?? []).map((number) => this.code.instructions[number]);
    }

    matches(row) {
        const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
        return words.every((word) => this.textOf(row).includes(word));
    }

    chosen() {
        const rows = this.rows.filter((row) => this.matches(row));
        return this.byHeat ? this.byHeatOf(rows) : rows;
    }

    // The rows on all pages: those that are chosen, each with the instructions below it once it is opened.
    shown(rows = this.chosen()) {
        return rows.flatMap((row) => [row, ...(this.open.has(row) ? this.membersOf(row) : [])]);
    }

    turnTo(row) {
        this.page = Math.floor(Math.max(0, this.shown().indexOf(row)) / PAGE_ROWS);
    }

    // The row itself, or the line that it is below.
    lineOf(row) {
        return row.members || !this.ofLines ? row : this.kind.lines.get(row);
    }

    // Go to a row: on its page, and opened where it is a line.
    reveal(row, quiet) {
        if (row.members) {
            const kind = this.kinds.find(({ rows }) => rows.includes(row));
            Object.assign(this, this.ofKind(kind));
            this.chooser.selectedIndex = this.kinds.indexOf(kind);
        }
        const line = this.lineOf(row);
        if (!this.chosen().includes(line)) this.input.value = this.query = "";
        if (line.members) this.open.add(line);
        this.turnTo(row);
        this.change({ current: line });
        if (quiet) return;
        this.keepAddress(row);
        this.focus(row);
    }

    // A reload shows the row. Browsers refuse to change the address more often than a key that is held down asks for.
    keepAddress(row) {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
            if (this.element.isConnected) history.replaceState(history.state, "", sourceLink(this.code, row));
        }, ADDRESS_MS);
    }

    focus(row) {
        const place = document.getElementById(`section-${row.key}`) ?? this.body.rows[0];
        place?.scrollIntoView({ block: "center" });
        (place?.querySelector("button") ?? place)?.focus({ preventScroll: true });
    }

    // The row that is so many places hotter or colder than the current one; rows without heat do not count.
    next(step) {
        const rows = this.byHeatOf(this.chosen()).filter((row) => this.heat(row) > 0);
        const at = rows.indexOf(this.current);
        const row = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))];
        if (row) this.reveal(row);
    }

    press(event) {
        const field = event.target.closest("input, select");
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (field && !(event.key === "Escape" && this.element.contains(field))) return;
        const near = event.target.closest("tr");
        const other = (sibling) => {
            let row = near?.[sibling];
            while (row && row.tabIndex !== -1) row = row[sibling];
            (row?.querySelector("button") ?? row)?.focus();
            return Boolean(row);
        };
        const keys = {
            n: () => this.next(1),
            p: () => this.next(-1),
            "/": () => this.input.focus(),
            Escape: () => this.focus(this.current ?? this.chosen()[0] ?? this.rows[0]),
            ArrowDown: () => other("nextElementSibling"),
            ArrowUp: () => other("previousElementSibling"),
        };
        if (keys[event.key] && keys[event.key]() !== false) event.preventDefault();
    }

    toggle(row) {
        if (!this.open.delete(row)) this.open.add(row);
        this.turnTo(row);
        this.change({ current: row });
        document.getElementById(`section-${row.key}`)?.querySelector("button")?.focus();
    }

    // The columns beside the chosen one, as cells of numbers.
    others() {
        const shown = ["samples", "instructions", "excess_sectors", "shared_conflicts", "divergent_branches"];
        return this.code.columns
            .map((column, i) => ({ ...column, i }))
            .filter(({ key, i }) => shown.includes(key) && i !== this.column);
    }

    heatCell(row) {
        const column = this.code.columns[this.column];
        const value = this.heat(row);
        const share = column.key === "samples" && column.total > 0 && value !== null;
        const text = share ? `${((100 * value) / column.total).toFixed(2)} %` : human(value);
        return h(
            "td",
            { class: "heat", role: "cell", title: share && `${human(value)} samples` },
            bar(value === null ? null : (100 * value) / (this.hottest || 1), text),
        );
    }

    cellsOf(row) {
        return [
            this.code.columns.length > 0 && this.heatCell(row),
            this.hasStalls && h("td", { class: "waits", role: "cell" }, stalls(this.code, row)),
            this.others().map(({ i, label }) =>
                h("td", { class: "number", role: "cell", "data-label": label }, human(row.numbers[i] ?? null)),
            ),
        ];
    }

    // Which instruction gives the value that this one waits for. A warp that has ended waits for its stores.
    waitsFor(row) {
        if (!row?.waits.length) return null;
        const producer = this.code.instructions[row.waits[row.waits.length - 1]];
        const place = producer.line !== row.line || producer.file !== row.file ? placeOf(this.code, producer) : null;
        return note(
            `waits for ${/\bEXIT$/.test(producer.sass) ? "stores before " : ""}`,
            h("a", { href: sourceLink(this.code, producer) }, address(producer)),
            ` ${producer.sass ?? ""}`,
            place && `, ${place}`,
        );
    }

    hottestOf(row) {
        return this.membersOf(row).reduce((most, member) =>
            (this.heat(member) ?? 0) > (this.heat(most) ?? 0) ? member : most,
        );
    }

    // To an instruction that may be on another page.
    linkTo(row) {
        const link = h("a", { href: sourceLink(this.code, row) }, address(row));
        return this.heat(row) > 0 && note("hottest at ", link);
    }

    lineRow(row) {
        const isOpen = this.open.has(row);
        return h(
            "tr",
            { id: `section-${row.key}`, tabindex: "-1", role: "row", class: row === this.current && "current" },
            h(
                "th",
                { scope: "row", role: "rowheader" },
                h(
                    "button",
                    { type: "button", "aria-expanded": String(isOpen), onclick: () => this.toggle(row) },
                    h("span", { class: "place" }, placeOf(this.code, row) ?? "no line"),
                ),
                row.source !== null && h("code", {}, row.source.trimStart()),
                this.libraryOf(row),
                this.originOf(row),
                !isOpen && this.waitsFor(row),
                isOpen && row.members.length > PAGE_ROWS && this.linkTo(this.hottestOf(row)),
                this.code.functions.length > 1 && row.function && note(named(row.function)),
            ),
            this.cellsOf(row),
        );
    }

    // Where in a library the row is, which its line calls.
    libraryOf({ library }) {
        return library && note(`in ${placeOf(this.code, library)}`);
    }

    // The line that called the inlined function of this one, or that its PTX was compiled of.
    originOf(row) {
        const { key, origin } = row;
        if (!origin) return null;
        const place = placeOf(this.code, origin);
        if (!key.startsWith("p")) return note(`called from ${place}${this.otherCallers(row)}`);
        const line = this.code.lines.find((other) => other.file === origin.file && other.line === origin.line);
        return note("of ", line ? h("a", { href: sourceLink(this.code, line) }, place) : place);
    }

    // A line of an inlined function may be of several calls.
    otherCallers(row) {
        const callers = this.membersOf(row).filter(({ origin }) => origin);
        const others = new Set(callers.map(({ origin }) => `${origin.file} ${origin.line}`)).size - 1;
        return others > 0 ? ` and ${others} other line${others > 1 ? "s" : ""}` : "";
    }

    // Links to the lines of an instruction that it does not stand below.
    placesOf(row) {
        const places = ["lines", "ptx"].map((key) => key !== this.kind.key && this.lineIn(key, row));
        const links = places
            .filter((line) => line && placeOf(this.code, line))
            .map((line, i) => [
                i > 0 && ", ",
                h("a", { href: sourceLink(this.code, line) }, placeOf(this.code, line)),
            ]);
        return links.length > 0 && note(links);
    }

    // What of an instruction's frames its line does not tell.
    framesOf(row, isBelow) {
        const line = isBelow ? this.lineOf(row) : null;
        const differs = (key) =>
            row[key] && !(line?.[key]?.file === row[key].file && line[key].line === row[key].line);
        return [differs("library") && this.libraryOf(row), differs("origin") && this.originOf(row)];
    }

    instructionRow(row, isBelow) {
        return h(
            "tr",
            {
                id: `section-${row.key}`,
                tabindex: "-1",
                role: "row",
                class: isBelow ? "below" : row === this.current && "current",
            },
            h(
                "th",
                { scope: "row", role: "rowheader" },
                h("code", {}, `${address(row)}  ${row.sass ?? ""}`),
                this.placesOf(row),
                this.framesOf(row, isBelow),
                this.waitsFor(row),
            ),
            this.cellsOf(row),
        );
    }

    // Rows that begin within a line have it above them.
    rowsOf(rows) {
        const above = rows.length && this.lineOf(rows[0]) !== rows[0] ? [this.lineOf(rows[0])] : [];
        return [...above, ...rows].map((row) =>
            row.members ? this.lineRow(row) : this.instructionRow(row, this.ofLines),
        );
    }

    // The rows that are chosen, on all pages, as text.
    cells() {
        const { columns, reasons } = this.code;
        const stall = ({ stalls }) => [...stalls].sort((a, b) => b[1] - a[1]).map(([at]) => reasons[at])[0];
        const head = ["Line", "Address", "Text", ...columns.map(({ label }) => label), "Top stall"];
        const cellsOf = (row) => [
            placeOf(this.code, row),
            row.members ? "" : address(row),
            (row.members ? row.source : row.sass) ?? "",
            ...columns.map((_, i) => row.numbers[i]),
            stall(row),
        ];
        return [head, ...this.chosen().map(cellsOf)];
    }

    showHead() {
        const column = this.code.columns[this.column];
        const header = (label, isNumber) =>
            h("th", { scope: "col", role: "columnheader", class: isNumber && "number" }, label);
        this.head.replaceChildren(
            ...[
                header(this.kind.head),
                column && header(column.label),
                this.hasStalls && header("Top stalls"),
                ...this.others().map(({ label }) => header(label, true)),
            ].filter(Boolean),
        );
    }

    show() {
        const rows = this.chosen();
        const shown = this.shown(rows);
        const pages = Math.max(1, Math.ceil(shown.length / PAGE_ROWS));
        this.page = Math.min(this.page, pages - 1);
        this.hottest = this.rows.reduce((most, row) => Math.max(most, this.heat(row) ?? 0), 0);
        this.hasStalls = this.code.columns.some(({ key }) => key === "samples");
        this.showHead();
        const { label, help } = this.code.columns[this.column] ?? {};
        this.meaning.textContent = help ? `${label}: ${help}` : "";
        this.body.replaceChildren(...this.rowsOf(shown.slice(this.page * PAGE_ROWS, (this.page + 1) * PAGE_ROWS)));
        const { page } = this;
        this.state.textContent = countText(rows, this.rows, this.kind.label, {
            page,
            size: PAGE_ROWS,
            shown: shown.length,
        });
        const turn = (step) => this.change({ page: this.page + step });
        showPages(this.pager, { page, pages, turn, labels: ["Previous page", "Next page"] });
    }
}

const views = new WeakMap(); // by their elements
const shownView = () => views.get(document.querySelector("main > .source"));

// Keys do what the page says wherever the reader is on it.
document.addEventListener("keydown", (event) => shownView()?.press(event));

// Make the row of a link visible: #source-N/ROW.
export function revealRow(section) {
    const view = shownView();
    const row = view && view.kinds.flatMap(({ rows }) => rows).find(({ key }) => key === section);
    if (row) view.reveal(row, true);
}

export function sourceView(code, launch) {
    const { element } = new SourceView(code);
    return [
        kernelHeading(code.kernel, "Source of "),
        h(
            "p",
            {},
            [code.shape, code.device, code.measured].filter(Boolean).join(", "),
            launch && [". ", h("a", { href: `#launch-${launch.id}` }, `Launch ${launch.id}`)],
        ),
        code.notes.map((text) => h("p", { class: "zeros" }, text)),
        element,
        code.zeros.length > 0 && h("p", { class: "zeros" }, `Zero everywhere: ${code.zeros.join(", ")}`),
    ];
}

// The row with most samples, and their share in percent; null: there are none.
function hottestOf(code) {
    const column = code.columns.findIndex(({ key }) => key === "samples");
    const rows = code.lines.length ? code.lines : code.instructions;
    const samples = (row) => row.numbers[column] ?? 0;
    const row = rows.reduce((most, other) => (most && samples(most) >= samples(other) ? most : other), null);
    return row && samples(row) > 0 ? { row, pct: (100 * samples(row)) / code.columns[column].total } : null;
}

// Links to the code of each kernel, and to the hottest line of each.
export function sourceList(codes) {
    const hottest = new Map(codes.map((code) => [code, hottestOf(code)]));
    const samples = (code) => code.columns.find(({ key }) => key === "samples")?.total ?? null;
    const place = (code) => {
        const row = hottest.get(code)?.row;
        return row ? (placeOf(code, row) ?? address(row)) : null;
    };
    return sortedTable({
        caption: "Kernels with source",
        rows: codes,
        sort: null,
        cards: true,
        columns: [
            {
                label: "Kernel",
                header: true,
                value: ({ kernel }) => kernel,
                cell: (code) => [kernelName(code.kernel, sourceLink(code)), note(code.shape)],
            },
            {
                label: "Hottest",
                help: "the line or instruction with most samples, and its share of the kernel's",
                value: (code) => hottest.get(code)?.pct ?? null,
                text: place,
                cell: (code) =>
                    place(code) === null
                        ? "n/a"
                        : [
                              h("a", { href: sourceLink(code, hottest.get(code).row) }, place(code)),
                              note(`${human(hottest.get(code).pct, "%")} of the samples`),
                          ],
            },
            { label: "Samples", number: true, value: samples },
            { label: "Measured", value: ({ measured }) => measured },
        ],
    });
}
