// Runs mqtt_client for `viaduct bench bridge`: its nodelet in a real `nodelet::Loader`. The class is compiled from the user's
// checkout of mqtt_client.
//
//   bin/mqtt_client NAME   reads one line, its parameters as JSON with the keys of its YAML file, and ends with its input

#include <nodelet/loader.h>
#include <nodelet/nodelet.h>
#include <ros/ros.h>

#include "../common/protocol.hpp"

boost::shared_ptr<nodelet::Nodelet> create_plugin();

namespace {

using rivals::json;

XmlRpc::XmlRpcValue parameter(const json& value) {
  if (value.is_boolean()) return XmlRpc::XmlRpcValue(value.get<bool>());
  if (value.is_number_integer()) return XmlRpc::XmlRpcValue(value.get<int>());
  if (value.is_number()) return XmlRpc::XmlRpcValue(value.get<double>());
  if (value.is_string()) return XmlRpc::XmlRpcValue(value.get<std::string>());
  XmlRpc::XmlRpcValue all;
  if (value.is_array()) {
    all.setSize(static_cast<int>(value.size()));
    for (std::size_t index = 0; index < value.size(); ++index) all[static_cast<int>(index)] = parameter(value[index]);
  } else {
    for (const auto& [key, one] : value.items()) all[key] = parameter(one);
  }
  return all;
}

int run(rivals::Output& out, const std::string& name) {
  std::string line;
  std::getline(std::cin, line);
  int count = 0;
  ros::init(count, nullptr, name, ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
  const ros::NodeHandle keeps_ros_running;
  ros::param::set("/" + name, parameter(json::parse(line)));
  const auto make = [](const std::string&) { return create_plugin(); };
  nodelet::Loader manager{boost::function<boost::shared_ptr<nodelet::Nodelet>(const std::string&)>(make)};
  ros::AsyncSpinner spinner(1);
  spinner.start();
  if (!manager.load("/" + name, "mqtt_client/MqttClient", {}, {})) throw std::runtime_error("the nodelet does not load");
  out.line(json{{"ready", {{"version", MQTT_CLIENT_VERSION_TEXT}, {"mode", "nodelet in a process of its own"}}}}.dump());
  while (std::getline(std::cin, line)) {
  }
  // Its destructors wait for the broker; nothing of it is left outside the process.
  std::_Exit(0);
}

}  // namespace

int main(int count, char** words) {
  rivals::Output out;
  if (count != 2) {
    std::cerr << "usage: mqtt_client NAME\n";
    return 2;
  }
  try {
    return run(out, words[1]);
  } catch (const std::exception& cause) {
    std::cerr << "mqtt_client: " << cause.what() << '\n';
    return 1;
  }
}
