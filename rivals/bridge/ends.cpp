// The two ends of `viaduct bench bridge` in ROS 1: the vehicle publishes point clouds and gets answers, the cloud gets the clouds and
// answers. All bridges are measured between the same ends. See README.md for the lines.
//
//   bin/ros1_bridge vehicle|cloud

#include <fstream>
#include <iterator>

#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <ros/spinner.h>
#include <sensor_msgs/PointCloud2.h>
#include <std_msgs/String.h>
#include <velodyne_msgs/VelodyneScan.h>

#include "../common/protocol.hpp"

using namespace rivals;
using Cloud = sensor_msgs::PointCloud2;
using List = std_msgs::String;
using Scan = velodyne_msgs::VelodyneScan;

namespace {

constexpr std::uint32_t DEPTH = 16;                     // messages that a queue holds
constexpr std::uint64_t PROBE_PERIOD_NS = SECOND_NS / 10;
constexpr std::uint64_t PROBE_TIMEOUT_NS = 20 * SECOND_NS;
constexpr std::size_t PROBES = 3;                       // answered probes before the first message
constexpr std::size_t PACKET_OCTETS = 1206;

/// A job of both ends.
struct Order {
  std::string type;         // `scan` or `cloud`
  std::string content;      // file with the packets or points, as many as the longest message has
  std::size_t octets = 0;   // octets of them in each message
  std::string answer;       // `list`, or `same` for the received message
  std::size_t list_octets = 0;
  bool direct = false;      // without a bridge: the cloud subscribes to the vehicle's topic
  std::uint32_t warm_up = 0;
  std::uint32_t messages = 0;
  std::uint64_t period_ns = 0;
  std::uint64_t silence_ns = 0;  // without an answer for this time after the last message, the rest is lost
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Order, type, content, octets, answer, list_octets, direct, warm_up, messages, period_ns, silence_ns)

/// Times of messages by number; 0: none. The number 0 is that of probes.
class Times {
 public:
  explicit Times(std::size_t messages) : times_(messages + 1) {}

  void set(std::size_t number, std::uint64_t time) {
    if (number == 0) ++probes_;
    if (number < times_.size() && times_[number].exchange(time) == 0 && number > 0) ++count_;
    last_ns_ = time;
  }

  std::size_t probes() const { return probes_; }
  std::size_t count() const { return count_; }
  std::uint64_t last_ns() const { return last_ns_; }

  /// Returns the times after the warm-up.
  std::vector<std::uint64_t> after(std::size_t warm_up) const {
    return {times_.begin() + 1 + static_cast<long>(warm_up), times_.end()};
  }

