// Stands in for the command line program of DuckDB, with the engine that npm's package @duckdb/node-api has: runs what
// follows -c and prints what it gives as CSV. The folder that the package is in is KPROF_DUCKDB.
import { createRequire } from "node:module";
import { join } from "node:path";

const { DuckDBInstance } = createRequire(join(process.env.KPROF_DUCKDB, "x.js"))("@duckdb/node-api");
const statements = process.argv.filter((_, i, words) => words[i - 1] === "-c");
const connection = await (await DuckDBInstance.create(":memory:")).connect();
try {
    for (const statement of statements) {
        const reader = await connection.runAndReadAll(statement);
        const isCopy = /^COPY /.test(statement); // its stdout is the file
        if (!isCopy) for (const row of reader.getRowsJson()) console.log(row.map((value) => JSON.stringify(value)).join(","));
    }
} catch (error) {
    console.error(String(error));
    process.exit(1);
}
