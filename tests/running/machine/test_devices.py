"""GPUs, CPU, memory and disk as the machine reports them."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rl_tui.engine.running.machine import cgroups
from rl_tui.engine.running.machine.devices import CpuMeter, DeviceSampler, usable_cpus
from rl_tui.engine.running.machine.gpus import GpuProbe, position_in_use
from rl_tui.engine.session.codec import decode, encode
from rl_tui.engine.session.messages import DevicesSampled, Envelope
from tests.deadline import DEADLINE_SECONDS

GIB = 1 << 30


def written(root: Path, files: dict[str, str]) -> Path:
    """A file system with a control group tree, as the kernel shows it."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def sampler(tmp_path):
    sampler = DeviceSampler(tmp_path / "results")
    yield sampler
    sampler.close()


def test_a_sample_fits_the_machine(sampler, tmp_path):
    sample = sampler.sample()
    assert isinstance(sample, DevicesSampled)
    assert 0 < sample.memory_used_bytes <= sample.memory_total_bytes <= psutil.virtual_memory().total
    assert 0 < sample.process_memory_bytes <= sample.memory_total_bytes
    assert 0 < sample.disk_free_bytes <= sample.disk_total_bytes == shutil.disk_usage(tmp_path).total
    assert 1 <= sample.num_cpus <= (os.cpu_count() or 1)
    assert decode(encode(Envelope(1, 0.0, sample))).event == sample


def test_a_machine_without_gpu_says_why(sampler):
    sample = sampler.sample()
    if sample.gpus:
        pytest.skip("this machine has an NVIDIA GPU")
    assert sample.gpu_note in {"no NVIDIA driver", "no NVIDIA GPU"}


def test_the_cpu_is_busy_when_it_is(sampler):
    assert sampler.sample().cpu_percent == 0.0  # nothing to compare with yet
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    assert 30.0 / usable_cpus() < sampler.sample().cpu_percent <= 100.0


