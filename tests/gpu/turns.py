"""Programs that are alive together and work by turns (programs/in_turn.py): a machine whose speed changes from second
to second changes for all of them."""
import statistics
import subprocess
import threading

import harness

LIMIT_S = 300


class Skipped(Exception):
    """What a program needs is missing."""


class Turns:
    """Of `programs`, {name: (words, environment)}. Their standard error goes to files in `folder`."""

    def __init__(self, programs, folder):
        self.processes = {}
        self.errors = {name: f"{folder}/{place}.err" for place, name in enumerate(programs)}
        for name, (words, environment) in programs.items():
            with open(self.errors[name], "wb") as errors:
                self.processes[name] = subprocess.Popen(
                    [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                    text=True, start_new_session=True, env=environment)
        self.timer = threading.Timer(LIMIT_S, self.kill)
        self.timer.start()

    def __enter__(self):
        for name in self.processes:
            if self.read(name) != "ready":
                self.processes[name].stdin.close()
                is_skipped = self.processes[name].wait() == harness.SKIPPED
                self.__exit__()
                raise Skipped(name) if is_skipped else harness.Failure(f"{name} did not begin: {self.said(name)}")
        return self

    def __exit__(self, *error):
        self.timer.cancel()
        self.kill()

    def kill(self):
        for process in self.processes.values():
            process.kill()

    def said(self, name):
        with open(self.errors[name], encoding="utf-8", errors="replace") as file:
            return harness.last_lines(file.read())

    def read(self, name):
        return self.processes[name].stdout.readline().strip()

    def ask(self, name, word):
        """The program's answer to a word; Failure when it has ended."""
        try:
            self.processes[name].stdin.write(word + "\n")
            self.processes[name].stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.read(name)
        if not answer:
            raise harness.Failure(f"{name} ended: {self.said(name)}")
        return answer

    def ask_all(self, word, times):
        """{name: [numbers]}; every other time the last one is asked first."""
        answers = {name: [] for name in self.processes}
        for turn in range(times):
            for name in list(answers) if turn % 2 else reversed(answers):
                answers[name].append(float(self.ask(name, word)))
        return answers

    def end(self, name, status=0):
        """What it printed last. Failure unless it ended with the status."""
        process = self.processes[name]
        process.stdin.close()
        lines = process.stdout.read().splitlines()
        if process.wait() != status or not lines:
            raise harness.Failure(f"{name}: status {process.returncode}: {self.said(name)}")
        return lines[-1]


def cost(times, plain):
    """How much longer the turns took than those of the other program beside them, as a part of these: the median."""
    return statistics.median(time / beside for time, beside in zip(times, plain)) - 1


def spread(times, plain):
    """The quartiles of the same."""
    low, _, high = statistics.quantiles([time / beside - 1 for time, beside in zip(times, plain)], n=4)
    return low, high
