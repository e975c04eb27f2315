#!/usr/bin/env python3
"""A vehicle application: publishes the vehicle's state by MQTT and prints messages of other stations.

Start the on-board unit first:   viaduct run configs/its-vehicle.yaml
Then:                            pip install paho-mqtt && python3 examples/python/drive.py
"""

import argparse
import json
import math
import time

import paho.mqtt.client as mqtt

CENTRE_LATITUDE_DEG, CENTRE_LONGITUDE_DEG = 45.0103, 7.5627
RADIUS_M, SPEED_MPS = 80.0, 10.0
METRES_PER_DEGREE = 111_320.0


def vehicle_state(elapsed_s):
    """Returns the state of a vehicle that drives counter-clockwise on a circle."""
    angle = elapsed_s * SPEED_MPS / RADIUS_M
    east_m, north_m = RADIUS_M * math.cos(angle), RADIUS_M * math.sin(angle)
    return {
        "position": {
            "latitude_deg": CENTRE_LATITUDE_DEG + north_m / METRES_PER_DEGREE,
            "longitude_deg": CENTRE_LONGITUDE_DEG
            + east_m / METRES_PER_DEGREE / math.cos(math.radians(CENTRE_LATITUDE_DEG)),
        },
        "speed_mps": SPEED_MPS,
        # Clockwise from north.
        "heading_deg": math.degrees(-angle) % 360.0,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=1886)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after this time (default: never)")
    arguments = parser.parse_args()
    sent = 0
    # Times of the last printed line of each topic: at most one line per second, for a channel with many stations.
    printed = {}

    def on_message(_client, _userdata, message):
        nonlocal sent
        if message.topic.startswith("obu/its/tx/"):
            sent += 1
            return
        now = time.monotonic()
        if now - printed.get(message.topic, -math.inf) >= 1.0:
            printed[message.topic] = now
            print(message.topic, message.payload.decode()[:120])

    # Version 1 of paho-mqtt, which Debian 12 contains, has no CallbackAPIVersion.
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2) if hasattr(mqtt, "CallbackAPIVersion") else mqtt.Client()
    client.on_message = on_message
    client.connect(arguments.host, arguments.port)
    client.subscribe([("obu/its/rx/#", 0), ("obu/its/tx/cam", 0), ("obu/errors", 0)])
    client.loop_start()
    start = time.monotonic()
    while (elapsed_s := time.monotonic() - start) < arguments.seconds:
        client.publish("vehicle/state", json.dumps(vehicle_state(elapsed_s)))
        time.sleep(0.1)
    client.loop_stop()
    print(f"the station sent {sent} CAMs in {elapsed_s:.0f} s")
    return 0 if sent else 1


if __name__ == "__main__":
    raise SystemExit(main())
