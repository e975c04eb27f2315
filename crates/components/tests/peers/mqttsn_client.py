"""A client of the package mqtt-sn-12. Runs the steps of its arguments and prints a line for each and for each message.

    mqttsn_client.py PORT CLIENT_ID KEEP_ALIVE_S STEP...

    clean | keep              connect with a clean session or not
    will=TOPIC=TEXT           set the will before the connection
    publish=TOPIC=QOS=TEXT    publish; a topic of two characters is a short one
    predefined=ID=QOS=TEXT    publish on a predefined topic
    subscribe=FILTER=QOS      subscribe
    receive=COUNT             wait for so many messages
    update=TEXT               change the message of the will
    sleep=SECONDS             disconnect for so many seconds
    ping                      wake up
    search                    search for a gateway
    vanish                    end without a DISCONNECT
"""

import sys
import time

from mqttsn12.client.MqttSnClient import MqttSnClient, MqttSnListener


class Printer(MqttSnListener):
    count = 0

    def message_arrived(self, message):
        Printer.count += 1
        print("message", message.get_topic_name(), message.get_payload().decode(), flush=True)


def receive(client, count):
    deadline = time.monotonic() + 60
    while Printer.count < count and time.monotonic() < deadline:
        client.polling()


def main(port, client_id, keep_alive_s, *steps):
    client = MqttSnClient()
    client.set_client_id(client_id)
    client.set_keep_alive(int(keep_alive_s))
    client.set_timeout(2)
    client.open("127.0.0.1", int(port))
    for step in steps:
        name, *values = step.split("=")
        if name in ("clean", "keep"):
            client.set_clean_session(name == "clean")
            client.send_connect()
        elif name == "will":
            client.set_will(values[0], values[1], 1, False)
        elif name == "publish":
            # The client does not note the topics that it has registered itself.
            client.register_topic(client.send_publish(values[0], values[2].encode(), int(values[1]), False), values[0])
        elif name == "predefined":
            client.send_publish_predefined(int(values[0]), values[2].encode(), int(values[1]), False)
        elif name == "subscribe":
            client.send_subscribe(values[0], int(values[1]), Printer())
        elif name == "receive":
            receive(client, int(values[0]))
        elif name == "update":
            client.send_will_message_update(values[0])
        elif name == "sleep":
            client.send_disconnect(int(values[0]))
        elif name == "ping":
            # The client sends PINGREQ without its identifier.
            identifier = client_id.encode()
            client.datagram_socket.sendto(bytes([2 + len(identifier), 0x16]) + identifier, ("127.0.0.1", int(port)))
        elif name == "search":
            client.send_search_gateway(1)
        elif name == "wait":
            sys.stdin.readline()
        elif name == "vanish":
            return
        print("done", step, flush=True)
    client.send_disconnect()
    client.close()
    print("disconnected", flush=True)


main(*sys.argv[1:])
