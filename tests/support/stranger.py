"""usage: stranger.py HOST:PORT...: sends a byte to each, says how many took it, and which, and stays connected"""
import socket
import sys
import time

reached = []
for at in sys.argv[1:]:
    host, port = at.split(":")
    try:
        reached.append((at, socket.create_connection((host, int(port)), timeout=5)))
    except OSError:
        continue
    reached[-1][1].sendall(b"\n")
print(len(reached), *(at for at, _ in reached), flush=True)
time.sleep(600)