def test_memory_of_child_processes_counts(tmp_path):
    sampler = DeviceSampler(tmp_path)
    alone = sampler.sample().process_memory_bytes
    program = (
        "import sys; block = bytearray(200 << 20); files = [open('/dev/null') for _ in range(90)];"
        " print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        sampler = DeviceSampler(tmp_path, names=lambda: {child.pid: "worker 0 of gymnasium:Walker"})
        sample = sampler.sample()
        assert sample.process_memory_bytes > alone + (150 << 20)
        by_name = {process.name: process for process in sample.processes}
        worker = by_name["worker 0 of gymnasium:Walker"]
        assert (worker.pid, by_name["training"].pid) == (child.pid, os.getpid())
        assert worker.memory_bytes > 150 << 20
        assert 90 < worker.num_descriptors < 150 < sample.max_descriptors
        child.communicate(timeout=DEADLINE_SECONDS)
    assert sampler.sample().process_memory_bytes < alone + (150 << 20)  # the child it still knows has ended
    sampler.close()


def test_a_sample_is_cheap(sampler):
    sampler.sample()
    seconds = []
    for _ in range(50):
        began = time.thread_time()  # of this thread alone: others share the machine
        sampler.sample()
        seconds.append(time.thread_time() - began)
    assert sorted(seconds)[25] < 0.01


def test_closing_twice_does_no_harm(sampler):
    sampler.sample()
    sampler.close()
    assert sampler.sample().gpus == ()


# ------------------------------------------------------------------------------------------------ control groups


def test_without_control_groups_everything_is_usable(tmp_path):
    assert cgroups.cpu_quota(tmp_path) is None
    assert cgroups.memory_limit(tmp_path) is None
    assert usable_cpus(tmp_path) == len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else True


def test_limits_of_version_2_are_the_tightest_on_the_way_up(tmp_path):
    root = written(
        tmp_path,
        {
            "proc/self/cgroup": "0::/user.slice/job\n",
            "sys/fs/cgroup/user.slice/job/memory.max": "max\n",
            "sys/fs/cgroup/user.slice/job/cpu.max": "300000 100000\n",
            "sys/fs/cgroup/user.slice/memory.max": f"{2 * GIB}\n",
            "sys/fs/cgroup/user.slice/memory.current": f"{GIB}\n",
            "sys/fs/cgroup/user.slice/memory.stat": f"anon 1\ninactive_file {GIB // 4}\n",
            "sys/fs/cgroup/user.slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/user.slice/cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
        },
    )
    assert cgroups.memory_limit(root) == cgroups.MemoryLimit(2 * GIB, GIB - GIB // 4)
    assert cgroups.cpu_quota(root) == cgroups.CpuQuota(1.5, 2.5)


def test_limits_of_version_1_are_found_inside_and_outside_a_container(tmp_path):
    """Inside, /proc names the host's path, and the limit stands at the root of the mounted tree."""
    root = written(
        tmp_path,
        {
            "proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/12ab\n2:cpu,cpuacct:/docker/12ab\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB // 2}\n",
            "sys/fs/cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 4}\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpuacct/cpuacct.usage": "3000000000\n",
        },
    )
    assert cgroups.memory_limit(root) == cgroups.MemoryLimit(GIB, GIB // 4)
    assert cgroups.cpu_quota(root) == cgroups.CpuQuota(0.5, 3.0)
    assert usable_cpus(root) == 1


@pytest.mark.parametrize("quota", ["max 100000", "-1", "", "junk junk", "100000 0"])
def test_no_quota_is_no_limit(tmp_path, quota):
    root = written(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": quota})
    assert cgroups.cpu_quota(root) is None


def test_a_path_that_leads_out_of_the_namespace_is_not_followed(tmp_path):
    root = written(
        tmp_path, {"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/memory.max": "5\n", "x/memory.max": "1\n"}
    )
    limit = cgroups.memory_limit(root)
    assert limit is None or limit.limit_bytes == 5


def test_a_sample_keeps_to_the_limits_of_its_group(tmp_path):
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": f"{GIB}\n",
        "sys/fs/cgroup/memory.current": f"{GIB // 2}\n",
        "sys/fs/cgroup/cpu.max": "100000 100000\n",
    }
    sampler = DeviceSampler(tmp_path, root=written(tmp_path, files))
    sample = sampler.sample()
    sampler.close()
    assert (sample.memory_used_bytes, sample.memory_total_bytes, sample.num_cpus) == (GIB // 2, GIB, 1)


def test_a_limit_above_the_machine_is_no_limit(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "9223372036854771712\n"}
    sampler = DeviceSampler(tmp_path, root=written(tmp_path, files))
    assert sampler.sample().memory_total_bytes == psutil.virtual_memory().total
    sampler.close()


def test_the_cpu_share_under_a_quota_is_the_groups_own(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}
    root = written(tmp_path, files | {"sys/fs/cgroup/cpu.stat": "usage_usec 1000000\n"})
    began = time.monotonic()
    meter = CpuMeter(root)
    assert meter.percent() == 0.0
    time.sleep(0.2)
    (root / "sys/fs/cgroup/cpu.stat").write_text("usage_usec 1050000\n")  # 50 ms of one CPU in 200 ms or more
    percent = meter.percent()
    assert 5 / (time.monotonic() - began) <= percent <= 25.0


# ------------------------------------------------------------------------------------------------------------ GPUs


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Folders with a stand-in for the NVIDIA driver's library, a current and an old one."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler for the stand-in driver")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("driver.c")
    for name, flags in (("current", []), ("old", ["-DOLD"])):
        (folder / name).mkdir()
        library = folder / name / "libnvidia-ml.so.1"
        subprocess.run(
            [compiler, "-shared", "-fPIC", *flags, "-o", library, source], check=True, timeout=DEADLINE_SECONDS
        )
    return folder


PROBE = """
import sys, time
from rl_tui.engine.running.machine.gpus import GpuProbe
from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.messages import DevicesSampled, Envelope
probe = GpuProbe(int(sys.argv[1]) if len(sys.argv) > 1 else None)
for number in (1, 2):
    gpus, note = probe.probe()
    print(encode(Envelope(number, time.monotonic(), DevicesSampled(gpus, note, 0.0, 1, 0, 0, 0, 0, 0))))
probe.close()
assert probe.probe()[1] == "closed" or not gpus
"""


def probed(folder: Path, *arguments: str, **environment: str) -> list[Envelope]:
    """Two probes in a fresh process that finds the stand-in driver: (gpus, gpu_note) of each."""
    process = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    return [decode(line) for line in process.stdout.splitlines()]


def test_every_number_of_the_driver_arrives(driver):
    sample = probed(driver / "current", "0")[1].event
    gpu, _ = sample.gpus
    assert sample.gpu_note == ""
    assert (gpu.index, gpu.name, gpu.in_use) == (0, "Stand-in 100", True)
    assert (gpu.utilization_percent, gpu.temperature_celsius) == (42.0, 55.0)
    assert (gpu.memory_used_bytes, gpu.memory_total_bytes) == (5 * GIB, 80 * GIB)
    assert (gpu.power_watts, gpu.power_limit_watts) == (123.456, 700.0)


def test_what_the_driver_does_not_report_is_none(driver):
    _, gpu = probed(driver / "current")[0].event.gpus
    assert (gpu.name, gpu.in_use) == ("GPU 1", False)
    assert gpu.utilization_percent is gpu.temperature_celsius is gpu.power_watts is gpu.power_limit_watts is None
    assert gpu.memory_total_bytes == 80 * GIB


def test_an_old_driver_still_reports_its_memory(driver):
    assert probed(driver / "old")[0].event.gpus[0].memory_used_bytes == 6 * GIB


@pytest.mark.parametrize(
    ("failure", "note"),
    [
        ("init", "NVIDIA driver: Insufficient Permissions"),
        ("count", "NVIDIA driver: GPU is lost"),
        ("none", "no NVIDIA GPU"),
    ],
)
def test_a_driver_that_fails_says_why(driver, failure, note):
    for envelope in probed(driver / "current", DRIVER_FAILURE=failure):
        assert (envelope.event.gpus, envelope.event.gpu_note) == ((), note)


def test_a_slow_driver_is_left_alone_for_a_while(driver):
    first, second = probed(driver / "current", DRIVER_FAILURE="slow")
    assert second.time - first.time < 0.3
    assert second.event.gpus == first.event.gpus != ()
    assert second.event.gpu_note.startswith("stale: the NVIDIA driver took 0.6 s")


def test_the_gpu_in_use_is_found_behind_cuda_visible_devices(driver):
    shown = probed(driver / "current", "0", CUDA_VISIBLE_DEVICES="GPU-bbbb")[0].event
    assert [gpu.in_use for gpu in shown.gpus] == [False, True]


@pytest.mark.parametrize(
    ("index", "visible", "position"),
    [
        (None, None, None),
        (0, None, 0),
        (2, None, 2),
        (3, None, None),
        (0, "2", 2),
        (1, "2, 0", 0),
        (0, "", None),
        (0, "-1", None),
        (1, "0,-1,2", None),
        (0, "GPU-b", 1),
        (0, "GPU-", None),
        (1, "GPU-c,1", 1),
        (0, "9", None),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(index, visible, position):
    uuids = ["GPU-a", "GPU-b", "GPU-c"]
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert position_in_use(index, uuids, environment) == position


OWN_PROCESSES = """
import os, psutil, subprocess, sys
from rl_tui.engine.running.machine.gpus import GpuProbe
from rl_tui.engine.session.codec import encode
from rl_tui.engine.session.messages import DevicesSampled, Envelope
with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
    os.environ["DRIVER_COMPUTE"] = f"{os.getpid()}:100 {child.pid}:300 {os.getppid()}:200"
    probe = GpuProbe()
    for number in (1, 2):
        gpus, note = probe.probe()
        print(encode(Envelope(number, 0.0, DevicesSampled(gpus, note, 0.0, 1, 0, 0, 0, 0, 0))))
        os.environ["DRIVER_COMPUTE"] = f"{os.getpid()}:100"
    child.communicate()
"""


def test_processes_on_a_gpu_have_names_and_ours_are_known(driver):
    process = subprocess.run(
        [sys.executable, "-c", OWN_PROCESSES],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver / "current")},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    first, second = (decode(line).event.gpus for line in process.stdout.splitlines())
    assert [(process.memory_used_bytes, process.is_ours) for process in first[0].processes] == [
        (300, True),
        (200, False),
        (100, True),
    ]
    assert first[0].processes[1].pid == os.getpid()
    assert all(process.name == psutil.Process().name() for process in first[0].processes)
    assert first[1].processes == (), "a GPU that does not report any has none"
    assert [process.memory_used_bytes for process in second[0].processes] == [100]


def test_a_process_that_computes_and_draws_is_one(driver):
    gpu, _ = probed(driver / "current", DRIVER_COMPUTE="1:5 4294967295:", DRIVER_GRAPHICS="1:7 4294967294:3")[
        0
    ].event.gpus
    assert [(process.pid, process.memory_used_bytes) for process in gpu.processes] == [
        (1, 7),
        (4294967294, 3),
        (4294967295, None),
    ]
    assert [process.name for process in gpu.processes[1:]] == ["", ""], "they are unknown"


def test_a_crowded_gpu_shows_who_has_most(driver):
    crowd = " ".join(f"{pid}:{pid}" for pid in range(1000, 1100))
    gpu, _ = probed(driver / "current", DRIVER_COMPUTE=crowd)[0].event.gpus
    assert [process.pid for process in gpu.processes] == list(range(1099, 1067, -1))


def test_an_old_driver_still_reports_its_processes(driver):
    gpu, _ = probed(driver / "old", DRIVER_COMPUTE="1:5", DRIVER_GRAPHICS="2:6")[0].event.gpus
    assert [process.pid for process in gpu.processes] == [2, 1]


def test_a_probe_opens_nothing_before_its_first_query():
    program = (
        "import sys; from rl_tui.engine.running.machine.devices import DeviceSampler\n"
        "DeviceSampler('x'); sys.exit('pynvml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=DEADLINE_SECONDS, check=False).returncode == 0
    GpuProbe().close()
