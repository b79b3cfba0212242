"""Data-parallel training beside `torch.distributed` (DDP with gloo): all-reduces, a training step, resident memory.

`cargo xtask bench distribute` runs it with a release build of the package. Taut's ranks are started by the mpiexec of every
environment in `TAUT_TEST_MPI`, torch's by `torch.multiprocessing`; `PEERS_TORCH_PYTHON` is a Python that has torch. Every rank
has one thread. Engines are measured in turn, several times; a figure is the median of the rounds, each of which is the median
of its calls. `--book` writes the tables between their marks.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time

SIZES = (1, 1 << 18, 1 << 24)  # float32: 4 B, 1 MiB, 64 MiB
LAYERS, WIDTH, BATCH = 4, 1500, 32
MARKS = "<!-- distribute: begin -->\n", "<!-- distribute: end -->\n"
STATE_LAYERS, STATE_WIDTH = 8, 2000  # the model of the table of bytes


def median(call, count):
    """The median of the seconds of a call, after one that is not counted."""
    call()
    times = []
    for _ in range(count):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def reduce_count(size):
    """How often an all-reduce of this many numbers is measured."""
    return 2000 if size < 1000 else 100 if size < 1 << 20 else 12


def resident():
    """The largest resident memory of this process so far, in MiB."""
    if os.path.exists("/proc/self/status"):
        # Unlike the number of getrusage, without the memory of the process that started this one.
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(**row):
    os.write(1, (json.dumps(row) + "\n").encode())


def taut():
    import numpy as np

    import taut as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    group, size = strategy._group, strategy.num_replicas_in_sync
    rng = np.random.default_rng(0)
    variables = [tf.Variable(rng.normal(size=(WIDTH, WIDTH)).astype("f") * 0.02) for _ in range(LAYERS)]
    slots = [[tf.Variable(tf.zeros([WIDTH, WIDTH]), trainable=False) for _ in range(2)] for _ in range(LAYERS)]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for variable in variables:
                h = tf.nn.relu(tf.matmul(h, variable))
            loss = tf.reduce_mean(h * h)
        for variable, gradient, (m, v) in reversed(list(zip(variables, tape.gradient(loss, variables), slots))):
            g = group.all_reduce(gradient, "MEAN") if size > 1 else gradient
            m.assign(0.9 * m + 0.1 * g)
            v.assign(0.999 * v + 0.001 * g * g)
            variable.assign_sub(0.001 * m / (tf.sqrt(v) + 1e-7))
        return loss

    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f"))
    seconds = median(lambda: step(x), 20)
    memory = resident()
    reduces = []
    for count in SIZES if size > 1 else ():
        values = tf.Variable(np.ones(count, "f"))
        # In place, as torch's. A sum of zeros does not overflow.
        values.assign(tf.zeros([count]))
        reduce = tf.function(lambda values=values: values.assign(group.all_reduce(values, "SUM")))
        reduces.append(median(reduce, reduce_count(count)))
    if group.rank == 0:
        report(version=group.transport, reduces=reduces, step=seconds, memory=memory)


def torch_rank(rank, size):
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.ReLU())])
    model = DistributedDataParallel(model) if size > 1 else model
    optimizer = torch.optim.Adam(model.parameters(), 0.001)
    x = torch.randn(BATCH, WIDTH)

    def step():
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()

    seconds = median(step, 20)
    memory = resident()
    reduces = []
    for count in SIZES if size > 1 else ():
        values = torch.zeros(count)
        reduces.append(median(lambda values=values: dist.all_reduce(values), reduce_count(count)))
    if rank == 0:
        report(version=f"PyTorch {torch.__version__.split('+')[0]}", reduces=reduces, step=seconds, memory=memory)
    dist.destroy_process_group()


def state():
    """The bytes of a rank with Adam whose state is whole or sharded: planned, and counted by the ledger."""
    import numpy as np

    import taut as tf

    def made(is_sharded):
        tf.random.set_seed(1)
        strategy = tf.distribute.MultiWorkerMirroredStrategy(shard_optimizer_state=is_sharded)
        before = tf.memory.live_bytes()
        with strategy.scope():
            shape = [STATE_WIDTH, STATE_WIDTH]
            variables = [tf.Variable(tf.random.normal(shape) * 0.02) for _ in range(STATE_LAYERS)]
            optimizer = tf.keras.optimizers.Adam()
            optimizer.build(variables)

        def replica(x):
            with tf.GradientTape() as tape:
                h = x
                for variable in variables:
                    h = tf.nn.relu(tf.matmul(h, variable))
                loss = tf.reduce_mean(h * h)
            optimizer.apply(tape.gradient(loss, variables), variables)

        step = tf.function(lambda x: strategy.run(replica, (x,)))
        return strategy, step, tf.memory.live_bytes() - before

    for is_sharded in (False, True):
        strategy, step, held = made(is_sharded)
        x = tf.constant(np.ones([BATCH, STATE_WIDTH], "f"))
        size = strategy.num_replicas_in_sync
        row = {"sharded": is_sharded, "ranks": size, "held": held, "plans": {}}
        for ranks in [*range(1, 9), 1000] if size == 1 else [size]:
            plan = strategy.plan_for(step, x, ranks=ranks)
            row["plans"][ranks] = [plan.variable_bytes, plan.peak_bytes, plan.sent_bytes]
        if size > 1:
            planned = step.plan(x).peak_bytes
            step(x)
            before = tf.memory.live_bytes()
            tf.memory.reset_peak()
            step(x)
            measured = tf.memory.peak_bytes() - before + step.plan(x).arena_bytes
            assert planned == measured == row["plans"][size][1], (planned, measured, row)
        if tf.distribute.world().rank == 0:
            report(**row)
        del step


def overlap():
    """What a thread that calls collectives would gain: products and all-reduces, one after the other and at the same time."""
    import queue
    import threading

    import numpy as np

    import taut as tf

    group = tf.distribute.MultiWorkerMirroredStrategy()._group
    rng = np.random.default_rng(0)
    weights = [tf.Variable(rng.normal(size=(WIDTH, WIDTH)).astype("f") * 0.02) for _ in range(LAYERS)]
    x = tf.constant(rng.normal(size=(2 * BATCH, WIDTH)).astype("f"))

    @tf.function
    def products(x):
        for weight in weights * 3:
            x = tf.nn.relu(tf.matmul(x, weight))
        return x

    # 16 MiB: as much as the gradients of two of the layers.
    gradients = [tf.Variable(tf.zeros([1 << 20])) for _ in range(4)]
    reduces = [tf.function(lambda one=one: one.assign(group.all_reduce(one, "SUM"))) for one in gradients]
    jobs, ended = queue.Queue(), queue.Queue()

    def all_reduces():
        for reduce in reduces:
            reduce()

    def thread():
        while (job := jobs.get()) is not None:
            ended.put(job())

    def both():
        jobs.put(all_reduces)
        products(x)
        ended.get()

    def in_turn():
        products(x)
        all_reduces()

    worker = threading.Thread(target=thread)
    worker.start()
    calls = {"products": lambda: products(x), "all-reduces": all_reduces, "in turn": in_turn, "at once": both}
    times = {name: [] for name in calls}
    for _ in range(21):
        for name, call in calls.items():
            group.barrier()
            before = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - before)
    jobs.put(None)
    worker.join()
    if group.rank == 0:
        report(version=group.transport, **{name: statistics.median(seconds[1:]) for name, seconds in times.items()})


class Runs:
    """Starts ranks and reads what they report."""

    def __init__(self):
        self.environment = {**os.environ, "TAUT_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        self.homes = [home for home in os.environ.get("TAUT_TEST_MPI", "").split(os.pathsep) if home]
        self.torch = os.environ.get("PEERS_TORCH_PYTHON")

    def taut(self, home, ranks, what="taut"):
        from taut import run

        launcher = os.path.join(home, "bin", "mpiexec")
        path = os.path.dirname(launcher) + os.pathsep + os.environ["PATH"]
        return self._rows(run.command(launcher, ranks, [__file__, what]), PATH=path)

    def peer(self, ranks):
        return self._rows([self.torch, __file__, "torch", str(ranks)])

    def _rows(self, command, **environment):
        done = subprocess.run(
            command, env={**self.environment, **environment}, check=True, stdout=subprocess.PIPE, text=True
        )
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measured(runs, rounds):
    """{(engine, ranks): medians over rounds}; engines take turns."""
    jobs = []
    for ranks in (1, 2):
        for home in runs.homes if ranks > 1 else runs.homes[:1]:
            jobs.append((("Taut", home), ranks, lambda home=home, ranks=ranks: runs.taut(home, ranks)))
        if runs.torch:
            jobs.append((("torch", ""), ranks, lambda ranks=ranks: runs.peer(ranks)))
    rows = {}
    for number in range(rounds):
        for engine, ranks, job in jobs:
            (row,) = job()
            rows.setdefault((engine, ranks), []).append(row)
            print(
                f"round {number + 1} of {rounds}: {row['version']}, {ranks} ranks: step {1e3 * row['step']:.1f} ms",
                flush=True,
            )

    def joined(group):
        reduces = [statistics.median(times) for times in zip(*(row["reduces"] for row in group))]
        step, memory = (statistics.median(row[key] for row in group) for key in ("step", "memory"))
        return {"version": group[0]["version"], "reduces": reduces, "step": step, "memory": memory}

    return {key: joined(group) for key, group in rows.items()}


def speed_table(found):
    """The table of times and resident memory, with ratios to torch."""
    names = ["all-reduce, 4 B", "all-reduce, 1 MiB", "all-reduce, 64 MiB", "step, 2 ranks", "step, 1 rank"]
    names += ["resident, 2 ranks", "resident, 1 rank"]
    alone = {engine: row for (engine, ranks), row in found.items() if ranks == 1}
    several = {engine: row for (engine, ranks), row in found.items() if ranks == 2}

    def figures(engine):
        two, one = several[engine], alone.get(engine)
        values = [*two["reduces"], two["step"], one and one["step"], two["memory"], one and one["memory"]]
        return values

    def text(name, value):
        if value is None:
            return ""
        if name.startswith("resident"):
            return f"{value:.0f} MiB"
        return f"{1e6 * value:.1f} µs" if value < 1e-3 else f"{1e3 * value:.1f} ms"

    peer = next((engine for engine in several if engine[0] == "torch"), None)
    head = [
        f"Taut, {row['version']}" if engine[0] == "Taut" else f"{row['version']}, DDP, gloo"
        for engine, row in several.items()
    ]
    head += [f"PyTorch / {name.split(',')[1].split()[0]}" for name in head if peer and name.startswith("Taut")]
    lines = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    columns = {engine: figures(engine) for engine in several}
    for i, name in enumerate(names):
        cells = [text(name, values[i]) for values in columns.values()]
        if peer:
            for engine, values in columns.items():
                if engine != peer:
                    cells.append(f"{columns[peer][i] / values[i]:.2f}" if values[i] else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def state_table(runs):
    """The table of bytes per rank, planned for every number of ranks and counted for two of them."""
    rows = [row for ranks in (1, 2, 4) for row in runs.taut(runs.homes[0], ranks, "state")]
    plans = {row["sharded"]: row["plans"] for row in rows if row["ranks"] == 1}
    held = {(row["sharded"], row["ranks"]): row["held"] for row in rows}
    lines = [
        "| ranks | variables, state whole | step | variables, state sharded | step | counted | sent in a step |",
        "|---|---|---|---|---|---|---|",
    ]
    for ranks in plans[True]:
        (whole, whole_peak, _), (sharded, peak, sent) = plans[False][ranks], plans[True][ranks]
        counted = held.get((True, int(ranks)))
        # Beside the variables, the optimizer holds its rate, which a step only reads.
        cells = [whole, whole_peak, sharded, peak, counted, sent]
        texts = ["" if cell is None else f"{cell / 2**20:.2f} MiB" for cell in cells]
        lines.append(f"| {ranks} | " + " | ".join(texts) + " |")
    return lines


def overlap_table(runs):
    """The table of what a communication thread would gain."""
    names = ["products", "all-reduces", "in turn", "at once"]
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for home in runs.homes:
        (row,) = runs.taut(home, 2, "overlap")
        lines.append(f"| {row['version']} | " + " | ".join(f"{1e3 * row[name]:.1f} ms" for name in names) + " |")
    return lines


def about():
    cpu = "?"
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as f:
            cpu = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), cpu)
    return f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main():
    if sys.argv[1:2] == ["taut"]:
        return taut()
    if sys.argv[1:2] == ["state"]:
        return state()
    if sys.argv[1:2] == ["overlap"]:
        return overlap()
    if sys.argv[1:2] == ["torch"]:
        import torch.multiprocessing

        return torch.multiprocessing.spawn(torch_rank, args=(int(sys.argv[2]),), nprocs=int(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--book", metavar="FILE", help="write the tables between their marks in this file")
    given = parser.parse_args()
    runs = Runs()
    if not runs.homes:
        raise SystemExit("TAUT_TEST_MPI must name folders of environments with an MPI")
    load = os.getloadavg()[0]
    lines = [
        f"Medians of {given.rounds} rounds in turn, one thread per rank, {about()}. The step is {LAYERS} products of "
        f"{BATCH} x {WIDTH} by {WIDTH} x {WIDTH} with Adam; resident memory is the largest of rank 0 after the steps, with Python "
        f"and the package. Before the first round, the load of the machine was {load:.1f}.",
        "",
        *speed_table(measured(runs, given.rounds)),
        "",
        f"Bytes per rank of {STATE_LAYERS} layers of {STATE_WIDTH} x {STATE_WIDTH} with Adam from Python, batch {BATCH}, planned by "
        "one process, and counted by the ledger with 2 and 4 ranks, where the step's peak is equal to the plan, too:",
        "",
        *state_table(runs),
        "",
        f"A thread that calls collectives while the backward pass goes on ({3 * LAYERS} products, and all-reduces of 16 MiB, with 2 "
        "ranks of one thread):",
        "",
        *overlap_table(runs),
    ]
    text = "\n".join(lines) + "\n"
    print("\n" + text)
    if given.book:
        with open(given.book) as f:
            page = f.read()
        begin, end = (page.find(mark) for mark in MARKS)
        if not 0 <= begin < end:
            raise SystemExit(f"{given.book} must have the lines {MARKS}")
        with open(given.book, "w") as f:
            f.write(page[: begin + len(MARKS[0])] + text + page[end:])
    return None


if __name__ == "__main__":
    main()
