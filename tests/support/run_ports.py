"""usage: run_ports.py list|open|ranks RUN: the TCP ports of a run's processes, as `ss` shows them: all, those reached
from other hosts, or those of its ranks"""
import os
import re
import subprocess
import sys

what, run = sys.argv[1:]


def text(process, name):
    try:
        return open(f"/proc/{process}/{name}", errors="replace").read()
    except OSError:
        return ""


ours = {p for p in filter(str.isdigit, os.listdir("/proc")) if f"--out\0{run}\0" in text(p, "cmdline") + "\0"}
ranks = {p for p in ours if re.search("(^|\0)(OMPI_COMM_WORLD_RANK|PMI_RANK)=", text(p, "environ"))}
for line in subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout.splitlines():
    address, users = line.split()[3], set(re.findall(r"pid=(\d+)", line))
    if what == "ranks" and users and users <= ranks or what != "ranks" and users & ours:
        if what != "open" or not re.match(r"127\.|\[::1\]|[^ ]*%lo:", address):
            print(address, *sorted(users & ours))
