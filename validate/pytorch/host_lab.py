"""Machines made of one: network namespaces with a card each, and a stated share of a core for every process.

Hosts are made by validate/host_replay/hosts.sh, as those of `foretrain replay`.
"""

import itertools
import os
import pathlib
import platform
import subprocess

PAYLOAD, HEADER = 1448, 66  # of a full TCP segment
# TCP segments that cross the stack as one packet, at least; replays take fewer below 1 Gbit/s. Four hosts at 500 Mbit/s with
# 4 or 8 segments kept two cores busy with interrupts for 80 % of the time (Linux 6.18), with 17 for 20 %; steps are long
# beside a bucket of 26 kB.
LEAST_SEGMENTS = 17
HOSTS = pathlib.Path(__file__).parents[1] / "host_replay/hosts.sh"
# malloc keeps what is freed. Left to itself it gives memory back to the system and takes it anew, in some runs of the
# same training and not in others (mallopt(3), M_TRIM_THRESHOLD; 32 MiB is the largest M_MMAP_THRESHOLD).
MEMORY = {"MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_MMAP_THRESHOLD_": "33554432"}
PERIOD_US = 10000  # of the scheduler's quota: short beside a step
CPU_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")  # cgroup v1; in v2 the folder above it
V2_GROUPS = pathlib.Path("/sys/fs/cgroup")


def of_training(**more):
    """The environment of a process that trains with one thread, by Gloo over its host's card."""
    return dict(os.environ, MASTER_ADDR=address(0), GLOO_SOCKET_IFNAME="eth0", USE_LIBUV="0", OMP_NUM_THREADS="1",
                OPENBLAS_NUM_THREADS="1", **MEMORY, **more)


def processor():
    """The kernel's name of it, else the architecture."""
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return names[0] if names else platform.machine()


def address(host):
    return f"10.77.0.{host + 1}"


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def packet_threads():
    """The kernel's threads that carry on with packets where interrupts leave them: their work is that of our cards."""
    listed = subprocess.run(["ps", "-eo", "pid=,comm="], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "ksoftirqd/" in line]


def busy_seconds(processes):
    """Processor time of all programs of the machine, of these processes (system calls included) and the kernel's
    threads that carry their packets, and of interrupts."""
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, hard, soft = map(int, pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:8])
    own = 0
    for pid in [process.pid for process in processes] + PACKET_THREADS:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        own += sum(map(int, fields[11:15]))  # those of the cases that it ran as well
    return (user + nice + system) / tick, own / tick, (hard + soft) / tick


PACKET_THREADS = packet_threads()


def why_not():
    """Why hosts cannot be made here, or nothing."""
    if os.geteuid() != 0:
        return "hosts are network namespaces, and only root may make them"
    if not CPU_GROUPS.is_dir() and not (V2_GROUPS / "cgroup.controllers").exists():
        return "there are no control groups, which hold processes to their share of a core"
    try:
        Lab(1).close()
    except (RuntimeError, OSError) as error:
        return f"this system does not let us make hosts (by the package iproute2): {error}"
    return ""


class Lab:
    """Hosts on one switch. Host i's processes run on core i modulo the machine's cores."""

    numbers = itertools.count()

    def __init__(self, hosts):
        self.switch, *self.names = (f"foretrain-{os.getpid()}-{next(self.numbers)}" for _ in range(hosts + 1))
        self.groups = []
        try:
            run("sh", str(HOSTS), "make", self.switch, *self.names)
            for host, name in enumerate(self.names):
                self.pin(name, "eth0", host)
                self.pin(self.switch, f"port{host + 1}", host)
                self.groups.append(self.make_group(name))
        except BaseException:
            self.close()
            raise

    def pin(self, where, device, host):
        """One core forwards the packets of a NIC or cable: packets that wait there leave on whichever core its timer
        fires, and by several cores they would overtake each other, which TCP takes for losses."""
        run("ip", "netns", "exec", where, "sh", "-c",
            f"echo {1 << self.core(host):x} >/sys/class/net/{device}/queues/rx-0/rps_cpus")

    @staticmethod
    def core(host):
        cores = sorted(os.sched_getaffinity(0))
        return cores[host % len(cores)]

    @staticmethod
    def make_group(name):
        group = (CPU_GROUPS if CPU_GROUPS.is_dir() else V2_GROUPS) / name
        group.mkdir()
        if CPU_GROUPS.is_dir():  # other programs on the machine shall not be part of the measurement
            (group / "cpu.shares").write_text("262144")
        else:
            (group / "cpu.weight").write_text("10000")
        return group

    def shape(self, rates, uplink=None):
        """`rates`: for each host (out, in) in Mbit/s; `uplink`: of what then joins the two halves of the hosts."""
        cards = "".join(f"{name} {out * 125000} {into * 125000}\n" for name, (out, into) in zip(self.names, rates))
        leaf = len(rates) // 2 if uplink else 0
        run("sh", str(HOSTS), "shape", self.switch, str(LEAST_SEGMENTS), str(leaf), str((uplink or 0) * 125000), text=cards)
        for device in ("up0", "down0", "up1", "down1") if uplink else ():
            self.pin(self.switch, device, int(device[-1]))

    def hold(self, shares):
        """Each host's processes get this share of a core, in every period of PERIOD_US."""
        for group, share in zip(self.groups, shares):
            quota = -1 if share >= 1 else int(PERIOD_US * share)
            if CPU_GROUPS.is_dir():
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (group / "cpu.max").write_text(f"{'max' if quota < 0 else quota} {PERIOD_US}")

    def start(self, host, command, held=True, **options):
        """A process on the host, pinned to its core and, unless it is to take its time beside, in its control group."""
        group = self.groups[host] / "cgroup.procs" if held else "/dev/null"
        inner = f"echo $$ >{group} && exec taskset -c {self.core(host)} ip netns exec {self.names[host]} \"$@\""
        return subprocess.Popen(["sh", "-c", inner, "sh"] + command, **options)

    def close(self):
        run("sh", str(HOSTS), "remove", self.switch, *self.names)
        for group in self.groups:
            try:
                group.rmdir()
            except OSError:
                pass  # a process is still ending; the next boot forgets an empty group
        self.groups = []
