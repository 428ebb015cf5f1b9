"""Smooths numbers: a component of type windlass.exec, with nothing but the standard library.

It gets one JSON object in each line, and answers likewise: what to publish, and that it is done with a message.
"""

import json
import os
import sys


def say(**word):
    print(json.dumps(word), flush=True)


def main():
    factor = float(os.environ.get("SMOOTH_FACTOR", "0.5"))
    smoothed = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "stop":
            break
        reading = message["value"]["value"]
        smoothed = reading if smoothed is None else factor * reading + (1 - factor) * smoothed
        say(type="publish", port="out", value={"raw": reading, "smooth": round(smoothed, 3)})
        say(type="done", seq=message["seq"])
    say(type="log", level="info", text="the input has ended")


main()
