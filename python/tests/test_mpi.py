"""Processes that compute together over MPI, with every MPI library that `cargo xtask test` has installed.

`TAUT_TEST_MPI` has the folders of their environments. Processes may be more than cores.
"""

import json
import os
import pathlib
import re
import signal
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
    done = subprocess.run(command, capture_output=True, text=True, env=env)
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
            assert all(line["steps"] == 20 for line in lines)
            hashes |= {line["hash"] for line in lines}
        # One process that adds the gradients of the same rows in the same order.
        alone = [sys.executable, SCRIPTS / "train.py", "tree", str(ranks)]
        done = subprocess.run(alone, capture_output=True, text=True, check=True)
        hashes.add(json.loads(done.stdout)["hash"])
        assert len(hashes) == 1, hashes


EXAMPLE = pathlib.Path(__file__).parents[2] / "target" / "debug" / "examples" / "14_data_parallel"


@needs_mpi
@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples in Rust are not built")
@pytest.mark.parametrize("options", [[], ["--shard"]])
def test_trainers_in_rust_have_the_bits_of_ranks_that_are_threads(options):
    for ranks in (2, 4):
        threads = [str(EXAMPLE), "--threads", str(ranks), *options]
        done = subprocess.run(threads, capture_output=True, text=True)
        hashes = set(re.findall("weights ([0-9a-f]{16})", done.stdout))
        for home in HOMES:
            mpiexec = os.path.join(home, "bin", "mpiexec")
            own = [*launcher.command(mpiexec, ranks, [])[:-1], str(EXAMPLE), *options]
            env = {**os.environ, "PATH": os.path.join(home, "bin") + os.pathsep + os.environ["PATH"]}
            done = subprocess.run(own, capture_output=True, text=True, env=env)
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
        ("seeds", ["variables must be equal on all ranks, got different values of", "set the same seed on every rank"]),
    ],
)
def test_a_rank_that_fails_ends_the_job_with_a_reason(fault, messages, record_property):
    # The launchers differ in how they end the others; what ranks find out themselves is the same.
    for home in HOMES if fault in ("raise", "kill") else HOMES[:1]:
        lines, done, seconds = start(home, 2, "train.py", fault)
        assert done.returncode != 0 and not lines
        for message in messages:
            assert message in done.stderr, (home, done.stderr)
        # How long it takes is reported, not limited: that depends on the machine.
        record_property(f"{fault}, {os.path.basename(home)}", f"{seconds:.1f} s")
        print(f"{fault}, {os.path.basename(home)}: {seconds:.1f} s")


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
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("how", ["DataParallel", "MultiWorkerMirroredStrategy"])
def test_synchronized_batch_normalization_trains_as_one_process(how, ranks, tmp_path):
    lines = finished(HOMES[0], ranks, "fit.py", how, str(tmp_path), "synchronized")
    assert len({line["hash"] for line in lines}) == 1
    command = [sys.executable, SCRIPTS / "fit.py", how, str(tmp_path), "synchronized"]
    expected = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for name, value in expected["history"].items():
        assert lines[0]["history"][name] == pytest.approx(value, rel=1e-4), name
    assert lines[0]["kernel"] == pytest.approx(expected["kernel"], rel=1e-3, abs=1e-5)


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
@pytest.mark.parametrize("home", HOMES, ids=os.path.basename)
def test_mpi4py_that_was_imported_before_shares_its_library(home):
    packages = next(pathlib.Path(home).glob("lib/python3*/site-packages"))
    library = next(pathlib.Path(home).glob("lib/libmpi.so.[0-9]*"))
    if not list(packages.glob("mpi4py")):
        pytest.skip("mpi4py is not installed")
    environment = {"PYTHONPATH": str(packages), "MPI4PY_LIBMPI": str(library)}
    plain = finished(home, 2, "train.py")
    lines = finished(home, 2, "train.py", "mpi4py", **environment)
    assert [line["mpi4py"] for line in lines] == [[0, 1, False], [1, 1, False]]
    assert {line["hash"] for line in lines} == {line["hash"] for line in plain}


def link_libraries(home, folder):
    """Links the libraries of an environment from a folder."""
    folder.mkdir(exist_ok=True)
    for file in pathlib.Path(home, "lib").iterdir():
        if not (folder / file.name).exists() and not file.name.startswith("python"):
            (folder / file.name).symlink_to(file)


@needs_mpi
def test_two_mpis_in_one_environment_are_told_apart_by_the_launcher(tmp_path):
    if len(HOMES) < 2:
        pytest.skip("there is one MPI")
    for home in HOMES:
        link_libraries(home, tmp_path / "lib")
    for home in HOMES:
        lines = finished(home, 2, "train.py", TAUT_PREFIX=str(tmp_path))
        assert {line["size"] for line in lines} == {2}
    assert any("Open MPI" in line["transport"] for line in lines)


