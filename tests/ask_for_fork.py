"""What Ray calls in place of its own file for workers: asks `tests.forked_workers` for a fork."""

import json
import os
import socket
import sys

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(os.path.join(os.path.dirname(sys.argv[0]), "socket"))
        text = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
        socket.send_fds(server, [f"{len(text):08}".encode()], [0, 1, 2])
        server.sendall(text)
        file = server.recv(1 << 12).decode()  # nothing, once the fork has ended
    if file:
        os.execv(sys.executable, [sys.executable, file, *sys.argv[1:]])
