// A node of ROS 1 for the tests: publishes or checks point clouds with a pattern.
//
//   peer talker TOPIC POINTS COUNT LATCH   publishes COUNT clouds, ten per second, as soon as there is a subscriber
//   peer listener TOPIC COUNT              prints one line for each cloud and ends after COUNT of them
//   peer string TOPIC                      publishes std_msgs/String ten times per second
#include <iostream>
#include <string>

#include <ros/ros.h>
#include <sensor_msgs/PointCloud2.h>
#include <std_msgs/String.h>

namespace {

constexpr std::uint32_t POINT_STEP = 22;

std::uint8_t octet(std::size_t index, std::uint32_t number) { return static_cast<std::uint8_t>(index * 7 + number); }

sensor_msgs::PointCloud2 cloud(std::uint32_t number, std::uint32_t points) {
  sensor_msgs::PointCloud2 message;
  message.header.stamp = ros::Time::now();
  message.header.frame_id = "lidar";
  message.height = number;
  message.width = points;
  message.point_step = POINT_STEP;
  message.row_step = points * POINT_STEP;
  message.is_dense = true;
  for (const char* name : {"x", "y", "z"}) {
    sensor_msgs::PointField field;
    field.name = name;
    field.offset = static_cast<std::uint32_t>(message.fields.size()) * 4;
    field.datatype = sensor_msgs::PointField::FLOAT32;
    field.count = 1;
    message.fields.push_back(field);
  }
  message.data.resize(message.row_step);
  for (std::size_t index = 0; index < message.data.size(); ++index) message.data[index] = octet(index, number);
  return message;
}

bool is_intact(const sensor_msgs::PointCloud2& message) {
  if (message.header.frame_id != "lidar" || message.fields.size() != 3 || message.fields[2].name != "z") return false;
  if (message.data.size() != message.row_step) return false;
  for (std::size_t index = 0; index < message.data.size(); ++index) {
    if (message.data[index] != octet(index, message.height)) return false;
  }
  return true;
}

int talk(const std::string& topic, std::uint32_t points, std::uint32_t count, bool latch) {
  ros::NodeHandle node;
  ros::Publisher publisher = node.advertise<sensor_msgs::PointCloud2>(topic, 10, latch);
  ros::Rate rate(10);
  while (ros::ok() && !latch && publisher.getNumSubscribers() == 0) rate.sleep();
  for (std::uint32_t number = 0; ros::ok() && number < count; ++number) {
    publisher.publish(cloud(number, points));
    rate.sleep();
  }
  // The last message leaves the queue, and a latched one stays available, until the test ends this process.
  while (ros::ok()) rate.sleep();
  return 0;
}

int listen(const std::string& topic, int count) {
  ros::NodeHandle node;
  int received = 0;
  auto check = [&](const sensor_msgs::PointCloud2ConstPtr& message) {
    std::cout << message->height << ' ' << message->data.size() << ' ' << (is_intact(*message) ? "intact" : "broken")
              << std::endl;
    if (++received == count) ros::shutdown();
  };
  ros::TransportHints hints;
  boost::function<void(const sensor_msgs::PointCloud2ConstPtr&)> callback = check;
  ros::Subscriber subscriber =
      node.subscribe<sensor_msgs::PointCloud2>(topic, 10, callback, ros::VoidConstPtr(), hints.tcpNoDelay());
  std::cout << "ready" << std::endl;
  ros::spin();
  return 0;
}

int talk_text(const std::string& topic) {
  ros::NodeHandle node;
  ros::Publisher publisher = node.advertise<std_msgs::String>(topic, 10);
  ros::Rate rate(10);
  std_msgs::String message;
  message.data = "hello";
  while (ros::ok()) {
    publisher.publish(message);
    rate.sleep();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ros::init(argc, argv, "peer", ros::init_options::AnonymousName);
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "talker" && argc == 6) {
    return talk(argv[2], std::stoul(argv[3]), std::stoul(argv[4]), std::string(argv[5]) == "1");
  }
  if (mode == "listener" && argc == 4) return listen(argv[2], std::stoi(argv[3]));
  if (mode == "string") return talk_text(argv[2]);
  std::cerr << "usage: peer talker|listener|string TOPIC ..." << std::endl;
  return 2;
}
