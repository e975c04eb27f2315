"""A client of the package mqttsn, which is derived from that of RSMB. Runs the steps of its arguments and prints a line for each and for
each message.

    mqttsn_rsmb.py PORT CLIENT_ID STEP...

    connect                          connect, always with a clean session
    register=TOPIC                   register a topic
    publish=TOPIC=QOS=TEXT[=retain]  publish; a topic of two characters is a short one, others must be registered or subscribed
    predefined=ID=QOS=TEXT           publish on a predefined topic
    minus-one=TOPIC=TEXT             publish on a short topic with QoS -1, from a socket of its own
    subscribe=TOPIC=QOS              subscribe; a topic of two characters is a short one, a number is a predefined one
    unsubscribe=TOPIC                unsubscribe
    ping                             PINGREQ
    sleep=SECONDS                    disconnect for so many seconds
    wake                             PINGREQ with the client id
    receive=COUNT                    wait for so many messages
    wait                             wait for a line on the standard input
"""

import sys
import time

from mqttsn.client import Callback, Client, publish
from mqttsn.lib.disconnects import Disconnects
from mqttsn.lib.names import DISCONNECT, PINGREQ, PINGRESP, TOPIC_PREDEFINED, TOPIC_SHORTNAME, UNSUBACK
from mqttsn.lib.publishes import Publishes
from mqttsn.lib.unsubscribes import Unsubscribes

# Number of attempts of a request; the client itself waits for 5 s and repeats nothing.
ATTEMPTS = 12
# Message id of the requests that the script sends itself; the client counts up from 2.
MESSAGE_ID = 60_000


class Printer(Callback):
    count = 0

    def message_arrived(self, topic_name, payload, qos, retained, msgid):
        # The client has no name for topics with an id.
        name = topic_name.decode() if isinstance(topic_name, bytes) else topic_name
        Printer.count += 1
        print("message", name or "-", qos, payload.decode(), *(["retained"] if retained else []), flush=True)
        return True


def until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


def repeated(request):
    for _ in range(ATTEMPTS):
        answer = request()
        if answer is not None:
            return answer
    raise TimeoutError("no answer")


class Robot:
    def __init__(self, port, client_id):
        self.port = port
        # The client needs octets as its id.
        self.client = Client(client_id.encode(), host="127.0.0.1", port=port)
        self.client.register_callback(Printer())
        self.ids = {}

    def receiver(self):
        return self.client._Client__receiver

    def exchange(self, octets, answer, message_id=None):
        """Sends a message for which the client has no usable function. Returns the answer, or None after 5 s."""
        self.receiver().lookfor(answer)
        self.client.sock.send(octets)
        return self.client.waitfor(answer, message_id)

    def connect(self):
        # The client ignores its argument `clean_session`.
        self.client.connect()

    def register(self, topic):
        def request():
            try:
                # The client needs octets as the name.
                return self.client.register(topic.encode())
            except AttributeError:  # after 5 s without an answer
                return None

        self.ids[topic] = repeated(request)
        print("registered", topic, flush=True)

    def publish(self, topic, qos, text, *retain):
        name_or_id = topic if len(topic) == 2 else self.ids[topic]
        self.client.publish(name_or_id, text, int(qos), bool(retain))
        until(lambda: not self.receiver().out_msgs)

    def predefined(self, topic, qos, text):
        packet = Publishes()
        packet.flags.qos = int(qos)
        packet.flags.topic_id_type = TOPIC_PREDEFINED
        packet.topic_id = int(topic)
        packet.data = text
        if packet.flags.qos > 0:
            packet.msg_id = MESSAGE_ID
            self.receiver().out_msgs[packet.msg_id] = packet
        self.client.sock.send(packet.pack())
        until(lambda: not self.receiver().out_msgs)

    def subscribe(self, topic, qos):
        wanted = int(topic) if topic.isdigit() else topic
        code, topic_id = repeated(lambda: self.client.subscribe(wanted, int(qos)))
        self.ids[topic] = topic_id
        print("subscribed", topic, code, flush=True)

    def unsubscribe(self, topic):
        # `Client.unsubscribe` sends no topic.
        packet = Unsubscribes()
        packet.msg_id = MESSAGE_ID
        if len(topic) == 2:
            packet.flags.topic_id_type = TOPIC_SHORTNAME
            packet.topic_id = topic
        else:
            packet.topic_name = topic
        repeated(lambda: self.exchange(packet.pack(), UNSUBACK, MESSAGE_ID))

    def sleep(self, seconds):
        packet = Disconnects()
        packet.duration = int(seconds)
        repeated(lambda: self.exchange(packet.pack(), DISCONNECT))

    def ping(self, client_id=b""):
        # The client packs neither a message of two octets nor a PINGREQ with its id.
        repeated(lambda: self.exchange(bytes([2 + len(client_id), PINGREQ]) + client_id, PINGRESP))

    def wake(self):
        self.ping(self.client.client_id)

    def disconnect(self):
        # `Client.disconnect` fails: the client packs no message of two octets.
        repeated(lambda: self.exchange(bytes([2, DISCONNECT]), DISCONNECT))

    def run(self, name, values):
        if name == "minus-one":
            publish(*values, port=self.port, host="127.0.0.1")
        elif name == "receive":
            until(lambda: Printer.count >= int(values[0]))
        elif name == "wait":
            sys.stdin.readline()
        else:
            getattr(self, name)(*values)


def main(port, client_id, *steps):
    robot = Robot(int(port), client_id)
    for step in steps:
        name, *values = step.split("=")
        robot.run(name, values)
        print("done", step, flush=True)
    robot.disconnect()
    print("disconnected", flush=True)


main(*sys.argv[1:])
