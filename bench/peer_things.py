"""The plain Python way to watch sensors: paho-mqtt, a rolling window per sensor, and LightGBM on its statistics.

peer_things.py HOST PORT: readings of bench/+; one alarm per sensor at peer/alarm/NAME.  Prints "ready", and at the end of
its input {"readings", "rss_kib"}.
"""
import collections
import json
import math
import resource
import sys
import threading

import lightgbm
import numpy
import paho.mqtt.client as mqtt

WINDOW, LIMIT = 32, 100.0


def features(window, value):
    n = len(window)
    mean = sum(window) / n
    spread = math.sqrt(sum((v - mean) ** 2 for v in window) / n) + 1e-9
    return [value - mean, (value - mean) / spread, value - window[-1], spread, max(window) - min(window)]


def train():
    rng = numpy.random.default_rng(1)
    rows, labels = [], []
    for _ in range(4000):
        window = list(50 + rng.random(WINDOW))
        wrong = rng.random() < 0.3
        rows.append(features(window, 50 + rng.random() + (rng.random() * 100 if wrong else 0)))
        labels.append(int(wrong))
    data = lightgbm.Dataset(numpy.array(rows), label=numpy.array(labels))
    return lightgbm.train({"objective": "binary", "num_leaves": 31, "num_threads": 1, "verbose": -1}, data, num_boost_round=100)


def main():
    model, windows, alarmed, count = train(), {}, set(), [0]

    def on_message(client, _userdata, message):
        name, value = message.topic.rsplit("/", 1)[1], float(message.payload)
        count[0] += 1
        window = windows.setdefault(name, collections.deque(maxlen=WINDOW))
        if len(window) == WINDOW:
            score = float(model.predict(numpy.array([features(window, value)]), num_threads=1)[0])
            if value > LIMIT and name not in alarmed:  # the event contains the score, as ours does
                alarmed.add(name)
                client.publish("peer/alarm/" + name, json.dumps({"value": value, "score": score}), qos=1)
        window.append(value)

    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
    client.on_message = on_message
    client.on_connect = lambda c, *_: c.subscribe("bench/+", 0)
    client.on_subscribe = lambda *_: print("ready", flush=True)
    client.connect(sys.argv[1], int(sys.argv[2]))
    threading.Thread(target=client.loop_forever, daemon=True).start()
    sys.stdin.read()
    print(json.dumps({"readings": count[0], "rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)


main()
