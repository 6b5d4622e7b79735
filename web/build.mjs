// Writes src/report/html/report.html, the one file that kprof puts data into, and THIRD-PARTY.txt, the licences of what
// is in it. Usage: npm install --no-package-lock && npm run build
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const out = new URL("../src/report/html/", here);
const read = (name) => readFileSync(new URL(name, here), "utf8");

async function bundle() {
    const result = await build({
        entryPoints: [new URL("src/main.js", here).pathname],
        bundle: true,
        minify: true,
        write: false,
        format: "iife",
        target: "es2020",
        charset: "ascii",
        legalComments: "none",
        define: { "process.env.NODE_ENV": '"production"' },
    });
    // Nothing in the script may end its element.
    return result.outputFiles[0].text.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

function licences() {
    const parts = [
        ["echarts", ["NOTICE", "LICENSE", "licenses/LICENSE-d3"]],
        ["zrender", ["LICENSE"]],
        ["tslib", ["LICENSE.txt"]],
    ];
    const intro = "The page that kprof report --html writes contains parts of the following works, minified.\n";
    return (
        intro +
        parts
            .map(([name, files]) => {
                const version = JSON.parse(read(`node_modules/${name}/package.json`)).version;
                const texts = files.map((file) =>
                    read(`node_modules/${name}/${file}`)
                        .trim()
                        .replace(/[ \t]+$/gm, ""),
                );
                return `\n${"=".repeat(100)}\n${name} ${version}\n${"=".repeat(100)}\n\n${texts.join("\n\n")}\n`;
            })
            .join("")
    );
}

// Tells the test of the page whether it was built of the sources that are here.
function sourceHash() {
    const names = [
        "build.mjs",
        "package.json",
        "page.html",
        "style.css",
        ...readdirSync(new URL("src", here))
            .sort()
            .map((name) => `src/${name}`),
    ];
    const hash = createHash("sha256");
    names.forEach((name) => hash.update(read(name)));
    return hash.digest("hex");
}

const trimmed = (text) => text.replace(/[ \t]+$/gm, "").trim(); // before the hash is taken
const script = `\n${trimmed(await bundle())}\n`;
const notice =
    "Contains Apache ECharts 5.6.0, Copyright 2017-2024 The Apache Software Foundation (Apache License 2.0), " +
    "ZRender (BSD 3-Clause, Copyright (c) 2017, Baidu Inc.), " +
    "d3 (BSD 3-Clause, Copyright 2010-2016 Mike Bostock) and tslib (0BSD, Copyright (c) Microsoft Corporation).";
const page = read("page.html")
    .replace("@NOTICE@", () => notice)
    .replace("@HASH@", () => createHash("sha256").update(script).digest("base64"))
    .replace("@SOURCES@", sourceHash)
    .replace("@STYLE@", () => trimmed(read("style.css")))
    .replace("@SCRIPT@", () => script);
writeFileSync(new URL("report.html", out), page);
writeFileSync(new URL("THIRD-PARTY.txt", out), licences());
