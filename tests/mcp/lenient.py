"""A server that reads as leniently as any that was ever seen: members in any case, any number of
messages a line or lines a message, headers before messages, numbers that JSON does not have, nested
batches, calls without an id. Each call is written into a file.

    lenient.py EFFECTS first|last     which of several members with one name counts

A tool does what its arguments say:

    {"say": [LINE, ...]}   writes these lines, with the id in place of @ID@
    {"how": "error"}       a result with isError
    {"how": "refuse"}      a JSON-RPC error of the parameters
    {"how": "die"}         ends the process
    {"wait": FILE}         answers once the file is there; {"block": FILE} reads nothing meanwhile
    anything else          the text "done"
"""

import json
import os
import re
import sys
import threading
import time

FOLDED = str.maketrans({"\u017f": "s", "\u212a": "k", "\u0131": "i", "\u0130": "i"})
HEADER = re.compile(rb"\s*content-length:\s*(\d+)[^\n]*\n", re.IGNORECASE)
effects, pick = open(sys.argv[1], "a"), sys.argv[2]
lock = threading.Lock()


class Pairs(list):
    """An object with all its members."""

    def find(self, name, missing=None):
        fold = lambda key: key.split("\0")[0].translate(FOLDED).lower()
        found = [value for key, value in self if fold(key) == name]
        return found[0 if pick == "first" else -1] if found else missing


def plain(value):
    if isinstance(value, Pairs):
        return {key: plain(inner) for key, inner in value}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def write(line):
    with lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def answer(raw_id, body):
    write(f'{{"jsonrpc":"2.0","id":{raw_id},{body}}}')


def call(raw_id, params):
    tool, arguments = None, Pairs()
    if isinstance(params, Pairs):
        tool, arguments = params.find("name"), params.find("arguments", Pairs())
    elif isinstance(params, list):
        tool, arguments = (params + [None, None])[:2]
    given = plain(arguments) if isinstance(arguments, Pairs) else {}
    if given.get("how") == "refuse":
        return answer(raw_id, '"error":{"code":-32602,"message":"no such tool"}')
    with lock:
        line = {"tool": plain(tool), "arguments": plain(arguments)}
        # Any other word, a mutated one too, has the text "done".
        line["ok"] = given.get("how") not in ("error", "die") and "say" not in given
        effects.write(json.dumps(line) + "\n")
        effects.flush()
    if given.get("how") == "die":
        os._exit(7)
    gate = given.get("wait") or given.get("block")
    while gate and not os.path.exists(gate):
        time.sleep(0.005)
    if "say" in given:
        for line in given["say"]:
            write(line.replace("@ID@", raw_id))
        return
    is_error = ',"isError":true' if given.get("how") == "error" else ""
    answer(raw_id, f'"result":{{"content":[{{"type":"text","text":"done"}}]{is_error}}}')


def take(message):
    if isinstance(message, list) and not isinstance(message, Pairs):
        for element in message:
            take(element)
    if not isinstance(message, Pairs):
        return
    method = message.find("method")
    if isinstance(method, list) and method:
        method = method[0]
    if not isinstance(method, str):
        return
    raw_id = json.dumps(plain(message.find("id")))
    method = method.split("\0")[0].strip().strip("/").lower()
    if method == "tools/call":
        params = message.find("params")
        waits = isinstance(params, Pairs) and "wait" in str(params)
        if waits:
            threading.Thread(target=call, args=(raw_id, params), daemon=True).start()
        else:
            call(raw_id, params)
    elif method == "notifications/cancelled":
        with open(sys.argv[1] + ".cancelled", "a") as file:
            file.write(json.dumps(plain(message.find("params")).get("requestId")) + "\n")
    elif method == "tools/list":
        tools = [{"name": "read", "annotations": {"readOnlyHint": True}}, {"name": "pay"}]
        answer(raw_id, f'"result":{{"tools":{json.dumps(tools)}}}')
    elif method == "initialize":
        info = '{"name":"lenient","version":"1.0"}'
        answer(raw_id, f'"result":{{"serverInfo":{info},"protocolVersion":"2025-06-18"}}')
    elif method == "tasks/get" and isinstance(message.find("params"), Pairs):
        # The task is what its id says.
        answer(raw_id, f'"result":{message.find("params").find("taskid")}')
    elif message.find("id") is not None and not method.startswith("notifications/"):
        answer(raw_id, '"result":{}')


def take_some(text):
    """Takes the first message of a text; gives what is left, or None to wait for more."""
    header = HEADER.match(text.encode())
    if header:
        end = text.find("\n", header.end() - 1)
        body = text[end + 1 :].lstrip("\r\n")
        size = int(header.group(1))
        if len(body.encode()) < size:
            return None
        take_all(body[:size])
        return body[size:]
    text = text.lstrip(" \t\r\n\ufeff")
    if not text:
        return None
    try:
        message, end = decoder.raw_decode(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or "Unterminated" in error.msg:
            return None
        # Looks for a message further on.
        later = [at for at in (text.find("{", 1), text.find("[", 1)) if at > 0]
        return text[min(later) :] if later else ""
    except RecursionError:
        return ""
    take(message)
    return text[end:]


def take_all(text):
    while text:
        text = take_some(text)
    return text


decoder = json.JSONDecoder(object_pairs_hook=Pairs, strict=False)
buffer = ""
for line in sys.stdin.buffer:
    buffer += line.decode("utf-8", "replace")
    while buffer:
        left = take_some(buffer)
        if left is None:
            break
        buffer = left
    if len(buffer) > 1 << 20:
        buffer = ""
