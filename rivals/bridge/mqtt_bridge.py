"""Runs mqtt_bridge for `viaduct bench bridge`. Its package is installed next to this file from the user's checkout.

    bin/mqtt_bridge/run.py NAME   reads one line, its parameters as JSON with the keys of its YAML file, and ends with its input
"""

import json
import os
import sys
import threading


def end_with_input():
    for _ in sys.stdin:
        pass
    os._exit(0)


def main():
    name = sys.argv[1]
    folder = os.path.dirname(os.path.abspath(__file__))
    parameters = json.loads(sys.stdin.readline())
    # Log lines of rospy go to standard output, which is for the bench.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, folder)
    # rosbridge_library looks for the manifest of a message's package.
    os.environ["ROS_PACKAGE_PATH"] = folder
    sys.argv = [sys.argv[0], "__name:=" + name]

    import paho.mqtt
    import rospy

    from mqtt_bridge import app

    rospy.set_param("/" + name, parameters)
    with open(os.path.join(folder, "version")) as file:
        version = file.read().strip()
    connected = app._on_connect

    def on_connect(client, userdata, flags, response_code):
        connected(client, userdata, flags, response_code)
        if response_code == 0:
            mode = f"rospy, paho-mqtt {paho.mqtt.__version__}, msgpack"
            out.write(json.dumps({"ready": {"version": version, "mode": mode}}) + "\n")
            out.flush()

    app._on_connect = on_connect
    threading.Thread(target=end_with_input, daemon=True).start()
    app.mqtt_bridge_node()


main()
