// The time of the GPU by call stack: a flame graph from the outermost frame down to the kernel, a table of the user's
// own lines, and the frames of one launch. Only frames that are wide enough to see are made, so that many stay quick.
import { recall, remember } from "./choices.js";
import { TIME, total } from "./data.js";
import { h, named, note, part } from "./dom.js";
import { bar, sortedTable } from "./table.js";
import { human } from "./units.js";

const LEAST_PX = 2; // of a frame's width
const LEAST_PX_WITH_TEXT = 16;
const ROW_REM = 1.55;
const TOLD_KERNELS = 3;

export const stackLink = (launch) => `#stacks/${launch.stack}`;

// Python's frames tell more than those of the interpreter; without any the native ones are shown. Innermost first.
function toldFrames(stack) {
    const python = stack.frames.filter((frame) => !frame.native);
    return python.length ? python : stack.frames;
}

// What a frame that is none of the user's own belongs to.
function packageOf({ file, native }) {
    const [, name] = /\/(?:site|dist)-packages\/([^/]+)/.exec(file) ?? [];
    if (name) return name.replace(/\.py$/, "");
    return native ? file.split("/").pop() || "generated code" : "Python";
}

const asStep = (frame) => ({
    text: frame.text,
    note: frame.file,
    kind: frame.installed ? "installed" : frame.native ? "native" : "own",
});

// One step for neighbours that are none of the user's own.
function foldedSteps(frames) {
    const steps = [];
    let names = null;
    for (const frame of frames) {
        if (!frame.installed) {
            steps.push(asStep(frame));
            names = null;
            continue;
        }
        if (!names) steps.push({ names: (names = new Set()), kind: "installed", note: "installed packages, folded" });
        names.add(packageOf(frame));
    }
    return steps.map((step) => (step.names ? { ...step, text: [...step.names].join(", ") } : step));
}

// From where a launch was made; multiplexed ones that the page shows as one may come from several lines.
const callersOf = ({ stack, from, multiplexed }) =>
    multiplexed?.callers ?? [{ stack, from, launches: multiplexed?.launches ?? 1 }];

// The frames of a launch from the outermost one on, then its kernel.
function stepsOf(launch, stacks, isFolded) {
    const stack = stacks[launch.stack];
    const frames = stack ? [...toldFrames(stack)].reverse() : [];
    const steps = isFolded ? foldedSteps(frames) : frames.map(asStep);
    if (stack?.cut)
        steps.unshift({ text: "more frames", note: "the stack has more frames than are kept", kind: "none" });
    if (!frames.length) steps.push({ text: launch.from ?? "no call stack", note: "", kind: "none" });
    const { name } = launch.kernel;
    return [...steps, { text: launch.kernel.function, note: name, kind: "kernel", link: launch.group?.link }];
}

const newNode = (step, parent) => ({
    ...{ ...step, parent, time: 0, launches: 0, depth: parent ? parent.depth + 1 : 0 },
    ...{ children: new Map(), stacks: new Set() },
});

// The nodes from the root to the last step, which are made where they are new.
function pathTo(root, steps) {
    const path = [root];
    for (const step of steps) {
        const above = path[path.length - 1];
        const key = `${step.kind} ${step.text}\n${step.note}`;
        if (!above.children.has(key)) above.children.set(key, newNode(step, above));
        path.push(above.children.get(key));
    }
    return path;
}

// Widest first, each with its place among its neighbours.
function place(node, start) {
    node.start = start;
    node.ordered = [...node.children.values()].sort((a, b) => b.time - a.time);
    let at = start;
    for (const child of node.ordered) {
        place(child, at);
        at += child.time;
    }
}

const descendants = (node) => [node, ...node.ordered.flatMap(descendants)];

