"""Stands in for a process that :mod:`tests.forked` forks: ``forked_client.py SOCKET ARGUMENTS``.

It passes on its standard streams and the signals that it gets, and ends as the fork does.
"""

import json
import os
import signal
import socket
import sys

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
request = {
    "arguments": sys.argv[2:],
    "folder": os.getcwd(),
    "variables": dict(os.environ),
}
signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
first, rest = json.dumps(request).encode()[:1024], json.dumps(request).encode()[1024:]
socket.send_fds(server, [first], [0, 1, 2])
server.sendall(rest + b"\n")
answers = server.makefile("r")
fork = int(answers.readline())
for number in FORWARDED:
    signal.signal(number, lambda received, _: os.kill(fork, received))
signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
code = int(answers.readline())
sys.exit(code if code >= 0 else 128 - code)  # as shells have it
