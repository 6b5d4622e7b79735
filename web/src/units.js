// Values as people read them; the same scales and digits as in kprof's text.

const SCALED = [
    ["cycle/second", "Hz", true],
    ["hz", "Hz", true],
    ["byte", "B", false],
    ["flop", "FLOP", false],
    ["op", "OP", false],
];
const PREFIXES = ["", "K", "M", "G", "T", "P", "E"];
const TIMES = ["ns", "us", "ms", "s"];

function digits(value) {
    const size = Math.abs(value);
    if (size > 0 && size < 0.01) {
        const rounded = Number(value.toPrecision(3));
        if (Math.abs(rounded) >= 1e-4) return String(rounded);
        const [number, exponent] = rounded.toExponential().split("e-");
        return `${number}e-${exponent.padStart(2, "0")}`;
    }
    if (size >= 1e15) return Number(value.toPrecision(15)).toExponential();
    const text = value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
    return text.endsWith(".00") && Number.isInteger(Number(value.toFixed(2))) && Number.isInteger(value)
        ? text.slice(0, -3)
        : text;
}

function scaledUnit(unit) {
    return SCALED.find(([base, , whole]) => unit === base || (!whole && unit.startsWith(base + "/")));
}

function reduce(value, steps) {
    let step = 0;
    for (; Math.abs(value) >= 1000 && step + 1 < steps; step++) value /= 1000;
    return [value, step];
}

function prefixed(value, unit) {
    const scaled = scaledUnit(unit);
    const [number, step] = reduce(value, PREFIXES.length);
    if (!scaled) return [digits(number), `${PREFIXES[step]}${unit.slice(0, -"/second".length)}/s`];
    const rest = unit.slice(scaled[0].length);
    const prefix = step === 1 && scaled[2] ? "k" : PREFIXES[step];
    return [digits(number), `${prefix}${scaled[1]}${rest === "/second" ? "/s" : rest}`];
}

// [number, unit]; value null: not measured.
export function scale(value, unit) {
    if (value === null || value === undefined) return ["n/a", ""];
    if (unit === "ns") {
        const [number, step] = reduce(value, TIMES.length);
        return [digits(number), TIMES[step]];
    }
    if (unit === "khz") return prefixed(value * 1000, "hz");
    if (scaledUnit(unit) || (unit.endsWith("/second") && unit.length < 32)) return prefixed(value, unit);
    return [digits(value), unit];
}

export function human(value, unit = "", signed = false) {
    const [number, spelled] = scale(value, unit);
    const text = signed && value > 0 ? `+${number}` : number;
    return spelled ? `${text} ${spelled}` : text;
}