class FlameGraph {
    constructor(report) {
        const { run, stacks } = report;
        const timeOf = (launch) => run.value(launch, TIME);
        const timed = run.launches.filter((launch) => timeOf(launch) !== null);
        // Where no time was measured, launches are counted.
        Object.assign(this, { isTimed: timed.length > 0, stacks, matches: [], nodes: new WeakMap() });
        const { query = "", isFolded = true } = recall("flame") ?? {};
        this.query = query;
        this.launches = this.isTimed ? timed : run.launches;
        this.leftOut = run.launches.length - this.launches.length;
        this.weightOf = (launch) => (this.isTimed ? timeOf(launch) : 1);
        this.canFold = stacks.some((stack) => stack && toldFrames(stack).some((frame) => frame.installed));
        this.isFolded = this.canFold && isFolded;
        this.detail = h("p", { class: "flame-detail" });
        this.state = h("p", { class: "state", role: "status" });
        this.chart = h("div", {
            class: "flame",
            role: "tree",
            "aria-label": "Call stacks",
            onkeydown: (event) => this.press(event),
            onclick: (event) => {
                const node = this.nodeAt(event);
                if (!node) return;
                this.zoom(node);
                this.focus(node);
            },
            onfocusin: (event) => this.nodeAt(event) && this.select(this.nodeAt(event)),
            onmouseover: (event) => this.nodeAt(event) && this.tell(this.nodeAt(event)),
            onmouseleave: () => this.tell(this.current),
        });
        // A deep chart is higher than the window: what is told of it stays in sight.
        this.told = h("div", { class: "flame-told" }, this.detail, this.state);
        this.element = h("div", { class: "flames" }, this.controls(), this.told, this.chart);
        graphs.set(this.element, this);
        this.build();
    }

    // One listener for all frames, of which there may be thousands.
    nodeAt(event) {
        return this.nodes.get(event.target.closest("[role=treeitem]"));
    }

    controls() {
        this.input = h("input", {
            type: "search",
            value: this.query,
            oninput: () => {
                this.search(this.input.value);
                this.keep();
            },
            onkeydown: (event) => {
                if (event.key === "Enter") this.next(1);
                if (event.key === "Escape") this.focus(this.current);
            },
        });
        const fold = h("input", {
            type: "checkbox",
            checked: this.isFolded,
            onchange: (event) => {
                this.isFolded = event.target.checked;
                this.build();
                this.keep();
            },
        });
        const button = (text, onclick) => h("button", { type: "button", onclick }, text);
        return h(
            "div",
            { class: "controls" },
            h("label", {}, "Search ", this.input),
            this.canFold && h("label", {}, fold, " Fold installed packages"),
            button("Next match", () => this.next(1)),
            button("All", () => this.zoom(this.root)),
            h(
                "span",
                { class: "keys" },
                "Keys: arrows, Enter zooms in, Escape out, / searches, n and p go to matches",
            ),
        );
    }

    keep() {
        remember("flame", { query: this.query, isFolded: this.isFolded });
    }

    build() {
        this.root = newNode({ text: "all", note: "", kind: "none" }, null);
        const paths = new Map(); // of launches that have the same one: there are far more launches than paths
        for (const launch of this.launches)
            for (const { stack, from, launches } of callersOf(launch)) {
                const key = `${stack}\n${from}\n${launch.kernel.name}`;
                const steps = () => stepsOf({ ...launch, stack, from }, this.stacks, this.isFolded);
                if (!paths.has(key)) paths.set(key, pathTo(this.root, steps()));
                const path = paths.get(key);
                path.forEach((node) => {
                    node.time += launches * this.weightOf(launch);
                    node.launches += launches;
                });
                path[path.length - 1].stacks.add(stack);
            }
        place(this.root, 0);
        this.all = descendants(this.root);
        this.base = this.current = this.root;
        this.rows = null;
        this.search(this.query);
        this.show();
    }

    share(node) {
        return human(this.root.time > 0 ? (100 * node.time) / this.root.time : 0, "%");
    }

    amount(node) {
        const launches = `${node.launches.toLocaleString("en-US")} launch${node.launches === 1 ? "" : "es"}`;
        return [this.isTimed && human(node.time, "ns"), this.share(node), launches].filter(Boolean).join(", ");
    }

    tell(node) {
        this.detail.replaceChildren(
            h("code", {}, node.text),
            ` ${this.amount(node)} `,
            node.link ? h("a", { href: node.link }, named(node.note)) : note(node.note),
        );
    }

