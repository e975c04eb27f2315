"""A node of ROS 1 in Python for the tests: publishes or checks texts and point clouds with a pattern.

    peer.py talker TOPIC POINTS   publishes clouds, ten per second
    peer.py listener TOPIC COUNT  prints one line for each cloud and ends after COUNT of them
    peer.py say TOPIC TEXT        publishes std_msgs/String ten times per second
    peer.py hear TOPIC COUNT      prints each std_msgs/String and ends after COUNT of them
"""

import os
import sys

import rospy
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import String

POINT_STEP = 22


def pattern(number, length):
    period = bytes((index * 7 + number) % 256 for index in range(256))
    return (period * (length // 256 + 1))[:length]


def cloud(number, points):
    message = PointCloud2(height=number, width=points, point_step=POINT_STEP, row_step=points * POINT_STEP, is_dense=True)
    message.header.stamp = rospy.Time.now()
    message.header.frame_id = "lidar"
    names = ["x", "y", "z"]
    message.fields = [PointField(name, 4 * index, PointField.FLOAT32, 1) for index, name in enumerate(names)]
    message.data = pattern(number, message.row_step)
    return message


def is_intact(message):
    names = [field.name for field in message.fields]
    is_whole = len(message.data) == message.row_step and message.header.frame_id == "lidar"
    return is_whole and names == ["x", "y", "z"] and message.data == pattern(message.height, message.row_step)


def publish(topic, message_type, message):
    publisher = rospy.Publisher(topic, message_type, queue_size=10)
    rate = rospy.Rate(10)
    number = 0
    while not rospy.is_shutdown():
        publisher.publish(message(number))
        number += 1
        rate.sleep()


def subscribe(topic, message_type, count, line):
    received = 0

    def callback(message):
        nonlocal received
        received += 1
        print(line(message), flush=True)
        if received == count:
            os._exit(0)

    rospy.Subscriber(topic, message_type, callback, queue_size=10, tcp_nodelay=True)
    print("ready", flush=True)
    rospy.spin()


def main():
    mode, topic, argument = sys.argv[1:4]
    rospy.init_node("peer", anonymous=True, disable_signals=True)
    if mode == "talker":
        publish(topic, PointCloud2, lambda number: cloud(number, int(argument)))
    elif mode == "say":
        publish(topic, String, lambda number: String(argument))
    elif mode == "hear":
        subscribe(topic, String, int(argument), lambda message: message.data)
    else:
        verdict = lambda message: "intact" if is_intact(message) else "broken"
        line = lambda message: f"{message.height} {len(message.data)} {verdict(message)}"
        subscribe(topic, PointCloud2, int(argument), line)


main()