@needs_mpi
def test_an_environment_with_only_another_mpi_is_an_error(tmp_path):
    if len(HOMES) < 2:
        pytest.skip("there is one MPI")
    link_libraries(HOMES[1], tmp_path / "lib")
    # Not found beside the launcher either: the program is started with another PATH.
    start_alone = "import os, runpy, sys; os.environ['PATH'] = '/nowhere'; sys.argv = sys.argv[1:]; "
    start_alone += "runpy.run_path(sys.argv[0], run_name='__main__')"
    mpiexec = os.path.join(HOMES[0], "bin", "mpiexec")
    command = launcher.command(mpiexec, 2, ["-c", start_alone, str(SCRIPTS / "train.py")])
    env = {**os.environ, "TAUT_PREFIX": str(tmp_path), "VIRTUAL_ENV": "", "CONDA_PREFIX": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode != 0
    assert "MPICH started 2 ranks, but no MPI library of it was found" in done.stderr, done.stderr
    assert "libmpi.so.40 is not a library of MPICH" in done.stderr and "pip install 'taut[mpi]'" in done.stderr


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_sharded_optimizer_state_has_the_bits_of_whole_state_and_its_bytes_are_planned(ranks):
    for line in finished(HOMES[ranks == 4 and -1], ranks, "sharded.py", "train"):
        hashes = {line[how][kind]["hash"] for how in ("run", "horovod") for kind in ("whole", "sharded")}
        assert len(hashes) == 1
        # `fit` weighs gradients by rows.
        assert line["fit"]["whole"]["hash"] == line["fit"]["sharded"]["hash"]
        for how in ("run", "fit", "horovod"):
            whole, sharded = line[how]["whole"], line[how]["sharded"]
            assert whole["state"] == sharded["state"]
            large, small = whole["large"], whole["small"]
            assert whole["slots"] == 8 * (sum(large) + sum(small))
            # A shard has ceil(size / ranks) elements; small variables are whole.
            assert sharded["slots"] == 8 * (sum(-(-count // ranks) for count in large) + sum(small))
        for how, kind in (("run", "whole"), ("run", "sharded"), ("horovod", "sharded")):
            assert line[how][kind]["planned"] == line[how][kind]["measured"], (how, kind, line)
        saved = line["run"]["whole"]["slots"] - line["run"]["sharded"]["slots"]
        assert line["run"]["whole"]["variables"] - line["run"]["sharded"]["variables"] == saved
        assert line["run"]["sharded"]["paper"] == line["run"]["sharded"]["variables"]


@needs_mpi
def test_optimizers_and_options_with_sharded_state():
    lines = finished(HOMES[0], 2, "sharded.py", "optimizers")
    assert lines[0]["all"].keys() == lines[1]["all"].keys() and len(lines[0]["all"]) == 15
    for name in lines[0]["all"]:
        whole, sharded = lines[0]["all"][name]["whole"], lines[0]["all"][name]["sharded"]
        assert sharded["hash"] == lines[1]["all"][name]["sharded"]["hash"], name
        if "norm" in name:
            # The squares of shards are added in another order.
            assert sharded["values"] == pytest.approx(whole["values"], rel=1e-4, abs=1e-6), name
        else:
            assert sharded["hash"] == whole["hash"], name


@needs_mpi
def test_sharded_state_that_was_saved_resumes_on_any_number_of_processes(tmp_path):
    saved = finished(HOMES[0], 2, "sharded.py", "save", str(tmp_path))[0]
    for ranks, kind in [(2, "whole"), (4, "sharded")]:
        for line in finished(HOMES[0], ranks, "sharded.py", "resume", str(tmp_path), kind):
            assert (line["state"], line["hash"]) == (saved["state"], saved["hash"]), (ranks, kind)
    alone = [sys.executable, SCRIPTS / "sharded.py", "resume", str(tmp_path), "sharded"]
    done = subprocess.run(alone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == saved["state"]


@needs_mpi
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals of process groups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_interrupted_ends_and_is_not_started_again(number, tmp_path):
    script = tmp_path / "endless.py"
    script.write_text(
        "import os, time, taut as tf\n"
        "group = tf.distribute.world()\n"
        "group.barrier()\n"
        "os.write(1, b'ready\\n')\n"
        "if group.rank == 1: time.sleep(1000)\n"
        "group.barrier()\n"
    )
    env = {**os.environ, "PATH": os.path.join(HOMES[0], "bin") + os.pathsep + os.environ["PATH"]}
    command = [sys.executable, "-m", "taut.run", "-n", "2", "--restarts", "3", str(script)]
    job = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while job.stdout.readline() != b"ready\n":
        assert job.poll() is None
    # As a terminal does for Ctrl-C: to all processes of the job. A scheduler's SIGTERM goes to the first.
    os.killpg(job.pid, number) if number == signal.SIGINT else job.send_signal(number)
    _, errors = job.communicate()
    assert job.returncode == 128 + number and b"restarts left" not in errors


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
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0 and done.stdout.count("done") == 2, done.stderr
    assert "restarts left: 3" in done.stderr and "restarts left: 2" in done.stderr


def test_a_launcher_without_a_library_is_an_error_that_says_what_to_install():
    code = "import taut as tf; tf.distribute.MultiWorkerMirroredStrategy()"
    env = {**os.environ, "PMI_SIZE": "2", "PATH": "/usr/bin:/bin", "TAUT_MPI": "/no/such/libmpi.so"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 1 and "UnavailableError" in done.stderr
    assert "TAUT_MPI=/no/such/libmpi.so" in done.stderr and "pip install 'taut[mpi]'" in done.stderr


def test_options_of_strategies_are_tensorflows():
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=30.0)
    assert tf.distribute.MultiWorkerMirroredStrategy(communication_options=options).num_replicas_in_sync == 1
    assert tf.distribute.experimental.MultiWorkerMirroredStrategy is tf.distribute.MultiWorkerMirroredStrategy
    with pytest.raises(ValueError, match="bytes_per_pack must be 0, got 5"):
        tf.distribute.experimental.CommunicationOptions(bytes_per_pack=5)
    with pytest.raises(ValueError, match="timeout_seconds must be > 0, got -1"):
        tf.distribute.experimental.CommunicationOptions(timeout_seconds=-1)
    strategy = tf.distribute.MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())
    assert strategy.num_replicas_in_sync == 1
    with pytest.raises(ValueError, match="must be the CPU"):
        tf.distribute.ReductionToOneDevice("gpu:0")
    with pytest.raises(ValueError, match="must be a CrossDeviceOps, got 'nccl'"):
        tf.distribute.MirroredStrategy(cross_device_ops="nccl")
    numbers = strategy.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group + 10)
    assert strategy.experimental_local_results(numbers) == (10,)
    with pytest.raises(ValueError, match="global_batch_size must be a multiple of the number of replicas, 2, got 5"):
        tf.distribute.InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(5)
    with pytest.raises(ValueError, match="ranks must be >= 1, got 0"):
        strategy.plan_for(tf.function(lambda x: x), tf.TensorSpec([1]), ranks=0)


def test_sharded_state_needs_updates_of_single_elements():
    keras = tf.keras
    strategy = tf.distribute.MultiWorkerMirroredStrategy(shard_optimizer_state=True)
    with strategy.scope():
        w = tf.Variable(tf.zeros([200, 200]))
        lamb = keras.optimizers.Lamb()
        with pytest.raises(ValueError, match="must update elements independently of each other, got Lamb"):
            lamb.build([w])


def test_sharded_state_is_planned_for_any_number_of_ranks():
    strategy = tf.distribute.MultiWorkerMirroredStrategy(shard_optimizer_state=True)
    with strategy.scope():
        w, b = tf.Variable(tf.zeros([300, 300])), tf.Variable(tf.zeros([300]))
        optimizer = tf.keras.optimizers.Adam()

    def replica(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.matmul(x, w) + b)
        optimizer.apply(tape.gradient(loss, [w, b]), [w, b])

    step = tf.function(lambda x: strategy.run(replica, (x,)))
    x = tf.TensorSpec([4, 300])
    numbers = 12  # of the optimizer: its iterations and rate
    for ranks in [*range(1, 9), 1000]:
        plan = strategy.plan_for(step, x, ranks=ranks)
        slots = 8 * (-(-90_000 // ranks) + 300)
        assert 0 <= plan.variable_bytes - (4 * 90_300 + slots) <= numbers, (ranks, plan)
    assert not optimizer.built and len(optimizer.variables) == 2
    # Another plan, after the optimizer has its own state, leaves that as it is.
    step(tf.ones([4, 300]))
    before = [variable.numpy() for variable in optimizer.variables]
    strategy.plan_for(step, x, ranks=7)
    assert all((variable.numpy() == value).all() for variable, value in zip(optimizer.variables, before))
    assert [tuple(variable.shape) for variable in optimizer.variables[2:]] == [(300, 300), (300, 300), (300,), (300,)]


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