    search(query) {
        this.query = query;
        const words = query.toLowerCase().split(/\s+/).filter(Boolean);
        const isMatch = (node) => words.every((word) => `${node.text} ${node.note}`.toLowerCase().includes(word));
        this.matches = words.length ? this.all.filter((node) => node !== this.root && isMatch(node)) : [];
        this.found = new Set(this.matches);
        this.rows?.forEach((row, node) => row.classList.toggle("match", this.found.has(node)));
        this.state.textContent = this.stateText();
    }

    // Frames within matching frames do not count again.
    stateText() {
        const isBelow = ({ parent }) => parent && (this.found.has(parent) || isBelow(parent));
        const outer = this.matches.filter((node) => !isBelow(node));
        const time = { time: total(outer.map((node) => node.time)), launches: total(outer.map((n) => n.launches)) };
        return [
            this.query.trim() && `${this.matches.length} frames match: ${this.amount(time)}`,
            this.narrow > 0 && `${this.narrow} frames are too narrow to see; zoom in`,
            !this.isTimed && "No time was measured: the width is the number of launches",
            this.leftOut > 0 && `${this.leftOut} launches without a time are left out`,
        ]
            .filter(Boolean)
            .join(". ");
    }

    rowOf(node) {
        const isAbove = node.depth < this.base.depth;
        const [left, width] = isAbove
            ? [0, 1]
            : [(node.start - this.base.start) / (this.base.time || 1), node.time / (this.base.time || 1)];
        const marks = [node.kind, isAbove && "above", this.found.has(node) && "match"].filter(Boolean);
        const row = h(
            "div",
            {
                class: marks.join(" "),
                role: "treeitem",
                tabindex: node === this.current ? "0" : "-1",
                "aria-level": node.depth + 1,
                "aria-selected": String(node === this.current),
                "aria-label": `${node.text}, ${this.amount(node)}`,
                vars: {
                    "--left": `${100 * left}%`,
                    "--width": `${100 * width}%`,
                    "--top": `${node.depth * ROW_REM}rem`,
                },
            },
            width > LEAST_PX_WITH_TEXT / this.width() && h("span", {}, node.text),
        );
        this.nodes.set(row, node);
        return row;
    }

    // Of the chart, or before it is shown of the window.
    width() {
        return this.chart.clientWidth || window.innerWidth;
    }

    // The frames that the window has room for: those above the one that fills it, and those below.
    visible() {
        const above = [];
        for (let node = this.base.parent; node; node = node.parent) above.unshift(node);
        const below = [];
        const least = (LEAST_PX / this.width()) * this.base.time;
        this.narrow = 0;
        const add = (node) => {
            if (node.time < least) {
                this.narrow += 1;
                return;
            }
            below.push(node);
            node.ordered.forEach(add);
        };
        add(this.base);
        return [...above, ...below];
    }

    show() {
        this.shown = this.visible();
        if (!this.shown.includes(this.current)) this.current = this.base;
        this.rows = new Map(this.shown.map((node) => [node, this.rowOf(node)]));
        const deepest = this.shown.reduce((most, node) => Math.max(most, node.depth), 0);
        this.chart.style.setProperty("height", `${(deepest + 1) * ROW_REM}rem`);
        this.chart.replaceChildren(...this.rows.values());
        this.state.textContent = this.stateText();
        this.tell(this.current);
    }

    select(node) {
        const before = this.rows.get(this.current);
        before?.setAttribute("tabindex", "-1");
        before?.setAttribute("aria-selected", "false");
        this.current = node;
        this.rows.get(node)?.setAttribute("tabindex", "0");
        this.rows.get(node)?.setAttribute("aria-selected", "true");
        this.tell(node);
    }

    focus(node) {
        this.select(node);
        this.rows.get(node)?.focus({ preventScroll: true });
        this.rows.get(node)?.scrollIntoView({ block: "nearest" });
    }

    zoom(node) {
        this.base = node;
        this.current = node;
        this.show();
    }

    // Show a frame that may be too narrow, or outside of what is zoomed into.
    reveal(node) {
        if (!this.rows.has(node)) this.zoom(node);
        this.focus(node);
    }

    next(step) {
        const at = this.matches.indexOf(this.current);
        const { length } = this.matches;
        if (length) this.reveal(this.matches[at < 0 ? 0 : (at + step + length) % length]);
    }

