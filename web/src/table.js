// A table that sorts by any column, filters by text and shows one page of its rows, so that thousands stay quick.
import { recall, remember } from "./choices.js";
import { h, meanings } from "./dom.js";
import { human } from "./units.js";

const PAGE_ROWS = 50;
const TAB = decodeURIComponent("%09"); // which the bundler does not put into the page itself

// What is too wide for the window scrolls: only then it is a region that keys reach.
export function scrolling(label, child) {
    const element = h("div", { class: "scroll", "aria-label": label }, child);
    const roles = { tabindex: "0", role: "region" };
    const follow = () =>
        Object.entries(roles).forEach(([name, value]) => {
            if (element.scrollWidth > element.clientWidth) element.setAttribute(name, value);
            else element.removeAttribute(name);
        });
    new ResizeObserver(follow).observe(element);
    return element;
}

const inOrder = new Intl.Collator("en", { numeric: true });

// Rows without a value come last in either direction.
function compare(a, b, direction) {
    const missing = (value) => value === null || value === undefined;
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    if (typeof a === "number" && typeof b === "number") return direction * (a - b);
    return direction * inOrder.compare(a, b);
}

// What of all rows is chosen, and which of these the page has.
export function countText(chosen, all, name, { page, size, shown = chosen.length }) {
    const [some, whole] = [chosen.length, all.length].map((count) => count.toLocaleString("en-US"));
    const count = chosen.length === all.length ? `${whole} ${name}` : `${some} of ${whole} ${name}`;
    if (shown <= size) return count;
    const [first, last] = [page * size + 1, Math.min((page + 1) * size, shown)];
    return `${count}; here are rows ${first.toLocaleString("en-US")} to ${last.toLocaleString("en-US")}`;
}

// A cell as a spreadsheet takes it: exact numbers, and no text that is a formula.
function spreadsheetCell(value) {
    const text = String(value ?? "").replace(/\s+/g, " ");
    return typeof value === "number" ? text : text.replace(/^[=+@-]/, "'$&");
}

// lines(): the cells of all rows, those of the head first
export function copyButton(lines) {
    if (!navigator.clipboard) return null; // a server without https
    const copy = async ({ currentTarget }) => {
        const text = lines().map((line) => line.map(spreadsheetCell).join(TAB));
        currentTarget.textContent = await navigator.clipboard.writeText(text.join("\n")).then(
            () => "Copied",
            () => "The browser forbids to copy",
        );
    };
    return h(
        "button",
        { type: "button", title: "All rows with exact numbers, for a spreadsheet", onclick: copy },
        "Copy table",
    );
}

// Buttons to the page before and the next one: turn(1 or -1) shows it. The focus stays on one that works.
export function showPages(pager, { page, pages, turn, labels }) {
    const go = (step, label) => {
        const onclick = () => {
            turn(step);
            const [back, , forth] = pager.children;
            const [own, other] = step < 0 ? [back, forth] : [forth, back];
            (own.disabled ? other : own).focus();
        };
        return h("button", { type: "button", disabled: page + step < 0 || page + step >= pages, onclick }, label);
    };
    const [back, forth] = labels;
    pager.replaceChildren(
        ...(pages > 1 ? [go(-1, back), h("span", {}, `Page ${page + 1} of ${pages}`), go(1, forth)] : []),
    );
}

// What a column shows of a row.
export function shownIn({ value, number, unit, cell }, row) {
    if (cell) return cell(row);
    return number ? human(value(row), unit) : (value(row) ?? "n/a");
}

function cellOf(column, row) {
    const attributes = { class: column.number && "number", "data-label": column.label };
    return column.header
        ? h("th", { ...attributes, scope: "row", role: "rowheader" }, shownIn(column, row))
        : h("td", { ...attributes, role: "cell" }, shownIn(column, row));
}

// What its columns are, of those that say so.
export const helpOf = (columns) =>
    meanings(
        "What the columns tell",
        columns.filter(({ help }) => help).map(({ label, help }) => [label, help]),
    );

class SortedTable {
    // columns: [{label, help, value(row), text(row), cell(row), number, unit, header}], where value sorts, text
    // filters (value if there is none) and cell shows (likewise); unit is that of value; sort:
    // [column, 1 or -1]; cards: in a narrow window each row is a card. Roles are given because some browsers forget
    // them where style makes something else of a table.
    constructor({ caption, columns, rows, sort, filter = rows.length > 10, cards = false }) {
        Object.assign(this, { columns, rows, key: `table ${caption}`, texts: new Map() });
        this.recall(sort ?? [null, 1]);
        this.head = h("tr", { role: "row" });
        this.body = h("tbody", { role: "rowgroup" });
        this.state = h("p", { class: "state", role: "status" });
        this.pager = h("div", { class: "pager" });
        this.element = h(
            "div",
            { class: cards ? "table cards" : "table" },
            filter &&
                h(
                    "div",
                    { class: "controls above" },
                    this.search(caption),
                    copyButton(() => this.lines()),
                ),
            scrolling(
                caption,
                h(
                    "table",
                    { role: "table" },
                    h("caption", {}, caption),
                    h("thead", { role: "rowgroup" }, this.head),
                    this.body,
                ),
            ),
            h("div", { class: "foot" }, this.state, this.pager),
            helpOf(columns),
        );
        this.show();
    }

