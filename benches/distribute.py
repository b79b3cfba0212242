"""Data-parallel training beside `torch.distributed` (DDP with gloo): all-reduces, a training step, resident memory.

`cargo xtask bench distribute` runs it. Taut's ranks are started by mpiexec (the environments of `cargo xtask test`, or
that in the PATH), torch's by `torch.multiprocessing`; `PEERS_TORCH_PYTHON` is a Python that has torch.
"""

import json
import os
import resource
import subprocess
import sys
import time

SIZES = (1, 1 << 18, 1 << 24)  # float32: 4 B, 1 MiB, 64 MiB
LAYERS, WIDTH, BATCH, STEPS = 4, 1500, 32, 12


def best(call, size):
    """The least seconds of a call."""
    times = []
    for _ in range(200 if size < 1000 else 30 if size < 1 << 20 else 6):
        before = time.perf_counter()
        call()
        times.append(time.perf_counter() - before)
    return min(times)


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(name, size, reduces, step, memory):
    row = {"engine": name, "ranks": size, "all_reduce_us": [round(1e6 * t, 1) for t in reduces]}
    os.write(1, (json.dumps(row | {"step_ms": round(1e3 * step, 1), "resident_mib": round(memory)}) + "\n").encode())


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
    step(x)
    seconds = best(lambda: step(x), 1 << 19)
    memory = resident()
    group.barrier() if size > 1 else None
    reduces = []
    for count in SIZES:
        values = tf.Variable(np.ones(count, "f"))
        # In place, as torch's.
        reduce = tf.function(lambda values=values: values.assign(group.all_reduce(values, "SUM")))
        reduce()
        reduces.append(best(reduce, count))
    if group.rank == 0:
        report(f"taut, {group.transport}", size, reduces, seconds, memory)


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

    step()
    seconds = best(step, 1 << 19)
    memory = resident()
    reduces = []
    for count in SIZES:
        values = torch.ones(count)
        reduces.append(best(lambda values=values: dist.all_reduce(values), count))
    if rank == 0:
        report(f"torch {torch.__version__.split('+')[0]}, gloo", size, reduces, seconds, memory)


def main():
    here = os.path.abspath(__file__)
    if sys.argv[1:2] == ["taut"]:
        return taut()
    if sys.argv[1:2] == ["torch"]:
        import torch.multiprocessing

        return torch.multiprocessing.spawn(torch_rank, args=(int(sys.argv[2]),), nprocs=int(sys.argv[2]))
    from taut import run

    environment = {**os.environ, "TAUT_THREADS": "1", "OMP_NUM_THREADS": "1"}
    homes = [home for home in os.environ.get("TAUT_TEST_MPI", "").split(os.pathsep) if home]
    launchers = [os.path.join(home, "bin", "mpiexec") for home in homes] or [run.mpiexec()]
    for ranks in (1, 2):
        for launcher in launchers if ranks > 1 else launchers[:1]:
            path = os.path.dirname(launcher) + os.pathsep + os.environ["PATH"]
            command = run.command(launcher, ranks, [here, "taut"])
            subprocess.run(command, env={**environment, "PATH": path}, check=True)
        if peer := os.environ.get("PEERS_TORCH_PYTHON"):
            subprocess.run([peer, here, "torch", str(ranks)], env=environment, check=True)
    return None


if __name__ == "__main__":
    main()