    // To the neighbour in its row.
    beside(step) {
        const row = this.shown.filter((node) => node.depth === this.current.depth);
        const node = row[row.indexOf(this.current) + step];
        if (node) this.focus(node);
    }

    press(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const { current } = this;
        const go = (node) => node && this.reveal(node);
        const zoom = (node) => {
            this.zoom(node);
            this.focus(node);
        };
        const keys = {
            ArrowDown: () => go(current.ordered[0]),
            ArrowUp: () => go(current.parent),
            ArrowLeft: () => this.beside(-1),
            ArrowRight: () => this.beside(1),
            Enter: () => zoom(current),
            " ": () => zoom(current),
            Escape: () => zoom(this.base.parent ?? this.root),
            Home: () => zoom(this.root),
            "/": () => this.input.focus(),
            n: () => this.next(1),
            p: () => this.next(-1),
        };
        if (!keys[event.key]) return;
        keys[event.key]();
        event.preventDefault();
    }
}

// What each of the user's own lines launches.
function lineTable(graph) {
    const lines = new Map();
    for (const launch of graph.launches)
        for (const { from, launches } of callersOf(launch)) {
            const name = from ?? "no call stack";
            const line = lines.get(name) ?? { name, time: 0, launches: 0, kernels: new Set() };
            line.time += launches * graph.weightOf(launch);
            line.launches += launches;
            line.kernels.add(launch.kernel.function);
            lines.set(name, line);
        }
    const share = ({ time }) => (graph.root.time > 0 ? (100 * time) / graph.root.time : null);
    const number = (label, value, unit, cell) => ({ label, value, unit, cell, number: true });
    const shareBar = (row) => bar(share(row), human(share(row), "%"));
    const columns = [
        { label: "Launched from", header: true, value: ({ name }) => name, cell: ({ name }) => h("code", {}, name) },
        number(graph.isTimed ? "Of time" : "Of launches", share, "%", shareBar),
        ...(graph.isTimed ? [number("Time", ({ time }) => time, "ns")] : []),
        number("Launches", ({ launches }) => launches, ""),
        {
            label: "Kernels",
            value: ({ kernels }) => [...kernels].join(", "),
            cell: ({ kernels }) => [
                h("code", {}, named([...kernels].slice(0, TOLD_KERNELS).join(", "))),
                kernels.size > TOLD_KERNELS && ` and ${kernels.size - TOLD_KERNELS} more`,
            ],
        },
    ];
    return sortedTable({
        caption: "Lines of your code",
        columns,
        rows: [...lines.values()],
        sort: [1, -1],
        cards: true,
    });
}

const graphs = new WeakMap(); // by their elements

// Make the frames of a link visible: #stacks/N of stack N, by its number in the page.
export function revealStack(section) {
    const graph = graphs.get(document.querySelector(".flames"));
    const node = graph?.all.find(({ stacks }) => stacks.has(Number(section)));
    if (node) graph.reveal(node);
}

export function stacksView(report) {
    const graph = new FlameGraph(report);
    return [
        h("h1", {}, "Call stacks"),
        part(
            graph.isTimed ? "Time of the GPU" : "Launches",
            h(
                "p",
                {},
                "Each frame is as wide as what was launched within it, from the outermost one down to the kernel. " +
                    "Your code is blue, installed packages are grey, kernels are orange.",
            ),
            graph.element,
        ),
        part("Lines of your code", lineTable(graph)),
    ];
}

// The frames of a launch, the innermost first.
export function framesOf(stacks, launch) {
    const stack = stacks[launch.stack];
    if (!stack?.frames.length) return null;
    const { length } = stack.frames;
    return h(
        "details",
        { class: "frames" },
        h("summary", {}, `Call stack, ${length} frame${length === 1 ? "" : "s"}`),
        h(
            "ol",
            {},
            stack.frames.map((frame) =>
                h("li", { class: asStep(frame).kind }, h("code", {}, frame.text), note(frame.file)),
            ),
        ),
        stack.cut && h("p", { class: "note" }, "There are more frames outside of these."),
    );
}
