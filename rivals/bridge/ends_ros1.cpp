// The ends of `viaduct bench bridge` in ROS 1, with roscpp.
//
//   bin/ros1_bridge vehicle|cloud

#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <ros/spinner.h>
#include <sensor_msgs/PointCloud2.h>
#include <std_msgs/String.h>
#include <velodyne_msgs/VelodyneScan.h>

#include "ends.hpp"

namespace {

using namespace rivals;

/// A node of ROS 1.
class Ros1 {
 public:
  static constexpr const char* VERSION = ROS_VERSION_TEXT;
  static constexpr const char* MODE = "roscpp";

  using Cloud = sensor_msgs::PointCloud2;
  using List = std_msgs::String;
  using Scan = velodyne_msgs::VelodyneScan;

  explicit Ros1(const std::string& name) {
    int none = 0;
    ros::init(none, nullptr, name, ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
    if (!ros::master::check()) throw std::runtime_error("no ROS master answers at ROS_MASTER_URI");
    keeps_ros_running_.emplace();
  }

  ~Ros1() { ros::shutdown(); }

  template <class M> class Publisher {
   public:
    Publisher(const Ros1&, const std::string& topic) : publisher_(ros::NodeHandle().advertise<M>(topic, DEPTH)) {}

    void publish(const M& message) const { publisher_.publish(message); }

   private:
    ros::Publisher publisher_;
  };

  /// A subscription with a thread of its own.
  template <class M> class Reader {
   public:
    Reader(const Ros1&, const std::string& topic, const std::function<void(const M&)>& got) : spinner_(1, &queue_) {
      node_.setCallbackQueue(&queue_);
      const boost::function<void(const boost::shared_ptr<const M>&)> take = [got](const auto& message) { got(*message); };
      subscriber_ = node_.subscribe<M>(topic, DEPTH, take, ros::VoidConstPtr(), ros::TransportHints().tcpNoDelay());
      spinner_.start();
    }

    ~Reader() {
      subscriber_.shutdown();
      spinner_.stop();
    }

   private:
    ros::CallbackQueue queue_;
    ros::NodeHandle node_;
    ros::AsyncSpinner spinner_;
    ros::Subscriber subscriber_;
  };

  template <class M> static void set_number(M& message, std::size_t number) { message.header.frame_id = std::to_string(number); }
  static void set_number(List& list, std::size_t number) { list.data.replace(0, NUMBER_OCTETS, text_of_number(number)); }
  template <class M> static std::size_t number_of(const M& message) { return std::stoul(message.header.frame_id); }
  static std::size_t number_of(const List& list) { return number_of_text(list.data.c_str()); }

  static Scan scan_of(const Order& order) {
    const auto octets = read_content(order);
    Scan scan;
    scan.packets.resize(order.octets / PACKET_OCTETS);
    for (std::size_t index = 0; index < scan.packets.size(); ++index) {
      std::memcpy(scan.packets[index].data.data(), octets.data() + index * PACKET_OCTETS, PACKET_OCTETS);
    }
    return scan;
  }

  static Cloud cloud_of(const Order& order) {
    using sensor_msgs::PointField;
    Cloud cloud;
    for (const auto& [name, is_float] : FIELDS) {
      PointField field;
      field.name = name;
      field.offset = cloud.point_step;
      field.datatype = is_float ? PointField::FLOAT32 : PointField::UINT16;
      field.count = 1;
      cloud.fields.push_back(field);
      cloud.point_step += is_float ? 4 : 2;
    }
    cloud.data = read_content(order);
    cloud.height = 1;
    cloud.width = static_cast<std::uint32_t>(order.octets / cloud.point_step);
    cloud.row_step = static_cast<std::uint32_t>(order.octets);
    cloud.is_dense = true;
    return cloud;
  }

  static List list_of(const Order& order) {
    List list;
    list.data = read_list(order);
    return list;
  }

 private:
  std::optional<ros::NodeHandle> keeps_ros_running_;
};

}  // namespace

int main(int count, char** words) { return run_end<Ros1>(count, words); }
