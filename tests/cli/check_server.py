#!/usr/bin/env python3
"""Whether `foretrain serve` answers as `foretrain predict --json` does, refuses what strangers should not do, and ends.

tests/cli/check_server.py PROGRAM                                      a few seconds
tests/cli/check_server.py --requests 10000 [--clients 32] PROGRAM      then twice so many, hostile ones among them, and
                                                                       the server's memory between the two and after
"""
import argparse
import atexit
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

failures = []


def check(what, right, said=""):
    if not right:
        failures.append(what)
        print(f"wrong: {what}: {str(said)[:400]}")


SCENARIO = """name: small
cluster: { node: dgx-a100-80gb }
workload:
  train: { model: gpt2, global_batch: 64, micro_batch: 8, precision: bf16 }
"""


class Server:
    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, "serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        line = self.process.stderr.readline()
        found = re.search(r"http://.*:(\d+)/", line)
        if not found:
            sys.exit(f"no server: {line}{self.process.stderr.read()}")
        self.port = int(found.group(1))

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def complaint(self, *request, **more):
        status, body = self.ask(*request, **more)
        return status, json.loads(body)

    def raw(self, data, pause=0.0):
        """Answer to bytes that are no whole request; then the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(data)
            time.sleep(pause)
            return connection

    def said_to(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            said = b""
            with contextlib.suppress(OSError):
                connection.sendall(data)
            with contextlib.suppress(OSError):
                while part := connection.recv(65536):
                    said += part
            return said

    def processes(self):
        """This one and all below it."""
        parents = collections.defaultdict(list)
        for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parents[int(status.read_text().rsplit(")", 1)[1].split()[1])].append(int(status.parent.name))
        found, left = [], [self.process.pid]
        while left:
            found.append(left.pop())
            left += parents[found[-1]]
        return found

    def resident(self):
        """Megabytes of its processes."""
        pages = [int(pathlib.Path(f"/proc/{number}/statm").read_text().split()[1]) for number in self.processes()]
        return [round(count * os.sysconf("SC_PAGE_SIZE") / 1e6, 1) for count in pages]

    def end(self, how=signal.SIGTERM):
        processes = self.processes()
        started = time.monotonic()
        self.process.send_signal(how)
        status = self.process.wait(timeout=20)
        took = time.monotonic() - started
        self.process.stderr.close()
        check(f"signal {how}: ends with 0 within a second", status == 0 and took < 1.0, (status, took))
        time.sleep(0.1)
        left = [number for number in processes if pathlib.Path(f"/proc/{number}/cmdline").exists()
                and pathlib.Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"]
        check(f"signal {how}: no process is left", not left, left)


def predicted(program, *arguments):
    said = subprocess.run([program, "predict", *arguments, "--json"], capture_output=True, check=True).stdout
    return said.replace(str(arguments[0]).encode() + b":", b"scenario.yaml:")  # where values are stated


def same_bytes(program, server, folder):
    file = folder / "scenario.yaml"
    for text in (SCENARIO, SCENARIO.replace("name: small\n", "")):
        file.write_text(text)
        expected = predicted(program, file)
        check("a scenario as YAML", server.ask("POST", "/predict", text) == (200, expected))
        asked = json.dumps({"scenario": text})
        check("the same in JSON", server.ask("POST", "/predict", asked) == (200, expected))
    expected = predicted(program, file, "--set", "plan.zero=1", "--fidelity", "estimate")
    asked = json.dumps({"scenario": file.read_text(), "set": ["plan.zero=1"], "fidelity": "estimate"})
    headers = {"Content-Type": "application/json"}
    check("settings in JSON", server.ask("POST", "/predict", asked, headers) == (200, expected))
    check("settings in the address",
          server.ask("POST", "/predict?set=plan.zero%3D1&fidelity=estimate", file.read_text()) == (200, expected))
    check("a name", server.ask("GET", "/predict?scenario=gpt2-xl-dgx-a100&set=cluster.nodes=1") ==
          (200, predicted(program, "gpt2-xl-dgx-a100", "--set", "cluster.nodes=1")))


def lists(program, server):
    for kind in ("scenarios", "models", "hardware"):
        said = subprocess.run([program, kind, "list"], capture_output=True, check=True, text=True).stdout
        status, names = server.complaint("GET", f"/{kind}")
        check(f"/{kind}", status == 200 and len(names) > 5 and all(entry["name"] in said for entry in names), names)
    schema = subprocess.run([program, "keys", "--schema", "result"], capture_output=True, check=True).stdout
    check("the schema", server.ask("GET", "/schema") == (200, schema))
    status, page = server.ask("GET", "/")
    check("the page, which needs no other", status == 200 and b"<textarea" in page and b"http" not in page, page[:100])
    status, text = server.ask("GET", "/scenarios/sync-ring-4")
    check("a scenario's file", status == 200 and b"cluster:" in text, text)


def errors(server):
    status, said = server.complaint("POST", "/predict", SCENARIO + "colour: red\n")
    check("an unknown key has its place", status == 400 and (said["line"], said["column"]) == (5, 1)
          and "colour" in said["error"] and said["remedy"], said)
    status, said = server.complaint("POST", "/predict", "a: [")
    check("no YAML", status == 400 and said["line"] == 2 and said["remedy"], said)
    status, said = server.complaint("POST", "/predict", b"name: \xff\n")
    check("no text", status == 400 and (said["line"], said["column"]) == (1, 7), said)
    status, said = server.complaint("POST", "/predict", '{"scenario": }', headers={"Content-Type": "application/json"})
    check("no JSON", status == 400 and said["line"] == 1, said)
    status, said = server.complaint("GET", "/predict?scenario=gpt2-lx-dgx-a100")
    check("an unknown name", status == 400 and "gpt2-xl-dgx-a100" in said["remedy"], said)
    for asked, expected in (("/predict", 400), ("/predict?scenario=sync-ring-4&sett=1", 400), ("/nothing", 404),
                            ("/predict?scenario=sync-ring-4&fidelity=best", 400),
                            ("/predict?scenario=sync-ring-4&set=1", 400)):
        status, said = server.complaint("GET", asked)
        check(asked, status == expected and said["error"] and said["remedy"], said)
    status, said = server.complaint("DELETE", "/predict")
    check("DELETE", status == 405, said)


def files(server, folder):
    secret = folder / "secret.yaml"
    secret.write_text("kind: node\nsecret: 1\n")
    there, gone = str(secret), str(folder / "gone.yaml")
    wanted = [lambda file: SCENARIO.replace("dgx-a100-80gb", file),
              lambda file: SCENARIO.replace("dgx-a100-80gb", "{ preset: " + file + " }"),
              lambda file: SCENARIO.replace("model: gpt2", "model: " + file),
              lambda file: SCENARIO.replace("model: gpt2", "model: { hf: " + file + " }"),
              lambda file: SCENARIO + f"plan: {{ trainer: {file} }}\n",
              lambda file: SCENARIO + f"calibration: {file}\n",
              lambda file: SCENARIO + f"jobs: [ {{ scenario: {file}, nodes: 0 }} ]\n"]
    for write in wanted:
        answers = []
        for file in (there, gone, "./secret.yaml", "/dev/stdin", "../../../../../../etc/passwd.yaml"):
            status, said = server.complaint("POST", "/predict", write(file))
            check(f"refused: {write(file).splitlines()[-1]}", status == 400 and "a file" in said["error"], said)
            answers.append((said["error"].replace(file, ""), said["remedy"]))
        check("one learns of no file whether it is there", answers[0] == answers[1], answers)
    for name in (there, "-", "/dev/stdin", "../models/gpt2", "runs/sync-ring-4.yaml", "sync-ring-4.yaml"):
        status, said = server.complaint("GET", f"/predict?scenario={urllib.parse.quote(name)}")
        check(f"refused: the scenario {name}", status == 400, said)
    status, said = server.complaint("GET", f"/predict?scenario=sync-ring-4&set=calibration={there}")
    check("refused: a file in a setting", status == 400 and "a file" in said["error"], said)
    for path in ("/../../etc/passwd", "/scenarios/..%2f..%2f..%2fetc%2fpasswd", "/scenarios/%2fetc%2fpasswd",
                 "//etc/passwd"):
        status, said = server.ask("GET", path)
        check(f"nothing at {path}", status in (400, 404) and b"root:" not in said, said)


def bounds(server):
    status, said = server.complaint("POST", "/predict", b"# " + b"a" * (1 << 20))
    check("too large", status == 413 and said["remedy"], said)
    said = server.said_to(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    check("a body of unknown length", b" 411 " in said[:40], said[:200])
    status, said = server.complaint("POST", "/predict", b"x", headers={"Content-Encoding": "gzip"})
    check("packed", status == 415, said)
    check("a long address", b" 414 " in server.said_to(b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n")[:40])
    check("junk", b" 400 " in server.said_to(bytes(range(256)) * 20 + b"\r\n\r\n")[:40])
    ranges = b"GET /schema HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + b"0-," * 2000 + b"0-\r\n\r\n"
    check("ranges", len(server.said_to(ranges)) < 1_000_000)
    lines = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 500_000
    check("endless headers", len(server.said_to(lines)) < 100_000)
    with contextlib.ExitStack() as silent:
        for _ in range(40):
            silent.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        check("beside silent clients", server.ask("GET", "/schema")[0] == 200)
    check("it still answers", server.ask("GET", "/schema")[0] == 200)


def browsers(server):
    own = f"127.0.0.1:{server.port}"
    for headers, expected in (({"Host": "evil.example"}, 403), ({"Host": own, "Origin": "http://evil.example"}, 403),
                              ({"Host": own, "Origin": "null"}, 403),
                              ({"Host": own, "Sec-Fetch-Site": "cross-site"}, 403),
                              ({"Host": own, "Origin": f"http://{own}", "Sec-Fetch-Site": "same-origin"}, 200),
                              ({"Host": f"localhost:{server.port}"}, 200)):
        status, said = server.ask("POST", "/predict?fidelity=estimate", SCENARIO, headers)
        check(f"{headers}", status == expected, said)


# Forty draws of routes over which 768 GPUs train.
LONG = """name: long
cluster:
  node: dgx-h100
  nodes: 96
  faults: [ { node: 0, card: 0, failed: true } ]
  network:
    { nics_per_node: 8, nic_bandwidth: 400 Gbit/s, latency: 5 us,
      fabric: { kind: fat_tree, nodes_per_leaf: 8, rails: true, uplinks: 4, routing: hash } }
