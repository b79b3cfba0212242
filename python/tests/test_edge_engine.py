"""Programs that must neither crash nor hang, each in a process of its own with a time limit."""

import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import gc, signal, sys, threading, time
import numpy as np
import taut as tf

def updating(times):
    v = tf.Variable(tf.zeros([50, 50]))

    @tf.function(autograph=False)
    def step():
        def body(i):
            v.assign(tf.tanh(v @ v))
            return i + 1

        tf.while_loop(lambda i: i < times, body, [0])

    return v, step
"""

# name: (what is run, what it prints)
CASES = {
    "an iterator is dropped while its worker is in Python": (
        """
        def slow():
            while True:
                time.sleep(0.05)
                yield 1.0
        for x in tf.data.Dataset.from_generator(slow).prefetch(8):
            break
        print("over")
        """,
        "over",
    ),
    "an iterator is there when the interpreter ends": (
        """
        def slow():
            while True:
                time.sleep(0.2)
                yield 1.0
        class Cycle: pass
        cycle = Cycle()
        cycle.me, cycle.it = cycle, iter(tf.data.Dataset.from_generator(slow).prefetch(2))
        next(cycle.it)
        print("over")
        """,
        "over",
    ),
    "a thread waits for data when the interpreter ends": (
        """
        def slow():
            yield 1.0
            time.sleep(1000)
        it = iter(tf.data.Dataset.from_generator(slow).prefetch(2))
        next(it)
        threading.Thread(target=lambda: next(it), daemon=True).start()
        time.sleep(0.2)
        print("over", flush=True)
        """,
        "over",
    ),
    "a key press while data is waited for": (
        """
        def stuck():
            yield 1.0
            time.sleep(1000)
        threading.Timer(0.5, lambda: signal.raise_signal(signal.SIGINT)).start()
        try:
            for x in tf.data.Dataset.from_generator(stuck).prefetch(4):
                pass
        except KeyboardInterrupt:
            print("over", flush=True)
        import os; os._exit(0)
        """,
        "over",
    ),
    "an iterator outlives the object whose method it calls": (
        """
        class Loader:
            def __init__(self):
                self.k = 2
                self.rows = tf.data.Dataset.range(1, 10).map(self.times)
            def times(self, x):
                return x * self.k
        rows = iter(Loader().rows)
        both = tf.data.Dataset.zip((Loader().rows, Loader().rows))
        gc.collect()
        print(int(next(rows)), int(next(iter(both))[1]))
        """,
        "2 2",
    ),
    "an iterator inside of its own generator": (
        """
        def rows():
            yield 1.0
            next(it)
        it = iter(tf.data.Dataset.from_generator(rows))
        next(it)
        try:
            next(it)
        except (RuntimeError, ValueError):
            print("refused")
        """,
        "refused",
    ),
    "a variable is read by one thread while another trains": (
        """
        v, step = updating(2000)
        step()
        over = threading.Event()
        def read():
            while not over.is_set():
                v.numpy(); v + 1.0; v.assign_add(tf.zeros([50, 50])); v.address
        reader = threading.Thread(target=read)
        reader.start()
        end = time.time() + 2
        while time.time() < end:
            step()
        over.set()
        reader.join()
        print("over")
        """,
        "over",
    ),
    "a handler of signals reads a variable in the middle of its update": (
        """
        v, step = updating(20000)
        seen = []
        def handler(*_):
            for read in (v.numpy, v.read_value, step, lambda: v.assign_add(tf.zeros([50, 50])), lambda: repr(v)):
                try:
                    read()
                except Exception as error:
                    seen.append(type(error))
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        end = time.time() + 2
        while time.time() < end:
            step()
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("over")
        """,
        "over",
    ),
    "a function inside a step reads the variable that the step updates": (
        """
        v = tf.Variable(tf.zeros([3]))
        def look(x):
            v.numpy()
            return x
        @tf.function(autograph=False)
        def step(x):
            v.assign_add(x)
            return tf.numpy_function(look, [x], tf.TensorSpec([3]))
        try:
            step(tf.ones([3]))
        except ValueError as error:
            print("during its own update" in str(error))
        """,
        "True",
    ),
    "an argument's == calls the function": (
        """
        f = None
        class One:
            def __hash__(self): return 1
            def __eq__(self, other):
                if f is not None:
                    f(tf.ones([1]), 3)
                return isinstance(other, One)
        made = tf.function(lambda x, one: x, on_retrace="allow", autograph=False)
        made(tf.ones([1]), One())
        f = made
        made(tf.ones([1]), One())
        print("over")
        """,
        "over",
    ),
    "lists in themselves": (
        """
        ring, deep = [], 1.0
        ring.append(ring)
        rings = {}
        rings["a"] = rings
        for _ in range(100_000):
            deep = (deep,)
        f = tf.function(lambda x: 1.0, autograph=False)
        g = tf.function(lambda: deep, autograph=False)
        with tf.GradientTape() as tape:
            pass
        refused = 0
        for work in (lambda: tf.constant(ring), lambda: tf.constant(deep), lambda: f(ring), lambda: f(rings), lambda: f(deep), g,
                     lambda: tf.stack(ring), lambda: tf.ones([3])[ring], lambda: tape.gradient(ring, ring)):
            try:
                work()
            except (RecursionError, ValueError, TypeError):
                refused += 1
        print(refused)
        """,
        "9",
    ),
    "keys without an order of their own": (
        """
        import random
        class Key:
            def __lt__(self, other): return random.random() < 0.5
            __gt__ = __lt__
        f = tf.function(lambda d: 1.0, autograph=False, on_retrace="allow")
        for _ in range(30):
            try:
                f({Key(): 1 for _ in range(200)})
            except Exception:
                pass
        print("over")
        """,
        "over",
    ),
    "tapes and other threads": (
        """
        kinds = []
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        def elsewhere(work):
            def run():
                try:
                    work()
                except BaseException as error:
                    kinds.append(isinstance(error, Exception))
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
        elsewhere(lambda: tape.gradient(y, x))
        scope = tf.init_scope()
        elsewhere(scope.__enter__)
        sys.unraisablehook = lambda what: kinds.append(what.exc_value)
        gc.disable()
        before = tf.memory.live_bytes()
        def garbage():
            class Ring: pass
            ring = Ring()
            ring.me = ring
            with tf.GradientTape() as ring.tape:
                z = tf.ones([1000])
                ring.tape.watch(z)
                ring.y = tf.exp(z)
        elsewhere(garbage)
        gc.collect()
        print(kinds, tf.memory.live_bytes() - before)
        """,
        "[True, True] 0",
    ),
    "a tape is entered while it answers": (
        """
        x = tf.constant(2.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            @tf.custom_gradient
            def f(x):
                def back(up):
                    with tape:
                        pass
                    return up
                return x * 2.0, back
            y = f(x)
        try:
            tape.gradient(y, x)
            print("fine")
        except Exception:
            print("fine")
        """,
        "fine",
    ),
    "an iterator of the parent in a forked child": (
        """
        import os
        it = iter(tf.data.Dataset.range(100).map(lambda x: x, num_parallel_calls=2).prefetch(2))
        next(it)
        child = os.fork()
        if child == 0:
            signal.alarm(6)
            kinds = []
            try:
                for _ in range(50):
                    next(it)
            except Exception as error:
                kinds.append(1)
            sys.unraisablehook = lambda what: kinds.append(2)
            del it
            os._exit(0 if kinds == [1] else 1)
        print(os.waitpid(child, 0)[1])
        """,
        "0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_neither_crash_nor_hang(name):
    work, printed = CASES[name]
    code = BEGIN + textwrap.dedent(work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=12)
    assert (done.returncode, done.stdout.strip()) == (0, printed), done.stderr[-2000:]
