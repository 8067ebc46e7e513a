"""The floor of a one-shot run: one request over a plain socket and its streamed answer, nothing else."""

import json
import socket
import sys

port, path = int(sys.argv[1]), sys.argv[2]
body = json.dumps({"model": "mock", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
with socket.create_connection(("127.0.0.1", port)) as connection:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    answer = b""
    while not answer.endswith(b"0\r\n\r\n"):
        answer += connection.recv(65536)
for line in answer.split(b"\n"):
    if line.startswith(b"data: {"):
        for choice in json.loads(line[6:])["choices"]:
            sys.stdout.write(choice["delta"].get("content") or "")
sys.stdout.write("\n")
