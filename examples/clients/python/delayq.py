"""A client of "delayq serve", with the standard library alone.

    queue = Queue("http://localhost:8090", "mail")
    queue.push(b"hello", after="10s")
    queue.work(lambda message: print(message.body))
"""

import base64
import dataclasses
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid


LATER = ("unavailable", "too-many-requests")  # codes of requests that may be sent again
UNKNOWN = ("outcome-unknown", "unconfirmed", "internal")  # codes of those that may be done


class Problem(Exception):
    """An error of the server. Its code says which: "not-found", "lease-lost", "duplicate", ..."""

    def __init__(self, fields):
        super().__init__(f"{fields.get('title')}: {fields.get('detail', '')}")
        self.code = fields.get("code")
        self.fields = fields


@dataclasses.dataclass
class Message:
    id: str
    body: bytes
    headers: dict
    attempt: int
    lease: str


class Queue:
    def __init__(self, server, name, token=None, tries=5):
        self.base = f"{server.rstrip('/')}/v1/queues/{urllib.parse.quote(name, safe='')}/"
        self.token = token
        self.tries = tries

    def push(self, body, id=None, **fields):
        """Stores a message and returns its id. Fields are after, due, headers and so on."""
        if id is not None:
            fields["id"] = id
        encoded = base64.b64encode(body).decode()
        return self._post("messages", {"body_base64": encoded, **fields})["id"]

    def receive(self, limit=1, wait="20s", lease_for="30s"):
        """Waits for messages that are due. The list is empty when the time to wait is over."""
        asked = {"limit": limit, "wait": wait, "lease_for": lease_for}
        return [self._message(m) for m in self._post("receive", asked)["messages"]]

    def ack(self, message):
        self._post("ack", {"leases": [message.lease]})

    def nack(self, message, after):
        self._post("nack", {"messages": [{"lease": message.lease, "after": after}]})

    def dead(self, message, reason):
        self._post("dead", {"messages": [{"lease": message.lease, "reason": reason}]})

    def cancel(self, id):
        self._post("cancel", {"ids": [id]})

    def work(self, handle, attempts=10, lease_for="30s"):
        """Calls handle for each message, for ever. A message that fails is due again later, and
        becomes a dead letter after so many attempts. handle has to return within the lease, or the
        message is handed out once more. While the server is away, work tries again."""
        while True:
            try:
                for message in self.receive(lease_for=lease_for):
                    self._work_on(message, handle, attempts)
            except Problem as problem:
                if problem.code not in ("lease-lost", *LATER, *UNKNOWN):
                    raise
                if problem.code in UNKNOWN:
                    time.sleep(0.1)  # it may come at once, again and again
            except (OSError, http.client.HTTPException):
                pass  # it has been tried again for a while, and slept

    def _work_on(self, message, handle, attempts):
        try:
            handle(message)
        except Exception as failure:
            if message.attempt >= attempts:
                self.dead(message, repr(failure))
            else:
                self.nack(message, after=min(2**message.attempt, 3600))
        else:
            self.ack(message)

    @staticmethod
    def _message(m):
        if "body_base64" in m:
            body = base64.b64decode(m["body_base64"])
        else:
            body = m.get("body", "").encode()
        headers = m.get("headers", {})
        for name, value in m.get("headers_base64", {}).items():  # those that are no text
            headers[name] = base64.b64decode(value)
        return Message(m["id"], body, headers, m["attempt"], m["lease"])

    def _post(self, verb, value):
        # A request that is sent again with the same key is not executed again.
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        request = urllib.request.Request(self.base + verb, json.dumps(value).encode(), headers)
        lost = False  # the reply to a try
        for again in range(self.tries):
            try:
                with urllib.request.urlopen(request, timeout=90) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                failure = Problem(_fields(error))
                if failure.code == "duplicate" and lost:
                    return {"id": value["id"]}  # stored by a try whose reply was lost
                if failure.code not in LATER:
                    raise failure from None
                lost = lost or failure.fields.get("outcome_unknown", False)
            except (OSError, http.client.HTTPException) as error:  # the reply may be lost
                failure, lost = error, True
            time.sleep(0.1 * 2**again)
        raise failure


def _fields(error):
    """The problem that a reply tells of. A proxy's own reply is no JSON."""
    try:
        return json.load(error)
    except ValueError:
        failed = error.code >= 500
        code = "unavailable" if failed else None
        return {"title": str(error), "code": code, "outcome_unknown": failed}