 private:
  std::vector<std::atomic<std::uint64_t>> times_;
  std::atomic<std::size_t> probes_{0}, count_{0};
  std::atomic<std::uint64_t> last_ns_{0};
};

// A bridge may set the sequence number and the time of a header, but not its frame.
template <class M> void set_number(M& message, std::size_t number) { message.header.frame_id = std::to_string(number); }
void set_number(List& list, std::size_t number) { list.data.replace(0, 8, std::to_string(100'000'00 + number)); }
template <class M> std::size_t number_of(const M& message) { return std::stoul(message.header.frame_id); }
std::size_t number_of(const List& list) { return std::stoul(list.data.substr(0, 8)) - 100'000'00; }

std::vector<std::uint8_t> read_content(const Order& order) {
  std::ifstream file(order.content, std::ios::binary);
  std::vector<std::uint8_t> octets{std::istreambuf_iterator<char>(file), {}};
  if (octets.size() < order.octets) throw std::runtime_error("the file `" + order.content + "` is too short");
  octets.resize(order.octets);
  return octets;
}

Scan scan_of(const Order& order) {
  const auto octets = read_content(order);
  Scan scan;
  scan.packets.resize(order.octets / PACKET_OCTETS);
  for (std::size_t index = 0; index < scan.packets.size(); ++index) {
    std::memcpy(scan.packets[index].data.data(), octets.data() + index * PACKET_OCTETS, PACKET_OCTETS);
  }
  return scan;
}

/// Returns a cloud of x, y, z, intensity, ring and time, 22 octets per point.
Cloud cloud_of(const Order& order) {
  using sensor_msgs::PointField;
  Cloud cloud;
  const auto add = [&](const char* name, std::uint8_t type, std::uint32_t octets) {
    PointField field;
    field.name = name;
    field.offset = cloud.point_step;
    field.datatype = type;
    field.count = 1;
    cloud.fields.push_back(field);
    cloud.point_step += octets;
  };
  for (const char* name : {"x", "y", "z", "intensity"}) add(name, PointField::FLOAT32, 4);
  add("ring", PointField::UINT16, 2);
  add("time", PointField::FLOAT32, 4);
  cloud.data = read_content(order);
  cloud.height = 1;
  cloud.width = static_cast<std::uint32_t>(order.octets / cloud.point_step);
  cloud.row_step = static_cast<std::uint32_t>(order.octets);
  cloud.is_dense = true;
  return cloud;
}

/// A subscription with a thread of its own.
template <class M> class Reader {
 public:
  Reader(const std::string& topic, const boost::function<void(const boost::shared_ptr<const M>&)>& got) : spinner_(1, &queue_) {
    node_.setCallbackQueue(&queue_);
    subscriber_ = node_.subscribe<M>(topic, DEPTH, got, ros::VoidConstPtr(), ros::TransportHints().tcpNoDelay());
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

/// Returns the topic of the answers at an end.
std::string answers_at(const std::string& end, const Order& order) {
  return "/" + end + "/" + (order.answer == "list" ? "list" : order.type + "_back");
}

/// Publishes and waits for the answers, of type A.
template <class M, class A> json drive(const Order& order, M message) {
  ros::NodeHandle node;
  const auto last = order.warm_up + order.messages;
  Times answered(last);
  const auto publisher = node.advertise<M>("/vehicle/" + order.type, DEPTH);
  const Reader<A> answers(answers_at("vehicle", order),
                          [&](const auto& answer) { answered.set(number_of(*answer), now_ns()); });
  // A bridge may learn the type of a topic from its first message, and connect after it.
  for (const auto end_ns = now_ns() + PROBE_TIMEOUT_NS; answered.probes() < PROBES;) {
    if (now_ns() > end_ns) throw std::runtime_error("no answer has arrived within 20 s");
    set_number(message, 0);
    publisher.publish(message);
    sleep_until_ns(now_ns() + PROBE_PERIOD_NS);
  }
  sleep_until_ns(now_ns() + 2 * PROBE_PERIOD_NS);
  Times sent(last);
  auto next_ns = now_ns() + order.period_ns;
  for (std::size_t number = 1; number <= last; ++number, next_ns += order.period_ns) {
    set_number(message, number);
    sleep_until_ns(next_ns);
    const auto now = now_ns();
    sent.set(number, now);
    publisher.publish(message);
  }
  wait_for([&] { return answered.count() == last || now_ns() > std::max(answered.last_ns(), sent.last_ns()) + order.silence_ns; },
           600 * SECOND_NS);
  return {{"sent", {{"times", sent.after(order.warm_up)}, {"answered", answered.after(order.warm_up)}}}};
}

/// A subscription of the cloud's end.
struct Answering {
  virtual ~Answering() = default;
  virtual json arrived() const = 0;
};

template <class M, class A> class AnsweringTo : public Answering {
 public:
  AnsweringTo(const Order& order, A answer)
      : order_(order), arrived_(order.warm_up + order.messages), answer_(std::move(answer)) {
    ros::NodeHandle node;
    publisher_ = node.advertise<A>(answers_at(order.direct ? "vehicle" : "cloud", order), DEPTH);
    reader_.emplace((order.direct ? "/vehicle/" : "/cloud/") + order.type, [this](const auto& message) { take(message); });
  }

  json arrived() const override { return {{"arrived", arrived_.after(order_.warm_up)}}; }

 private:
  void take(const boost::shared_ptr<const M>& message) {
    const auto number = number_of(*message);
    arrived_.set(number, now_ns());
    if constexpr (std::is_same_v<M, A>) {
      publisher_.publish(message);
    } else {
      set_number(answer_, number);
      publisher_.publish(answer_);
    }
  }

  Order order_;
  Times arrived_;
  A answer_;
  ros::Publisher publisher_;
  std::optional<Reader<M>> reader_;  // last, so that its thread ends first
};

List list_of(const Order& order) {
  List list;
  list.data.assign(std::max<std::size_t>(order.list_octets, 8), ' ');
  return list;
}

json run_vehicle(const Order& order) {
  const bool list = order.answer == "list";
  if (order.type == "scan") {
    return list ? drive<Scan, List>(order, scan_of(order)) : drive<Scan, Scan>(order, scan_of(order));
  }
  return list ? drive<Cloud, List>(order, cloud_of(order)) : drive<Cloud, Cloud>(order, cloud_of(order));
}

std::unique_ptr<Answering> open_cloud(const Order& order) {
  const bool list = order.answer == "list";
  if (order.type == "scan") {
    if (list) return std::make_unique<AnsweringTo<Scan, List>>(order, list_of(order));
    return std::make_unique<AnsweringTo<Scan, Scan>>(order, Scan());
  }
  if (list) return std::make_unique<AnsweringTo<Cloud, List>>(order, list_of(order));
  return std::make_unique<AnsweringTo<Cloud, Cloud>>(order, Cloud());
}

Order order_of(const std::string& line) {
  const auto order = json::parse(line).get<Order>();
  const bool known = (order.type == "scan" || order.type == "cloud") && (order.answer == "list" || order.answer == "same");
  if (!known) throw std::invalid_argument("unknown `type` or `answer`");
  return order;
}

/// Answers each line of the input until it ends. The vehicle drives the messages of a job; the cloud answers them until the next line
/// asks what has arrived.
void serve_end(Output& out, bool is_vehicle) {
  std::unique_ptr<Answering> answering;
  for (std::string line; std::getline(std::cin, line);) {
    json answer;
    try {
      if (is_vehicle) {
        answer = run_vehicle(order_of(line));
      } else if (answering) {
        answer = answering->arrived();
        answering.reset();
      } else {
        answering = open_cloud(order_of(line));
        answer = "ready";
      }
    } catch (const std::exception& cause) {
      answer = {{"error", cause.what()}};
    }
    out.line(answer.dump());
  }
}

}  // namespace

int main(int count, char** words) {
  Output out;
  const std::string end = count == 2 ? words[1] : "";
  if (end != "vehicle" && end != "cloud") {
    std::cerr << "usage: ros1_bridge vehicle|cloud\n";
    return 2;
  }
  try {
    int none = 0;
    ros::init(none, nullptr, "bench_" + end, ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
    if (!ros::master::check()) throw std::runtime_error("no ROS master answers at ROS_MASTER_URI");
    const ros::NodeHandle keeps_ros_running;
    out.line(json{{"ready", {{"version", ROS_VERSION_TEXT}, {"mode", "roscpp"}}}}.dump());
    serve_end(out, end == "vehicle");
    ros::shutdown();
    return 0;
  } catch (const std::exception& cause) {
    std::cerr << "ros1_bridge: " << cause.what() << '\n';
    return 1;
  }
}
