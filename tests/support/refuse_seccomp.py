#!/usr/bin/env python3
"""Runs a command where the kernel refuses filters of system calls, as some containers do: refuse_seccomp.py COMMAND...

A filter itself: prctl(PR_SET_SECCOMP) and seccomp() fail with EINVAL, all else is allowed. For x86-64."""
import ctypes
import os
import struct
import sys

PRCTL, SECCOMP, SET_SECCOMP, NO_NEW_PRIVS, EINVAL = 157, 317, 22, 38, 22
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERROR = 0x7fff0000, 0x00050000
NUMBER, FIRST_ARGUMENT = 0, 16
LINES = [(LOAD, 0, 0, NUMBER), (IF_EQUAL, 4, 0, SECCOMP), (IF_EQUAL, 0, 2, PRCTL), (LOAD, 0, 0, FIRST_ARGUMENT),
         (IF_EQUAL, 1, 0, SET_SECCOMP), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERROR | EINVAL)]
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(b''.join(struct.pack('<HBBI', *line) for line in LINES))
program = ctypes.create_string_buffer(struct.pack('<HxxxxxxQ', len(LINES), ctypes.addressof(code)))
if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, 2, program, 0, 0):
    sys.exit(f'refuse_seccomp: {os.strerror(ctypes.get_errno())}')
os.execvp(sys.argv[1], sys.argv[1:])
