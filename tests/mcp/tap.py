"""Stands before a command that speaks over stdio and writes each line that passes into a file,
with `>` for what goes to the command and `<` for what comes from it.

    tap.py LOG COMMAND [ARGUMENT...]
"""

import subprocess
import sys
import threading


def pump(source, sink, mark, log, lock):
    for line in iter(source.readline, b""):
        with lock:
            log.write(mark + line)
            log.flush()
        try:
            sink.write(line)
            sink.flush()
        except (BrokenPipeError, ValueError):
            break
    try:
        sink.close()
    except BrokenPipeError:
        pass


def main():
    log, lock = open(sys.argv[1], "wb"), threading.Lock()
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    to_child = threading.Thread(
        target=pump, args=(sys.stdin.buffer, child.stdin, b">", log, lock), daemon=True
    )
    to_child.start()
    pump(child.stdout, sys.stdout.buffer, b"<", log, lock)
    sys.exit(child.wait())


main()
