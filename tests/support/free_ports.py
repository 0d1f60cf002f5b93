#!/usr/bin/env python3
"""free_ports.py COUNT: the first of COUNT TCP ports in a row that nobody on this machine has, below those that the system gives away."""
import random, socket, sys


def is_free(port):
    with socket.socket() as listener:
        try:
            listener.bind(("", port))
            return True
        except OSError:
            return False


count, first = int(sys.argv[1]), 0
while not first or not all(map(is_free, range(first, first + count))):
    first = random.randrange(10000, 32000)
print(first)
