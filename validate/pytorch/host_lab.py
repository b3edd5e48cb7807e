"""Machines made of one: network namespaces with a card each, and a stated share of a core for every process.

The settings are those of validate/host_replay/namespaces.cpp, which says why, but for `segments`. Names are
foretrain-PID-NUMBER, so that `foretrain replay` removes what a killed run leaves, and this lab what a killed replay
left.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess

PAYLOAD, HEADER = 1448, 66  # of a full TCP segment
WINDOW, QUEUE = 1500000, 32000000  # bytes under way in a connection; bytes that wait at a card
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
    """What the kernel calls it; the architecture where it says nothing."""
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return names[0] if names else platform.machine()


def address(host):
    return f"10.77.0.{host + 1}"


def segments(megabits):
    """TCP segments that cross the stack as one packet: 200 us worth of data, 17 to 40.

    Replays take fewer below 1 Gbit/s. Four hosts at 500 Mbit/s with 4 or 8 segments kept two cores busy with interrupts
    for 80 % of the time (Linux 6.18), with 17 for 20 %; steps are long beside a bucket of 26 kB.
    """
    return max(17, min(40, round(megabits * 1e6 / 8 * 200e-6 / (PAYLOAD + HEADER))))


def run(command, text=None, check=True):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


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
    for program in ("ip", "tc"):
        if not shutil.which(program):
            return f"there is no `{program}`: install the package iproute2"
    if not CPU_GROUPS.is_dir() and not (V2_GROUPS / "cgroup.controllers").exists():
        return "there are no control groups, which hold processes to their share of a core"
    try:
        Lab(1).close()
    except (RuntimeError, OSError) as error:
        return f"this system does not let us make hosts: {error}"
    return ""


def remove_leftovers():
    """Namespaces of processes that are no more."""
    for line in run(["ip", "netns", "list"], check=False).splitlines():
        found = re.match(r"(foretrain-(\d+)-\d+)", line)
        if found and not pathlib.Path("/proc", found[2]).exists():
            run(["ip", "netns", "delete", found[1]], check=False)


class Lab:
    """Hosts on one switch. Host i's processes run on core i modulo the machine's cores."""

    numbers = 0

    def __init__(self, hosts):
        remove_leftovers()
        self.names, self.groups = [], []
        self.switch = self.new_name()
        try:
            self.make(hosts)
        except BaseException:
            self.close()
            raise

    @classmethod
    def new_name(cls):
        cls.numbers += 1
        return f"foretrain-{os.getpid()}-{1000 + cls.numbers}"

    def make(self, hosts):
        run(["ip", "netns", "add", self.switch])
        run(["ip", "-n", self.switch, "-batch", "-"], "link add up0 type veth peer name up1\n" +
            "".join(f"link add br{i} type bridge\nlink set br{i} up\nlink set up{i} master br{i}\nlink set up{i} up\n"
                    for i in range(2)))
        for host in range(hosts):
            name = self.new_name()
            run(["ip", "netns", "add", name])
            self.names.append(name)
            run(["ip", "-batch", "-"],
                f"link add eth0 netns {name} type veth peer name port{host} netns {self.switch}\n")
            run(["ip", "-n", self.switch, "-batch", "-"],
                f"link set port{host} master br0\nlink set port{host} up\n")
            run(["ip", "-n", name, "-batch", "-"],
                f"addr add {address(host)}/24 dev eth0\nlink set lo up\nlink set eth0 up\n")
            settings = {"tcp_congestion_control": "reno", "tcp_slow_start_after_idle": 0, "tcp_no_metrics_save": 1,
                        "tcp_wmem": f"4096 {WINDOW} {WINDOW}", "tcp_rmem": f"4096 {WINDOW} {WINDOW}"}
            run(["ip", "netns", "exec", name, "sh", "-c",
                 " && ".join(f"echo '{value}' >/proc/sys/net/ipv4/{key}" for key, value in settings.items())])
            # Packets that wait at a card leave on whichever core its timer fires; handed on by several cores they would
            # overtake each other, which TCP takes for losses.
            for where, device in ((name, "eth0"), (self.switch, f"port{host}")):
                run(["ip", "netns", "exec", where, "sh", "-c",
                     f"echo {1 << self.core(host):x} >/sys/class/net/{device}/queues/rx-0/rps_cpus"])
            self.groups.append(self.make_group(name))
        for end in range(2):
            run(["ip", "netns", "exec", self.switch, "sh", "-c",
                 f"echo {1 << self.core(end):x} >/sys/class/net/up{end}/queues/rx-0/rps_cpus"])

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
        for host in range(len(rates)):
            bridge = 1 if uplink and host >= len(rates) // 2 else 0
            run(["ip", "-n", self.switch, "link", "set", f"port{host}", "master", f"br{bridge}"])
        for end in range(2) if uplink else ():
            run(["tc", "-n", self.switch, "qdisc", "replace", "dev", f"up{end}", "root", "tbf", "rate",
                 f"{uplink * 1e6:.0f}bit", "burst", str(segments(uplink) * (PAYLOAD + HEADER)), "limit", str(QUEUE)])
        for host, (out, into) in enumerate(rates):
            for rate, where, device in ((into, self.switch, f"port{host}"), (out, self.names[host], "eth0")):
                burst = segments(rate) * (PAYLOAD + HEADER)
                run(["tc", "-n", where, "qdisc", "replace", "dev", device, "root", "tbf", "rate",
                     f"{rate * 1e6:.0f}bit", "burst", str(burst), "limit", str(QUEUE)])
            # A packet that is larger than the receiving card's bucket would be cut there at great cost.
            narrowest = [out] + [r[1] for r in rates] + ([uplink] if uplink else [])
            largest = min(map(segments, narrowest)) * PAYLOAD + HEADER
            run(["ip", "-n", self.names[host], "link", "set", "dev", "eth0", "gso_max_size", str(largest)])
            run(["ip", "netns", "exec", self.names[host], "sh", "-c",
                 f"echo {3 * largest} >/proc/sys/net/ipv4/tcp_limit_output_bytes"])

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
        for name in self.names + [self.switch]:
            run(["ip", "netns", "delete", name], check=False)
        for group in self.groups:
            try:
                group.rmdir()
            except OSError:
                pass  # a process is still ending; the next boot forgets an empty group
        self.names, self.groups = [], []
