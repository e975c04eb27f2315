"""Publishes consecutive messages of QoS 1 on the short topic `be` with a client of MQTT-SN from PyPI, and prints their times as JSON.

    mqttsn_clients.py mqttsn|mqtt-sn-12 HOST PORT COUNT OCTETS

A message without an acknowledgement within 10 s counts as undelivered.
"""

import contextlib
import io
import json
import sys
import time

TOPIC = "be"
ANSWER_TIME_MAX_S = 10


def rsmb(host, port, payload):
    from mqttsn.client import Client

    client = Client(b"bench", host=host, port=port)
    client.connect()
    waiting = client._Client__receiver.out_msgs

    def publish():
        client.publish(TOPIC, payload, 1)
        deadline = time.monotonic() + ANSWER_TIME_MAX_S
        while waiting and time.monotonic() < deadline:
            # A thread of the client receives.
            time.sleep(0)
        return not waiting

    return publish


def mqtt_sn_12(host, port, payload):
    from mqttsn12.client.MqttSnClient import MqttSnClient

    client = MqttSnClient()
    client.set_client_id("bench")
    client.set_timeout(ANSWER_TIME_MAX_S)
    client.open(host, port)
    client.send_connect()

    def publish():
        client.send_publish(TOPIC, payload.encode(), 1, False)
        return True

    return publish


def main(name, host, port, count, octets):
    clients = {"mqttsn": rsmb, "mqtt-sn-12": mqtt_sn_12}
    latencies, undelivered = [], 0
    # The clients print what they do.
    with contextlib.redirect_stdout(io.StringIO()):
        publish = clients[name](host, int(port), "x" * int(octets))
        for _ in range(int(count)):
            start = time.perf_counter_ns()
            if publish():
                latencies.append(time.perf_counter_ns() - start)
            else:
                undelivered += 1
    print(json.dumps({"latencies_ns": latencies, "undelivered": undelivered}), flush=True)
    # Threads of the clients do not end.
    sys.stdout.flush()
    __import__("os")._exit(0)


main(*sys.argv[1:])
