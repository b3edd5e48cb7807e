#!/usr/bin/env python3
"""Kills sweeps, again and again: tests/cli/kill_sweeps.py build/foretrain [KILLS]

Of the kills (200 where nothing is said), by signal 9 and at random moments, three quarters hit the program, often while
it resumes, a quarter one of its workers. After each, no process may be left, and the rows of the database may not have
become fewer; at the end the table has the bytes of one that nobody disturbed. Takes a few minutes."""

import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time


def workers_of(process):
    """Once it has some; none where it ends before."""
    listed = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if found := [int(word) for word in listed.read_text().split()]:
            return found
        time.sleep(0.005)
    return []


def left_running(word):
    count = 0
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += word.encode() in path.read_bytes()
        except OSError:
            pass
    return count


def rows_in(database):
    """Rows and different rows."""
    if not database.exists():
        return 0, 0
    connection = sqlite3.connect(database)
    try:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'rows'").fetchone():
            return 0, 0
        return connection.execute("SELECT count(*), count(DISTINCT row) FROM rows").fetchone()
    finally:
        connection.close()


def main():
    program, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sweep = [program, "sweep", "sync-ring-4", "--vary", "workload.collective.size=1 MB..6000 MB", "--vary",
                 "workload.collective.ranks=2,4", "--fidelity", "estimate", "--jobs", "2", "-o"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([*sweep, folder / "whole.csv"], check=True, **quiet)
        output, partial = folder / "out.csv", folder / "out.csv.partial"
        before, finished, resumed, of_workers = 0, 0, 0, 0
        for number in range(kills):
            resumed += before > 0
            process = subprocess.Popen([*sweep, output], **quiet)
            time.sleep(random.uniform(0.0, 0.25))
            victims = workers_of(process) if of_workers < (number + 1) // 4 else []
            if victims:
                of_workers += 1
                os.kill(random.choice(victims), signal.SIGKILL)
            else:
                process.send_signal(signal.SIGKILL)
            status = process.wait()
            for _ in range(200):
                if not left_running(str(output)):
                    break
                time.sleep(0.01)
            assert not left_running(str(output)), "somebody is left running"
            if status == 0 or (output.exists() and not partial.exists()):  # killed behind its last act, maybe
                assert output.read_bytes() == (folder / "whole.csv").read_bytes(), "the table differs"
                output.unlink()
                finished, before = finished + 1, 0
                continue
            rows, different = rows_in(partial)
            # A worker that was killed leaves a row that is tried again, at most one.
            assert rows == different and rows >= before - 1, f"{before} rows became {rows}"
            before = rows
        while subprocess.run([*sweep, output], **quiet).returncode != 0:
            pass
        assert output.read_bytes() == (folder / "whole.csv").read_bytes(), "the table differs"
        print(f"{kills} kills, {of_workers} of workers, {resumed} while resuming; finished {finished + 1} times, nothing lost")


if __name__ == "__main__":
    main()
