"""Pushes three messages, and handles them: one fails at first. Arguments: server and queue."""

import sys

from delayq import Problem, Queue

server, name = sys.argv[1:3]
queue = Queue(server, name)
queue.push("grüße".encode(), id="text", headers={"lang": "de"})
queue.push(b"\xff\x00", id="bytes", after="500ms")
queue.push(b"never", id="cancelled", after="1h")
queue.cancel("cancelled")
try:
    queue.push(b"again", id="bytes")
except Problem as problem:
    print("push:", problem.code)

done = 0
while done < 2:
    for message in queue.receive(limit=10):
        if message.id == "text" and message.attempt == 1:
            queue.nack(message, after=0.5)
            continue
        print(message.id, message.body, message.headers, "attempt", message.attempt)
        queue.ack(message)
        done += 1