    // The order, filter and page that the reader has chosen before, or else those of a new table.
    recall([by, direction]) {
        const { label, ...chosen } = recall(this.key) ?? {};
        const column = this.columns.findIndex((other) => other.label === label);
        Object.assign(this, { query: "", page: 0, by, direction }, chosen);
        if (column >= 0) this.by = column;
    }

    change(what) {
        Object.assign(this, what);
        this.show();
        const { by, direction, query, page } = this;
        remember(this.key, { ...(by === null ? {} : { label: this.columns[by].label }), direction, query, page });
    }

    search(caption) {
        const input = h("input", {
            type: "search",
            value: this.query,
            oninput: () => this.change({ query: input.value, page: 0 }),
        });
        return h("label", { class: "search" }, `Filter ${caption.toLowerCase()} `, input);
    }

    // Texts to filter by, of numbers only those that name a row: made once.
    textOf(row) {
        if (!this.texts.has(row)) {
            const named = this.columns.filter((column) => column.header || column.text || !column.number);
            const texts = named.map((column) => (column.text ?? column.value)(row) ?? "");
            this.texts.set(row, texts.join(" ").toLowerCase());
        }
        return this.texts.get(row);
    }

    chosen() {
        const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
        const rows = words.length
            ? this.rows.filter((row) => words.every((word) => this.textOf(row).includes(word)))
            : this.rows;
        if (this.by === null) return rows;
        const { value } = this.columns[this.by];
        const keys = new Map(rows.map((row) => [row, value(row)]));
        return [...rows].sort((a, b) => compare(keys.get(a), keys.get(b), this.direction));
    }

    // The largest numbers come first, and texts in alphabetical order.
    sortBy(index) {
        const isNumber = this.rows.some((row) => typeof this.columns[index].value(row) === "number");
        const direction = this.by === index ? -this.direction : isNumber ? -1 : 1;
        this.change({ by: index, direction, page: 0 });
        this.head.children[index].querySelector("button").focus();
    }

    // The rows that are chosen, on all pages.
    lines() {
        const cell = ({ number, value, text = value }, row) => (number ? (value(row) ?? "") : text(row));
        const head = this.columns.map(({ label, unit }) => (unit ? `${label} (${unit})` : label));
        return [head, ...this.chosen().map((row) => this.columns.map((column) => cell(column, row)))];
    }

    showHead() {
        this.head.replaceChildren(
            ...this.columns.map((column, i) => {
                const order = this.direction < 0 ? "descending" : "ascending";
                return h(
                    "th",
                    {
                        scope: "col",
                        role: "columnheader",
                        class: column.number && "number",
                        "aria-sort": i === this.by ? order : "none",
                    },
                    h("button", { type: "button", title: column.help, onclick: () => this.sortBy(i) }, column.label),
                );
            }),
        );
    }

    show() {
        const rows = this.chosen();
        const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
        this.page = Math.min(this.page, pages - 1); // of a report that was longer
        this.showHead();
        this.body.replaceChildren(
            ...rows.slice(this.page * PAGE_ROWS, (this.page + 1) * PAGE_ROWS).map((row) =>
                h(
                    "tr",
                    { role: "row" },
                    this.columns.map((column) => cellOf(column, row)),
                ),
            ),
        );
        this.state.textContent = countText(rows, this.rows, "rows", { page: this.page, size: PAGE_ROWS });
        this.state.hidden = this.rows.length <= 10;
        const turn = (step) => this.change({ page: this.page + step });
        showPages(this.pager, { page: this.page, pages, turn, labels: ["Previous", "Next"] });
    }
}

export function sortedTable(options) {
    return new SortedTable(options).element;
}

// A short table in the order of its rows. cells: nodes or texts; the first of each row is its header. Without labels of
// columns it needs no title that one can see: it stands below that of its section.
export function plainTable(caption, labels, rows) {
    return scrolling(
        caption,
        h(
            "table",
            {},
            h("caption", { class: labels ? null : "unseen" }, caption),
            labels &&
                h(
                    "thead",
                    {},
                    h(
                        "tr",
                        {},
                        labels.map((label, i) =>
                            label ? h("th", { scope: "col", class: i > 0 && "number" }, label) : h("td", {}),
                        ),
                    ),
                ),
            h(
                "tbody",
                {},
                rows.map(([header, ...cells]) =>
                    h(
                        "tr",
                        {},
                        h("th", { scope: "row" }, header),
                        cells.map((cell) => h("td", { class: "number" }, cell)),
                    ),
                ),
            ),
        ),
    );
}

// A number with a bar of a share of 100.
export function bar(pct, text) {
    const isKnown = pct !== null && pct !== undefined; // an empty bar would be one of 0
    return h(
        "span",
        { class: "bar" },
        h("span", {
            class: isKnown && "fill",
            "aria-hidden": "true",
            vars: isKnown ? { "--share": `${Math.max(0, Math.min(100, pct))}%` } : {},
        }),
        h("span", { class: "figure" }, text),
    );
}
