#!/usr/bin/env python3
"""Writes the inputs that harnesses begin with, from the shipped sets, the fixtures and the options of kprof:
write_seeds.py SOURCE FOLDER, where FOLDER has one folder for each harness."""
import json
import pathlib
import re
import struct
import sys

source, folder = map(pathlib.Path, sys.argv[1:])

NAMES = """_Z9vectorAddPKfS0_Pfi
_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5ArrayIPcLi1EEEEEviT0_T1_
_ZN7cutlass6KernelINS_4gemm6kernel4GemmIvEEEEvNT_6ParamsE
_ZNK5thrust8identityclIiEEDTclsr3stdE7forwardIT_Efp_EEOS2_
_ZZN3foo3barEvENKUlvE_clEv
plain_kernel""".splitlines()
KERNELS = ["", "vectorAdd", "regex:^vec.*Add$", "regex:(a|b)+[^c]*(?=d)", "regex:(", r"regex:\d{2,}?\x{41}"]
CONDITIONS = ["duration>+1%", "dram__bytes.sum>=+3%", "sm__cycles_active.avg<-0.5", "duration<=1e3", "a__b.sum>5e-324%"]
EXPRESSIONS = ["a__b.sum", "1+2*-3/(4-a__b.sum)", "if(a__b.sum>1 and not b__c.avg<=2, min(1,2), max(3,sum(4,5)))",
               "if_missing(a__b.sum, floor(1.5e3)+ceil(.5))", "1 == 1 != 0 or a__b.sum >= 2"]
METRICS = ["mdram__bytes", "mdram__bytes.sum\nmlaunch__waves_per_multiprocessor", "mregex:^sm__.*", "mregex:bytes|time",
           "mbreakdown:sm__throughput", "mgroup:SpeedOfLight", "Sfull", "sregex:Memory.*\nmsm__throughput.avg",
           "Sbasic\nsSpeedOfLight\nmgpu__time_duration.sum", "mdram__byte", "mdevice__attribute_cc_major"]


def write(harness, name, content):
    path = folder / harness
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def expressions_of(value):
    """Yields the strings of a file that might be expressions."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("metric", "when", "value", "gain", "expression") and isinstance(inner, str):
                yield inner
            yield from expressions_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions_of(inner)


def write_metricsets():
    found = set(EXPRESSIONS)
    for kind, letter in (("sets", "S"), ("sections", "D"), ("findings", "F"), ("aliases", "A")):
        for file in sorted((source / "metricsets" / kind).glob("*.json")):
            text = file.read_text()
            found.update(expressions_of(json.loads(text)))
            if letter == "S":
                value = json.loads(text)
                text = json.dumps(value | {"id": "s", "sections": ["s"]})
            if letter == "A":
                value = json.loads(text)
                text = json.dumps(value | {"aliases": value["aliases"][::12]})
            write("metricset", f"{kind}-{file.stem}", letter + json.dumps(json.loads(text), separators=(",", ":")))
    for file in sorted((source / "tests/golden/sections").glob("*.json")):
        write("metricset", f"stored-{file.stem}", "J" + file.read_text())
    for i, text in enumerate(sorted(found, key=lambda text: (len(text), text))[::4]):
        write("expr", f"{i:03}", text)


NVTX = ["step/", "[step/+/in", "net@a\\/b/", "regex:n.t@/[ab]c,x[0-9/]", "a,b"]


def write_options():
    table = (source / "docs/man/kprof.1").read_text()
    names = sorted(set(re.findall(r"\\-\\-([a-z][a-z\\-]+)", table)))
    for i, name in enumerate(names):
        option = "--" + name.replace("\\", "")
        write("options", f"{i:03}", f"{option}\n1\n./app\n")
    lines = ["report\na.kprof\n--page\nraw\n--csv", "--set=full\n-k\nregex:a\n-c\n3\n--\n./app\na b\nit's",
             "diff\na.kprof\nb.kprof\n--fail-on\nduration>1%", "list\nmetrics\n--chips\nGH100", "help\nreport",
             "plan\n--budget\n1.5\n--allocated\n16GB\n--devices\n0,3\n./app", "recover\n-f",
             "--nvtx-include\nnet@a/*/b]\n--nvtx-exclude\nregex:x\n./app",
             "--complete\noptions\n--pa"]
    for i, line in enumerate(lines):
        write("options", f"line-{i}", line)


def write_values():
    """Edits, as fuzz_values.c reads them: how to print, the report, then column, row, what and value."""
    for i in range(24):
        edit = struct.pack("<HBBBB", 13 * i, i % 3, 0, i % 6, i % 5)
        text = struct.pack("<HBBBB", 7 * i, 0, 255 - i % 7, 3, 4) + b"\x1b[m\n"
        write("values", f"{i:02}", struct.pack("<HB", 0x1041 * i & 0xffff, i & 1) + edit + text)
        trace = struct.pack("<HBBBB", 311 - i, i % 5, 249 + i % 3, 2, i) + edit
        write("values", f"trace-{i:02}", struct.pack("<HB", 0x1100 * i & 0xffff | 0x100, 3) + trace)


def write_code():
    """The source page of the report of instructions in each format, as it is and with edits."""
    rows = (source / "src/report/report.h").read_text()
    pages = re.findall(r"^    X\((\w+), \w+, \d\)", rows, re.MULTILINE)
    ways = [how for how in range(0, 0x10000, 8) if how // 8 % (len(pages) + 1) == pages.index("SOURCE")]
    for how in ways[::41]:
        edits = b"".join(struct.pack("<HBBBB", (how * 7 + 11 * k) % 0x10000, 1 + k, 0, k % 6, how % 5)
                         for k in range(3))
        write("values", f"code-{how:04x}", struct.pack("<HB", how, 2) + edits)
    write("report", "code", struct.pack("<H", 8 * pages.index("SOURCE"))
          + (source / "tests/fixtures/source/source.kprof").read_bytes())


def write_cubins():
    for file in (source / "tests/fixtures/code").glob("*.cubin"):
        write("code", file.name, b"c" + file.read_bytes())
    for file in (source / "tests/fixtures/code").glob("*.sass"):
        write("code", file.name, b"l" + file.read_bytes())


def write_lines():
    for i, kernel in enumerate(KERNELS):
        write("nvtx", f"{i}", NVTX[i % len(NVTX)] + "\n" + "step/*/in]\nstep/x/in/; net@a\\\\/b/; epoch\n")
        write("filter", f"{i}", kernel + "\n" + chr(i) + "\0\0\0\n" + "\n".join(NAMES[i % 2::2]) + "\n")
    for i, condition in enumerate(CONDITIONS):
        write("condition", f"{i}", condition)
    for i, words in enumerate(METRICS):
        write("metrics", f"{i:02}", chr(i % 3) + words)
    write("cache", "empty", b"")
    write("cache", "placement", b"smsp__inst_executed@3 dram__bytes@0 \nsm__cycles@1 \n")


write_metricsets()
write_options()
write_values()
write_code()
write_cubins()
write_lines()
