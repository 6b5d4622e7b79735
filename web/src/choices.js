// What the reader has chosen in a view: the order of a table, a search. The browser's history keeps it with its entry,
// so that a reload shows it again.

// Browsers refuse to write as often as a key that is held down asks for: then the last choice is written a bit later.
const [MOST_WRITES, WITHIN_MS, LATER_MS] = [20, 10000, 300];
let [chosen, timer, writes] = [{}, 0, []];

function write() {
    clearTimeout(timer);
    timer = 0;
    writes.push(performance.now());
    history.replaceState({ ...history.state, chosen }, "");
}

// undefined: nothing was chosen
export const recall = (what) => chosen[what];

export function remember(what, value) {
    chosen = { ...chosen, [what]: value };
    writes = writes.filter((at) => performance.now() - at < WITHIN_MS);
    clearTimeout(timer);
    if (writes.length < MOST_WRITES) write();
    else timer = setTimeout(write, LATER_MS);
}

// The number of the history's entry that is shown: `next` where it is new. A new entry of the same view has its
// choices.
export function enter(next, isSameView) {
    const isNew = !Number.isInteger(history.state?.entry);
    const { entry, ...known } = isNew ? { entry: next } : history.state;
    chosen = (isSameView ? chosen : known.chosen) ?? {};
    clearTimeout(timer);
    history.replaceState({ entry, chosen }, "");
    return { entry, isNew };
}
