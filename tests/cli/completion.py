#!/usr/bin/env python3
"""Completion as the shells do it: each of bash, zsh and fish that is installed is asked to complete the same lines.
Usage: completion.py SOURCE KPROF"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, KPROF = pathlib.Path(sys.argv[1]).resolve(), os.path.abspath(sys.argv[2])
SKIPPED = 77

BASH = r"""
source "$SCRIPT"
COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_CWORD=0
_kprof
printf '%s\n' "${COMPREPLY[@]}"
"""

# Outside of completion its builtins do not work: these stand in for them.
ZSH = r"""
compadd() { local name=${@[-1]}; print -l -- ${(P)name} }
compset() { PREFIX=${PREFIX#*=} }
_files() {
    local pattern='*' file
    [[ $1 == -g ]] && pattern=$2
    [[ $1 == -/ ]] && pattern=
    for file in $PREFIX${~pattern}(N) $PREFIX*(N/); do print -r -- $file; done
}
_command_names() { print -l -- ${(k)commands} }
_normal() { print -l -- "words: $words" }
words=(${(z)LINE}); [[ $LINE == *' ' ]] && words+=('')
CURRENT=${#words} PREFIX=${words[-1]}
source "$SCRIPT"
"""

FISH = r"""
source $SCRIPT
complete -C $LINE | string replace -r '\t.*' ''
"""

SHELLS = {"bash": (["bash", "--norc", "-c", BASH], "kprof.bash"), "zsh": (["zsh", "-f", "-c", ZSH], "_kprof"),
          "fish": (["fish", "--no-config", "-c", FISH], "kprof.fish")}


class Completion:
    shell = ""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="kprof-completion-")
        shutil.copy(SOURCE / "samples/vectorAdd-h200.kprof", os.path.join(cls.dir, "run.kprof"))
        open(os.path.join(cls.dir, "notes.txt"), "w").close()
        os.mkdir(os.path.join(cls.dir, "runs"))
        os.mkdir(os.path.join(cls.dir, "bin"))
        os.symlink(KPROF, os.path.join(cls.dir, "bin/kprof"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def complete(self, line):
        command, script = SHELLS[self.shell]
        environment = {**os.environ, "LINE": "kprof " + line, "SCRIPT": str(SOURCE / "completion" / script),
                       "PATH": os.path.join(self.dir, "bin") + ":" + os.environ["PATH"], "HOME": self.dir}
        run = subprocess.run(command, cwd=self.dir, env=environment, capture_output=True, text=True)
        return {word.rstrip("/") for word in run.stdout.split("\n") if word}, run.stderr

    def assert_offered(self, line, *expected, never=()):
        words, errors = self.complete(line)
        for word in expected:
            self.assertIn(word, words, f"{line}: {sorted(words)[:20]} {errors}")
        for word in never:
            self.assertNotIn(word, words, line)

    def test_commands_and_options(self):
        self.assert_offered("rep", "report")
        self.assert_offered("list ", "sets", "sections", "chips", "metrics", "aliases")
        self.assert_offered("--pag", "--page", never=["--plan"])
        self.assert_offered("report run.kprof --print-s", "--print-summary")
        self.assert_offered("help pl", "plan")

    def test_values(self):
        self.assert_offered("--page ra", "raw", never=["details"])
        self.assert_offered("--set basic,defau", "basic,default")
        self.assert_offered("--call-stack-type native,py", "native,python")
        self.assert_offered("--section SpeedOf", "SpeedOfLight")
        self.assert_offered("report run.kprof --rule WarpSt", "WarpStall")
        self.assert_offered("stats run.kprof --report gpu_busy,cuda_gpu_kern_s", "gpu_busy,cuda_gpu_kern_sum",
                            never=["gpu_busy,osrt_sum"])

    def test_an_option_is_no_value(self):
        self.assert_offered("--metrics --page ra", "raw", never=["details"])
        self.assert_offered("report run.kprof -k --csv --page ra", "raw")
        self.assert_offered("--log-file - --page ra", "raw")

    def test_reports(self):
        self.assert_offered("-i ", "run.kprof", "runs", never=["notes.txt"])
        self.assert_offered("report ru", "run.kprof", "runs", never=["notes.txt"])
        self.assert_offered("diff ru", "run.kprof", "runs", never=["notes.txt"])
        self.assert_offered("diff run.kprof ru", "run.kprof", "runs", never=["notes.txt"])
        self.assert_offered("diff run.kprof run.kprof ru", never=["run.kprof"])
        self.assert_offered("report run.kprof --baseline ru", "run.kprof", never=["notes.txt"])
        self.assert_offered("-o n", "notes.txt")
        self.assert_offered("--section-folder ", "runs", never=["notes.txt"])
        self.assert_offered("recover ", "runs", never=["notes.txt", "run.kprof"])

    def test_kernels_of_a_report(self):
        self.assert_offered("report run.kprof -k ", "vectorAdd")
        self.assert_offered("-i run --kernel-name vec", "vectorAdd")
        self.assert_offered("diff run.kprof -k ", "vectorAdd")
        self.assert_offered("-k ", never=["vectorAdd"])

    def test_metrics(self):
        if subprocess.run([KPROF, "list", "chips"], capture_output=True).returncode != 0:
            self.skipTest("CUPTI's host library is missing")
        self.assert_offered("--chips GH100 --metrics dram__by", "dram__bytes", "dram__bytes_read")
        self.assert_offered("--metrics dram__bytes,gpu__time_dur", "dram__bytes,gpu__time_duration")
        self.assert_offered("--metrics dram__bytes.su", "dram__bytes.sum", "dram__bytes.sum.per_second")

    def test_aliases(self):
        self.assert_offered("--metrics dram.band", "dram.bandwidth", never=["dram.bytes", "dram__bytes"])
        self.assert_offered("--metrics l2.bytes,gld_eff", "l2.bytes,gld_efficiency")
        self.assert_offered("--metrics cf_", "cf_executed", never=["cf_issued"])
        self.assert_offered("explain occupancy.", "occupancy.achieved", "occupancy.theoretical")
        self.assert_offered("explain duration l2.hit", "l2.hit_rate")
        self.assert_offered("explain SpeedOfL", "SpeedOfLight")
        self.assert_offered("explain WarpS", "WarpStall")
        self.assert_offered("explain ", never=["regex:", "run.kprof"])

    def test_programs(self):
        self.assert_offered("kpr", "kprof")
        self.assert_offered("plan kpr", "kprof")
        self.assert_offered("-- ", "kprof")

    def test_own_words_before_programs(self):
        self.assert_offered("", "report", "diff", "--set", "-k", never=["kprof", "ls"])
        self.assert_offered("--csv ", "report", "--set", never=["kprof", "ls"])
        self.assert_offered("plan ", "--set", never=["kprof", "ls", "report", "--html"])


class Line(unittest.TestCase):
    def test_a_line_that_is_wrong_is_completed_in_silence(self):
        for line in "plan --chips gv100 --metrics dram__byt", "--page --metrics dram__byt", "report none.kprof -k ":
            run = subprocess.run([KPROF, "--complete", "line", "--", *line.split(" ")], capture_output=True, text=True)
            self.assertEqual(run.stderr, "", line)


class Bash(Completion, unittest.TestCase):
    shell = "bash"

    def test_words_that_bash_breaks(self):
        self.assert_offered("--page=ra", "raw")
        self.assert_offered("-i run.kprof --metrics=x,group:SpeedOf", "SpeedOfLight")


@unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
class Zsh(Completion, unittest.TestCase):
    shell = "zsh"

    def test_an_application_completes_itself(self):
        self.assert_offered("--page raw cat fi", "words: cat fi")


@unittest.skipUnless(shutil.which("fish"), "there is no fish")
class Fish(Completion, unittest.TestCase):
    shell = "fish"

    def test_an_application_completes_itself(self):
        self.assert_offered("--page raw cat notes", "notes.txt")

    def test_values_after_an_equals_sign(self):
        self.assert_offered("--page=ra", "--page=raw")
        self.assert_offered("--import=ru", "--import=run.kprof")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
