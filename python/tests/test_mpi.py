"""Processes that compute together over MPI, with every MPI library that `cargo xtask test` has installed.

`TAUT_TEST_MPI` has the folders of their environments. Processes may be more than cores.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

import taut as tf
from taut import run as launcher

SCRIPTS = pathlib.Path(__file__).parent / "mpi"
HOMES = [home for home in os.environ.get("TAUT_TEST_MPI", "").split(os.pathsep) if home]

needs_mpi = pytest.mark.skipif(not HOMES, reason="TAUT_TEST_MPI names no MPI")


def start(home, ranks, script, *arguments, **environment):
    """Runs a script with several processes: their lines of JSON by rank, the error output, and the seconds."""
    path = os.path.join(home, "bin") + os.pathsep + os.environ["PATH"]
    mpiexec = os.path.join(home, "bin", "mpiexec")
    command = [*launcher.command(mpiexec, ranks, [str(SCRIPTS / script), *arguments])]
    env = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **environment}
    before = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    seconds = time.monotonic() - before
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(lines, key=lambda line: line["rank"]), done, seconds


def finished(*arguments, **environment):
    lines, done, _ = start(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    assert [line["rank"] for line in lines] == list(range(arguments[1])), done.stdout + done.stderr
    return lines


@needs_mpi
def test_every_mpi_gives_the_same_bits_on_every_rank_and_plans_hold():
    for ranks in (2, 4):
        hashes = set()
        for home in HOMES:
            lines = finished(home, ranks, "train.py")
            assert {line["size"] for line in lines} == {ranks}
            assert all(line["measured"] == line["planned"] for line in lines), lines
            assert all(line["gathered"] == [[float(rank) for rank in range(ranks)]] for line in lines)
            hashes |= {line["hash"] for line in lines}
        assert len(hashes) == 1, hashes


EXAMPLE = pathlib.Path(__file__).parents[2] / "target" / "debug" / "examples" / "14_data_parallel"


@needs_mpi
@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples in Rust are not built")
@pytest.mark.parametrize("options", [[], ["--shard"]])
def test_trainers_in_rust_have_the_bits_of_ranks_that_are_threads(options):
    for ranks in (2, 4):
        threads = [str(EXAMPLE), "--threads", str(ranks), *options]
        done = subprocess.run(threads, capture_output=True, text=True, timeout=120)
        hashes = set(re.findall("weights ([0-9a-f]{16})", done.stdout))
        for home in HOMES:
            mpiexec = os.path.join(home, "bin", "mpiexec")
            own = [*launcher.command(mpiexec, ranks, [])[:-1], str(EXAMPLE), *options]
            env = {**os.environ, "PATH": os.path.join(home, "bin") + os.pathsep + os.environ["PATH"]}
            done = subprocess.run(own, capture_output=True, text=True, env=env, timeout=120)
            rows = re.findall(
                r"variables planned (\d+) measured (\d+) bytes, step planned (\d+) measured (\d+) bytes, weights (\w+)",
                done.stdout,
            )
            assert len(rows) == ranks, done.stdout + done.stderr
            for variables, held, planned, measured, weights in rows:
                assert planned == measured
                # Numbers that a step only reads are not among the variables that it updates.
                assert 0 <= int(held) - int(variables) < 200
                hashes.add(weights)
        assert len(hashes) == 1


@needs_mpi
def test_uneven_batches_have_the_loss_of_one_process():
    alone = subprocess.run([sys.executable, SCRIPTS / "train.py", "uneven"], capture_output=True, text=True)
    expected = json.loads(alone.stdout)
    # 55 rows in batches of 12: the last has 7, of which rank 0 has 1 and the others 2.
    for line in finished(HOMES[0], 4, "train.py", "uneven"):
        assert line["steps"] == expected["steps"] == 25
        assert line["loss"] == pytest.approx(expected["loss"], rel=1e-4)


@needs_mpi
@pytest.mark.parametrize(
    ("fault", "messages"),
    [
        ("raise", ["rank 1 of 2 ends all ranks:", "ValueError: a value that this rank does not like"]),
        ("kill", []),
        ("exit", ["all ranks must call the same collectives", "the end of the program"]),
        ("mismatch", ["all ranks must call the same collectives", "all_reduce sum of 3 x float32 at", "train.py:"]),
        ("late", ["waited 2.0 s for rank 1, which did not come", "all_reduce sum", "train.py:"]),
    ],
)
def test_a_rank_that_fails_ends_the_job_with_a_reason(fault, messages):
    # The launchers differ in how they end the others; what ranks find out themselves is the same.
    for home in HOMES if fault in ("raise", "kill") else HOMES[:1]:
        lines, done, seconds = start(home, 2, "train.py", fault)
        assert done.returncode != 0 and not lines
        for message in messages:
            assert message in done.stderr, (home, done.stderr)
        print(f"{fault}, {home}: {seconds:.1f} s")
        assert seconds < 60


@needs_mpi
@pytest.mark.parametrize("how", ["DataParallel", "MultiWorkerMirroredStrategy"])
def test_fit_trains_copies_alike(how, tmp_path):
    lines = finished(HOMES[0], 2, "fit.py", how, str(tmp_path))
    assert len({line["hash"] for line in lines}) == 1
    assert lines[0]["history"] == lines[1]["history"]
    alone = subprocess.run(
        [sys.executable, SCRIPTS / "fit.py", how, str(tmp_path)], capture_output=True, text=True, check=True
    )
    expected = json.loads(alone.stdout)
    # Batch statistics are those of each process, so losses agree roughly.
    assert lines[0]["history"]["loss"] == pytest.approx(expected["history"]["loss"], rel=0.1)
    assert lines[0]["history"].keys() == expected["history"].keys()
    assert (tmp_path / "model.keras").exists()


@needs_mpi
def test_programs_for_horovod():
    for line in finished(HOMES[0], 2, "hvd.py"):
        assert line["size"] == 2 and line["local"] == [line["rank"], 2]
        assert line["w"] == [0.0, 5.0] and line["gradient"] == [1.5, 1.5]
        assert line["sum"] == 3 and line["gather"] == [0, 1]
        assert line["weights"] == finished_weights(line)


def finished_weights(line, _seen=[]):
    """The weights of the first rank that was seen."""
    _seen.append(line["weights"])
    return _seen[0]


@needs_mpi
def test_a_library_of_another_mpi_than_the_launcher_is_an_error():
    if len(HOMES) < 2:
        pytest.skip("there is one MPI")
    other = next(pathlib.Path(HOMES[1]).glob("lib/libmpi.so.*"))
    _, done, _ = start(HOMES[0], 2, "train.py", TAUT_MPI=str(other))
    assert done.returncode != 0
    assert "started 2 ranks, but" in done.stderr and "it belongs to another MPI" in done.stderr, done.stderr


@needs_mpi
def test_a_failed_job_is_started_again(tmp_path):
    script = tmp_path / "flaky.py"
    script.write_text(
        "import os, sys, taut as tf\n"
        "s = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "if os.environ['TAUT_RESTARTS'] < '2' and tf.distribute.world().rank == 1: raise ValueError('again')\n"
        "tf.distribute.world().barrier()\n"
        "os.write(1, b'done\\n')\n"
    )
    env = {**os.environ, "PATH": os.path.join(HOMES[0], "bin") + os.pathsep + os.environ["PATH"]}
    command = [sys.executable, "-m", "taut.run", "-n", "2", "--restarts", "3", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0 and done.stdout.count("done") == 2, done.stderr
    assert "restarts left: 3" in done.stderr and "restarts left: 2" in done.stderr


def test_a_launcher_without_a_library_is_an_error_that_says_what_to_install():
    code = "import taut as tf; tf.distribute.MultiWorkerMirroredStrategy()"
    env = {**os.environ, "PMI_SIZE": "2", "PATH": "/usr/bin:/bin", "TAUT_MPI": "/no/such/libmpi.so"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "UnavailableError" in done.stderr
    assert "TAUT_MPI=/no/such/libmpi.so" in done.stderr and "pip install 'taut[mpi]'" in done.stderr


def test_the_launcher_needs_a_program_and_ranks(capsys):
    for arguments, message in (
        (["-n", "0", "x.py"], "the number of processes must be >= 1, got 0"),
        (["-n", "2"], "the program is missing"),
        (["-n", "2", "--restarts", "-1", "x.py"], "--restarts must be >= 0, got -1"),
    ):
        with pytest.raises(SystemExit):
            launcher.main(arguments)
        assert message in capsys.readouterr().err


def test_a_process_alone_is_one_replica():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 1
    assert not tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()
    with strategy.scope():
        assert tf.distribute.get_strategy() is strategy and tf.distribute.in_cross_replica_context()
        context = strategy.run(tf.distribute.get_replica_context)
    assert (context.replica_id_in_sync_group, context.num_replicas_in_sync) == (0, 1)
    x = tf.constant([[1.0, 2.0], [3.0, 5.0]])
    assert strategy.run(lambda x: tf.distribute.get_replica_context().all_reduce("SUM", x), (x,)).numpy().tolist() == [
        [1, 2],
        [3, 5],
    ]
    assert strategy.reduce(tf.distribute.ReduceOp.MEAN, x, axis=0).numpy().tolist() == [2.0, 3.5]
    assert strategy.reduce("SUM", {"a": x}, axis=None)["a"].numpy().tolist() == x.numpy().tolist()
    assert strategy.gather(x, axis=1).numpy().tolist() == x.numpy().tolist()
    assert strategy.experimental_local_results(3) == (3,)
    data = tf.data.Dataset.range(5).batch(2)
    assert [part.numpy().tolist() for part in strategy.experimental_distribute_dataset(data)] == [[0, 1], [2, 3], [4]]
    own = strategy.distribute_datasets_from_function(lambda context: data.shard(context.num_input_pipelines, 0))
    assert len(list(own)) == 3
    with pytest.raises(ValueError, match="must be the CPU"):
        tf.distribute.OneDeviceStrategy("/gpu:0")
    with pytest.raises(ValueError, match="must be the CPU"):
        tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    with pytest.raises(ValueError, match="reduce_op must be"):
        strategy.reduce("MAX", x, axis=None)


def test_a_step_is_planned_for_any_number_of_ranks():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    w = tf.Variable(tf.zeros([1000, 1000]))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, w))
        gradient = strategy.reduce("SUM", tape.gradient(loss, w), axis=None)
        w.assign_sub(gradient)

    alone = step.plan(tf.TensorSpec([8, 1000])).peak_bytes
    plans = {ranks: strategy.plan_for(step, tf.TensorSpec([8, 1000]), ranks=ranks) for ranks in (1, 2, 8, 1000)}
    assert plans[1].peak_bytes == alone and plans[1].sent_bytes == 0
    for ranks in (2, 8):
        plan = plans[ranks]
        assert plan.variable_bytes == 4_000_000 and plan.collectives == 1
        # Half of the gradient, for what the other process sends.
        assert alone < plan.peak_bytes <= alone + 2_000_064
        assert plan.sent_bytes == 2 * 4_000_000 * (ranks - 1) // ranks
    assert plans[1000].peak_bytes == plans[8].peak_bytes
    fast = strategy.plan_for(step, tf.TensorSpec([8, 1000]), ranks=8, latency=0.0, bandwidth=7e6)
    assert fast.seconds == pytest.approx(1.0)
    assert "8 ranks, per rank:" in str(fast)
    assert not any(w.numpy().ravel())
