"""Takes call stacks in the real Python that runs this file, and compares them with what Python itself says.

Usage: pythonX.Y check_python.py WALKER_LIBRARY [cost]
"""
import ctypes
import os
import random
import sys
import threading
import traceback

NATIVE, PYTHON, BOTH = 1, 2, 3
HERE = os.path.abspath(__file__)

free = ctypes.CDLL(sys.argv[1])  # calls release the GIL
held = ctypes.PyDLL(sys.argv[1])  # calls keep it
for library in (free, held):
    library.take.restype = library.take_in_c_thread.restype = ctypes.c_char_p
    library.cost_us.restype = ctypes.c_double
    library.walk_is_harmless.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)


def parse(text):
    lines = text.decode().split("\n")
    state, reason = lines[-1].split("\t")
    frames = [tuple(line.split("\t")) for line in lines[:-1]]
    return [(kind, function, file, int(place)) for kind, function, file, place in frames], state, reason


def stack(library=free, kinds=PYTHON):
    return parse(library.take(kinds))


def name_of(frame):
    code = frame.f_code
    return getattr(code, "co_qualname", code.co_name)


def own_frames(frame):
    found = []
    while frame:
        found.append(("python", name_of(frame), frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return found


def check_same(library):
    """What calls this is checked against Python's own frames; the first two lines differ."""
    frames, state, reason = stack(library)
    own = own_frames(sys._getframe())
    assert frames[0][:3] == ("python", "stack", HERE), frames[0]
    assert [f[:3] for f in frames[1:]] == [f[:3] for f in own], (frames[1:], own)
    assert [f[3] for f in frames[2:]] == [f[3] for f in own[1:]], (frames[2:], own)
    assert frames[1][3] == own[0][3] - 1, (frames[1], own[0])
    assert (state, reason) == ("whole", ""), (state, reason)


def check_both():
    check_same(free)
    check_same(held)
    assert free.native_is_as_of_glibc() == 1


class Module:
    def __call__(self, count):  # the interpreter calls it by way of C
        return self.forward(count)

    def forward(self, count):
        if count:
            return (
                sorted([self], key=lambda module:
                       module(count - 1)))
        check_both()
        return 0


def generator():
    for number in range(2):
        check_both()
        yield number
        check_both()


def outer_generator():
    yield from generator()


async def coroutine():
    async def inner():
        check_both()
        return 1
    return await inner()


def check_generators():
    assert list(outer_generator()) == [0, 1]
    assert sum(x for x in [check_both() or 1 for _ in range(2)]) == 2
    running = coroutine()
    try:
        running.send(None)
    except StopIteration as end:
        assert end.value == 1


def check_ways_in_turn():
    """The same frames at the same addresses, called from other lines, through other functions and in other depths."""
    def step(ways):
        if not ways:
            return check_both()
        way, rest = ways[0], ways[1:]
        if way == 0:
            return step(rest)
        if way == 1:
            return sorted([rest], key=lambda rest: step(rest) or 0)
        if way == 2:
            return [step(rest) for _ in range(2)]
        return list(step(rest) for _ in range(2))
    choose = random.Random(1)
    for _ in range(200):
        step([choose.randrange(4) for _ in range(choose.randrange(7))])


def check_exceptions():
    try:
        raise ValueError
    except ValueError:
        check_both()
    finally:
        check_both()
    with threading.Lock():
        check_both()


def check_places():
    """Lines far from the first one, of a statement of several lines, and behind many instructions."""
    source = "def far(check):\n" + "    x = 1\n" * 700 + "    if x:\n" + "\n" * 300
    source += "        check(\n)\n    return x\n"
    scope = {}
    exec(compile(source, "made.py", "exec"), scope)
    scope["far"](check_both)


def check_code_that_comes_and_goes():
    """Code objects at the address of others that are gone have their own names and lines."""
    for number in range(300):
        scope = {"stack": stack}
        name = "step_%03d" % number
        exec(compile("\n" * (number % 7) + "def %s():\n    return stack()\nfound = %s()" % (name, name), "made.py",
                     "exec"), scope)
        frames = scope["found"][0]
        assert frames[1] == ("python", name, "made.py", number % 7 + 2), (number, frames[1])
        scope.clear()


def check_code_that_differs_in_lines_alone():
    """What is new may lie where what is gone lay, with its name, and with its table of lines at the same address."""
    tables = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"
    codes = [compile("x = 1\n" + "\n" * lines + "found = stack()", "made.py", "exec")
             for lines in range(7)]
    for number in range(300):
        scope = {"stack": stack}
        exec(codes[0].replace(**{tables: bytes(bytearray(getattr(codes[number % 7], tables)))}), scope)
        frames = scope["found"][0]
        assert frames[1] == ("python", "<module>", "made.py", number % 7 + 2), (number, frames[1])


def check_names():
    name = "größe_\u4e2d\U00020000"
    scope = {"stack": stack}
    exec(compile("def %s():\n  return stack()\n" % name, "\u0434\u0430/\u00e9.py", "exec"), scope)
    frames = scope[name]()[0]
    assert frames[1] == ("python", name, "\u0434\u0430/\u00e9.py", 2), frames[1]
    long = "n" * 1000
    scope = {"stack": stack}
    exec(compile("def %s():\n  return stack()\n" % long, "f" * 5000, "exec"), scope)
    frames = scope[long]()[0]
    assert frames[1][1] == "n" * 255 and frames[1][2] == "f" * 1023, frames[1]


def deep(depth):
    return stack() if depth == 0 else deep(depth - 1)


def check_depth():
    sys.setrecursionlimit(20000)
    frames, state, _ = deep(5000)
    assert len(frames) == 256 and state == "cut", (len(frames), state)
    assert [f[1] for f in frames[:3]] == ["stack", "deep", "deep"]


def check_threads():
    """Each thread has its own, also beside others that run Python all the time, and one without Python has none."""
    stop, failed = threading.Event(), []

    def spin():
        while not stop.is_set():
            sum(range(100))

    def work():
        try:
            for _ in range(200):
                check_both()
        except BaseException:
            failed.append(traceback.format_exc())
    spinning = threading.Thread(target=spin)
    spinning.start()
    working = [threading.Thread(target=work) for _ in range(4)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    stop.set()
    spinning.join()
    assert not failed, failed[0]
    frames, state, reason = parse(free.take_in_c_thread(PYTHON))
    assert (frames, state, reason) == ([], "whole", "the thread runs no Python"), (frames, state, reason)
    for _ in range(50):
        parse(free.take_in_c_thread(BOTH))


def check_native():
    frames, state, reason = stack(free, NATIVE)
    assert reason == "" and len(frames) > 3 and all(f[0] == "native" for f in frames), frames
    assert not any("walker" in f[2] for f in frames), frames
    assert any("ctypes" in f[2] or "ffi" in f[2] for f in frames[:3]), frames[:3]
    both, _, _ = stack(free, BOTH)
    kinds = [f[0] for f in both]
    assert kinds == sorted(kinds, reverse=True) and set(kinds) == {"native", "python"}, kinds
    assert both[0][1] == "stack"


def check_each_once():
    def here():
        return stack()
    for _ in range(3):
        here()
    before = free.taken_stacks(), free.taken_frames()
    for _ in range(100):
        here()
    after = free.taken_stacks(), free.taken_frames()
    assert after[0] <= before[0] + 1 and after[1] <= before[1] + 1, (before, after)  # of this second line


def check_damage():
    """Memory that is anything but a thread's state gives no fault."""
    memory = (ctypes.c_char * 4096)()
    for seed in range(3000):
        assert free.walk_is_harmless(ctypes.addressof(memory), 4096, seed) == 1


def costs_in_turn(kinds):
    """Of stacks of 52 different functions, of which the inner ten are others in each of eight turns."""
    scope = {"costs": [], "take": lambda: scope["costs"].append(free.cost_us(kinds, 1))}
    for number in range(40):
        exec(compile("def outer%d():\n    outer%d()" % (number, number + 1), "outer%d.py" % number, "exec"), scope)
    for turn in range(8):
        for number in range(10):
            text = "def inner%d_%d():\n    inner%d_%d()" % (turn, number, turn, number + 1)
            exec(compile(text, "inner%d_%d.py" % (turn, number), "exec"), scope)
        scope["inner%d_10" % turn] = scope["take"]
    for call in range(2000):
        scope["outer40"] = scope["inner%d_0" % (call % 8)]
        scope["outer0"]()
    return sorted(scope["costs"][1000:])[500]


def report_cost():
    def at_depth(depth):
        if depth:
            return at_depth(depth - 1)
        return [min(library.cost_us(kinds, 2000) for _ in range(7)) for library, kinds in
                ((free, PYTHON), (held, PYTHON), (free, NATIVE), (free, BOTH))]
    for depth in (0, 10, 48):
        costs = at_depth(depth)
        print("%d.%d depth %d: python %.2f, with the GIL %.2f, native %.2f (%d frames), both %.2f us" % (
            sys.version_info[:2] + (depth + 4,) + tuple(costs[:3]) + (len(stack(free, NATIVE)[0]), costs[3])))
    print("%d.%d 52 different functions in turn: python %.2f, native %.2f, both %.2f us" % (
        sys.version_info[:2] + tuple(costs_in_turn(kinds) for kinds in (PYTHON, NATIVE, BOTH))))


if len(sys.argv) > 2:
    report_cost()
    sys.exit()
check_both()
Module()(6)
check_generators()
check_ways_in_turn()
check_exceptions()
check_places()
check_code_that_comes_and_goes()
check_code_that_differs_in_lines_alone()
check_names()
check_depth()
check_threads()
check_native()
check_each_once()
check_damage()
print("Python %d.%d: %d stacks of %d frames" % (sys.version_info[:2] + (free.taken_stacks(), free.taken_frames())))
