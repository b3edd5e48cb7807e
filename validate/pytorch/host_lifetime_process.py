"""A worker of a training that is saved and restarted, or the file server that it is saved to (host_lifetime.py).

    host_lifetime_process.py worker CASE.json    says up, joined, ready, step N, saved N, done, probe {}; sign of life: .
    host_lifetime_process.py server
"""

import contextlib
import json
import os
import sys
import threading
import time
from multiprocessing.connection import Client, Listener

PORT = 29700


def request(server, *words):
    """Answers of the file server: rank, step and data are kept, rank and step asked for."""
    with Client((server, PORT)) as connection:
        connection.send(words)
        return connection.recv()


def serve():
    """Keeps of each rank the state of its last two saved steps; a state that did not come whole is none."""
    kept = {}

    def answer(connection):
        with connection, contextlib.suppress(EOFError, OSError, KeyError):
            rank, step, *data = connection.recv()
            of_rank = kept.setdefault(rank, {})
            if data:
                of_rank[step], = data
                while len(of_rank) > 2:
                    del of_rank[min(of_rank)]
            connection.send(None if data else of_rank[step])

    with Listener(("", PORT), backlog=16) as listening:
        print("up", flush=True)
        while True:
            threading.Thread(target=answer, args=(listening.accept(),), daemon=True).start()


def beat(seconds):
    while True:
        time.sleep(seconds)
        print(".", flush=True)


class Saving:
    """Each rank keeps its part of the weights, which all of them hold alike."""

    def __init__(self, case, rank, weights, torch, dist):
        self.case, self.rank, self.weights, self.torch, self.dist = case, rank, weights, torch, dist
        self.under_way = None

    def parts(self):
        flat = self.torch.cat([p.detach().view(-1) for p in self.weights])
        return self.torch.nn.functional.pad(flat, (0, -len(flat) % self.case["workers"])).chunk(self.case["workers"])

    def save(self, step):
        if self.under_way:
            self.under_way.join()
        data = self.parts()[self.rank].numpy().tobytes()
        self.under_way = threading.Thread(target=self.send, args=(step, data))
        self.under_way.start()
        if self.case["mode"] == "synchronous":
            self.under_way.join()

    def send(self, step, data):
        request(self.case["server"], self.rank, step, data)
        print(f"saved {step}", flush=True)

    def restore(self, step):
        data = request(self.case["server"], self.rank, step)
        own = self.torch.frombuffer(bytearray(data), dtype=self.torch.float32)
        whole = self.torch.empty(len(own) * self.case["workers"])
        self.dist.all_gather_into_tensor(whole, own)
        at = 0
        with self.torch.no_grad():
            for p in self.weights:
                p.copy_(whole[at:at + p.numel()].view_as(p))
                at += p.numel()


def work(case):
    import torch
    import torch.distributed as dist

    import host_parallel
    from host_process import probe
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    print("up", flush=True)
    threading.Thread(target=beat, args=(case["heartbeat"],), daemon=True).start()
    dist.init_process_group("gloo", init_method=f"tcp://{os.environ['MASTER_ADDR']}:{case['port']}", rank=rank,
                            world_size=case["workers"])
    dist.barrier()
    print("joined", flush=True)
    step = host_parallel.prepare(case, rank)
    saving = Saving(case, rank, step.weights, torch, dist)
    if case["start"]:
        saving.restore(case["start"])
    dist.barrier()
    print("ready", flush=True)
    for number in range(case["start"] + 1, case["steps"] + 1):
        step()
        if rank == 0:
            print(f"step {number}", flush=True)
        if case["every"] and number % case["every"] == 0 and number < case["steps"]:
            saving.save(number)
    dist.barrier()
    print("done", flush=True)
    print("probe " + json.dumps(probe(0.3)), flush=True)
    os._exit(0)  # what is still being saved is of no use


if __name__ == "__main__":
    serve() if sys.argv[1] == "server" else work(json.loads(sys.argv[2]))