workload:
  train: { model: llama3-70b, global_batch: 1536, micro_batch: 1, precision: bf16 }
plan: { tensor: 8, pipeline: 4, zero: 1, interleave: 2 }
"""


def slow_and_long(program):
    """A prediction that takes too long is given up, also while others wait; a slow client does not keep them."""
    server = Server(program, "--limit", "500 ms", "--jobs", "1")
    slow = socket.create_connection(("127.0.0.1", server.port))
    slow.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nname: ")
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answers = [threads.submit(server.complaint, "POST", "/predict", LONG) for _ in range(2)]
        for status, said in (answer.result() for answer in answers):
            check("too long", status == 503 and said["remedy"], (status, said))
        crashing = threads.submit(server.complaint, "POST", "/predict", LONG)
        while len(server.processes()) < 2:
            time.sleep(0.01)
        os.kill(server.processes()[-1], signal.SIGKILL)
        status, said = crashing.result()
        check("the process that predicts is killed", status == 500 and said["remedy"], (status, said))
    check("after its end", server.ask("POST", "/predict", SCENARIO)[0] == 200)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        half = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        under_way = threads.submit(server.said_to, half)
        time.sleep(0.1)
        server.end()
        under_way.result()
    slow.close()


def tokens(program, folder):
    file = folder / "token"
    file.write_text("0123456789abcdef0123\n")
    refused = subprocess.run([program, "serve", "--host", "0.0.0.0"], capture_output=True, text=True)
    check("no server for others without a token", refused.returncode == 2 and "--token-file" in refused.stderr,
          refused.stderr)
    server = Server(program, "--host", "0.0.0.0", "--token-file", str(file), "--jobs", "1")
    taken = subprocess.run([program, "serve", "--port", str(server.port), "--host", "0.0.0.0", "--token-file", file],
                           capture_output=True, text=True)
    check("a port that is taken", taken.returncode == 2 and "--port" in taken.stderr, taken.stderr)
    for value, expected in ((None, 401), ("Bearer 0123456789abcdef0124", 401), ("Bearer 0123", 401), ("Bearer ", 401),
                            ("0123456789abcdef0123", 401), ("Bearer 0123456789abcdef0123", 200)):
        status, said = server.ask("GET", "/schema", headers={"Authorization": value} if value else {})
        check(f"token {value}", status == expected, said)
    check("the page asks for the token", server.ask("GET", "/")[0] == 200)
    server.end(signal.SIGINT)


def hostile(server, kind):
    if kind == 0:
        server.raw(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nname: ")  # half
    elif kind == 1:
        server.raw(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n" + b"a" * 300_000)
    elif kind == 2:
        server.said_to(random.Random(1).randbytes(3000))
    elif kind == 3:
        server.raw(b"GET /predict?scen", pause=0.3)
    elif kind == 4:
        status, _ = server.ask("POST", "/predict", SCENARIO.replace("gpt2", "/etc/passwd"))
        check("a file", status in (400, 503), status)
    elif kind == 5:
        server.ask("POST", "/predict", "[" * 5000)
    else:
        server.said_to(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 20_000 + b"\r\n")


def load(program, folder, requests, clients):
    server = Server(program)
    asked = []
    for number in range(24):
        text = SCENARIO.replace("64", str(64 * (1 + number % 8))).replace("small", f"small {number}")
        (folder / "load.yaml").write_text(text)
        asked.append((text, predicted(program, folder / "load.yaml")))
    counts = collections.Counter()

    def one(number):
        if number % 10 == 0:
            with contextlib.suppress(OSError):
                hostile(server, number // 10 % 7)
            counts["hostile"] += 1
            return
        text, expected = asked[number % len(asked)]
        status, said = server.ask("POST", "/predict", text)
        counts[status] += 1
        check(f"request {number}", status == 503 or (status, said) == (200, expected), said)

    with concurrent.futures.ThreadPoolExecutor(clients) as threads:
        list(threads.map(one, range(requests)))
        counts.clear()
        before, started = server.resident(), time.monotonic()
        list(threads.map(one, range(requests)))
    print(f"{requests} requests of {clients} clients in {time.monotonic() - started:.1f} s: {dict(counts)}")
    print(f"memory after as many before: {before} MB; after all: {server.resident()} MB")
    server.end()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--requests", type=int, default=0)
    arguments.add_argument("--clients", type=int, default=32)
    options = arguments.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        server = Server(program, "--jobs", "2")
        same_bytes(program, server, folder)
        lists(program, server)
        errors(server)
        files(server, folder)
        bounds(server)
        browsers(server)
        server.end()
        slow_and_long(program)
        tokens(program, folder)
        if options.requests:
            load(program, folder, options.requests, options.clients)
    print("all right" if not failures else f"{len(failures)} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
