// Makes elements. Text becomes text nodes only: a report is untrusted, and nothing in it is ever read as HTML.

function append(parent, child) {
    if (child === null || child === undefined || child === false) return;
    if (Array.isArray(child)) child.forEach((part) => append(parent, part));
    else parent.append(child instanceof Node ? child : document.createTextNode(String(child)));
}

function make(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (name === "vars") Object.entries(value).forEach(([key, v]) => element.style.setProperty(key, v));
        else element.setAttribute(name, value === true ? "" : value);
    }
    append(element, children);
    return element;
}

export function h(name, attributes, ...children) {
    return make(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
    return make(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

// What labels mean, where their titles tell it only to who points at them. entries: [[label, text], ...]; made once
// somebody opens it.
export function meanings(summary, entries, ...before) {
    if (!entries.length && !before.some(Boolean)) return null;
    const list = h("dl", { class: "meanings" });
    const fill = () => {
        const told = new Map(entries.map(([label, text]) => [`${label}\n${text}`, [label, text]]));
        append(
            list,
            list.childElementCount
                ? null
                : [...told.values()].map(([label, text]) => [h("dt", {}, label), h("dd", {}, text)]),
        );
    };
    return h(
        "details",
        { class: "help", ontoggle: fill },
        h("summary", {}, summary),
        before,
        entries.length > 0 && list,
    );
}

const LONG = 300; // letters, about four lines

// A heading with the name of a kernel. Of a long one it shows the start, and a button the rest.
export function kernelHeading(name, ...before) {
    const heading = h("h1", { class: "kernel" }, before, named(name));
    if (String(name).length <= LONG) return heading;
    heading.classList.add("folded");
    const unfold = ({ currentTarget }) =>
        currentTarget.setAttribute("aria-expanded", String(!heading.classList.toggle("folded")));
    return [heading, h("button", { type: "button", "aria-expanded": "false", onclick: unfold }, "Whole name")];
}

// A note below what it belongs to. No line of it begins with the sign behind a number.
export const note = (...children) =>
    h(
        "span",
        { class: "note" },
        children.map((child) => (typeof child === "string" ? child.replaceAll(" %", "\u00a0%") : child)),
    );

// A section of a page, with its heading.
export const part = (title, ...children) => h("section", {}, h("h2", {}, title), ...children);

// The name of a kernel in a table, which leads to `href` if there is one.
export function kernelName(name, href) {
    return h(href ? "a" : "span", { href, class: "name", title: name }, named(name));
}

// The name of a kernel, with places where a line of it may end; its text is the same.
export function named(name) {
    return String(name)
        .split(/(?<=\w\w\(|[<,_]|::)/)
        .map((part, i) => (i ? [h("wbr"), part] : part));
}
