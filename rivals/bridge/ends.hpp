// The two ends of `viaduct bench bridge`, for each version of ROS: the vehicle publishes scans or point clouds and gets answers, the cloud
// gets them and answers. All bridges are measured between the same ends. See README.md for the lines.
//
// A version of ROS is a class with the types of messages `Scan`, `Cloud` and `List`, which `scan_of`, `cloud_of` and `list_of` create; with
// `Publisher<M>` and `Reader<M>`; and with the number of a message, `set_number` and `number_of`.
#pragma once

#include <fstream>
#include <iterator>

#include "../common/protocol.hpp"

namespace rivals {

inline constexpr std::int32_t DEPTH = 16;               // messages that a queue holds
inline constexpr std::uint64_t PROBE_PERIOD_NS = SECOND_NS / 10;
inline constexpr std::uint64_t PROBE_TIMEOUT_NS = 20 * SECOND_NS;
inline constexpr std::size_t PROBES = 3;                // answered probes before the first message
inline constexpr std::size_t PACKET_OCTETS = 1206;
inline constexpr std::size_t NUMBER_OCTETS = 8;         // of a list's number, at its start

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

// A bridge may set the sequence number and the time of a header, but not its frame. A list has no header.
inline std::string text_of_number(std::size_t number) { return std::to_string(100'000'00 + number); }
inline std::size_t number_of_text(const char* text) { return std::stoul(std::string(text, NUMBER_OCTETS)) - 100'000'00; }

inline std::vector<std::uint8_t> read_content(const Order& order) {
  std::ifstream file(order.content, std::ios::binary);
  std::vector<std::uint8_t> octets{std::istreambuf_iterator<char>(file), {}};
  if (octets.size() < order.octets) throw std::runtime_error("the file `" + order.content + "` is too short");
  octets.resize(order.octets);
  return octets;
}

/// Returns the octets of a list.
inline std::string read_list(const Order& order) { return std::string(std::max(order.list_octets, NUMBER_OCTETS), ' '); }

/// A field of a point.
struct Field {
  const char* name;
  bool is_float;  // FLOAT32, otherwise UINT16
};

/// Fields of a point: 22 octets.
inline constexpr Field FIELDS[] = {{"x", true}, {"y", true}, {"z", true}, {"intensity", true}, {"ring", false}, {"time", true}};

/// Returns the topic of the answers at an end.
inline std::string answers_at(const std::string& end, const Order& order) {
  return "/" + end + "/" + (order.answer == "list" ? "list" : order.type + "_back");
}

/// Publishes and waits for the answers, of type A.
template <class A, class Ros, class M> json drive(const Ros& ros, const Order& order, M message) {
  const auto last = order.warm_up + order.messages;
  Times answered(last);
  const typename Ros::template Publisher<M> publisher(ros, "/vehicle/" + order.type);
  const typename Ros::template Reader<A> answers(
      ros, answers_at("vehicle", order), [&](const auto& answer) { answered.set(Ros::number_of(answer), now_ns()); });
  // A bridge may learn the type of a topic from its first message, and connect after it.
  for (const auto end_ns = now_ns() + PROBE_TIMEOUT_NS; answered.probes() < PROBES;) {
    if (now_ns() > end_ns) throw std::runtime_error("no answer has arrived within 20 s");
    Ros::set_number(message, 0);
    publisher.publish(message);
    sleep_until_ns(now_ns() + PROBE_PERIOD_NS);
  }
  sleep_until_ns(now_ns() + 2 * PROBE_PERIOD_NS);
  Times sent(last);
  auto next_ns = now_ns() + order.period_ns;
  for (std::size_t number = 1; number <= last; ++number, next_ns += order.period_ns) {
    Ros::set_number(message, number);
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

/// Answers messages of type M with a list.
template <class Ros, class M> class WithList : public Answering {
 public:
  WithList(const Ros& ros, const Order& order)
      : order_(order), arrived_(order.warm_up + order.messages), list_(Ros::list_of(order)),
        publisher_(ros, answers_at(order.direct ? "vehicle" : "cloud", order)),
        reader_(ros, (order.direct ? "/vehicle/" : "/cloud/") + order.type, [this](const auto& message) {
          const auto number = Ros::number_of(message);
          arrived_.set(number, now_ns());
          Ros::set_number(list_, number);
          publisher_.publish(list_);
        }) {}

  json arrived() const override { return {{"arrived", arrived_.after(order_.warm_up)}}; }

 private:
  Order order_;
  Times arrived_;
  typename Ros::List list_;
  typename Ros::template Publisher<typename Ros::List> publisher_;
  typename Ros::template Reader<M> reader_;  // last, so that its thread ends first
};

/// Answers messages of type M with themselves.
template <class Ros, class M> class WithSame : public Answering {
 public:
  WithSame(const Ros& ros, const Order& order)
      : order_(order), arrived_(order.warm_up + order.messages),
        publisher_(ros, answers_at(order.direct ? "vehicle" : "cloud", order)),
        reader_(ros, (order.direct ? "/vehicle/" : "/cloud/") + order.type, [this](const auto& message) {
          arrived_.set(Ros::number_of(message), now_ns());
          publisher_.publish(message);
        }) {}

  json arrived() const override { return {{"arrived", arrived_.after(order_.warm_up)}}; }

 private:
  Order order_;
  Times arrived_;
  typename Ros::template Publisher<M> publisher_;
  typename Ros::template Reader<M> reader_;  // last, so that its thread ends first
};

template <class Ros> json run_vehicle(const Ros& ros, const Order& order) {
  using Scan = typename Ros::Scan;
  using Cloud = typename Ros::Cloud;
  using List = typename Ros::List;
  const bool list = order.answer == "list";
  if (order.type == "scan") {
    return list ? drive<List>(ros, order, Ros::scan_of(order)) : drive<Scan>(ros, order, Ros::scan_of(order));
  }
  return list ? drive<List>(ros, order, Ros::cloud_of(order)) : drive<Cloud>(ros, order, Ros::cloud_of(order));
}

template <class Ros, class M> std::unique_ptr<Answering> open_cloud_for(const Ros& ros, const Order& order) {
  if (order.answer == "list") return std::make_unique<WithList<Ros, M>>(ros, order);
  return std::make_unique<WithSame<Ros, M>>(ros, order);
}

template <class Ros> std::unique_ptr<Answering> open_cloud(const Ros& ros, const Order& order) {
  if (order.type == "scan") return open_cloud_for<Ros, typename Ros::Scan>(ros, order);
  return open_cloud_for<Ros, typename Ros::Cloud>(ros, order);
}

inline Order order_of(const std::string& line) {
  const auto order = json::parse(line).get<Order>();
  const bool known = (order.type == "scan" || order.type == "cloud") && (order.answer == "list" || order.answer == "same");
  if (!known) throw std::invalid_argument("unknown `type` or `answer`");
  return order;
}

/// Answers each line of the input until it ends. The vehicle drives the messages of a job; the cloud answers them until the next line
/// asks what has arrived.
template <class Ros> void serve_end(const Ros& ros, Output& out, bool is_vehicle) {
  std::unique_ptr<Answering> answering;
  for (std::string line; std::getline(std::cin, line);) {
    json answer;
    try {
      if (is_vehicle) {
        answer = run_vehicle(ros, order_of(line));
      } else if (answering) {
        answer = answering->arrived();
        answering.reset();
      } else {
        answering = open_cloud(ros, order_of(line));
        answer = "ready";
      }
    } catch (const std::exception& cause) {
      answer = {{"error", cause.what()}};
    }
    out.line(answer.dump());
  }
}

/// Runs an end: the main function of each version of ROS.
template <class Ros> int run_end(int count, char** words) {
  Output out;
  const std::string end = count == 2 ? words[1] : "";
  if (end != "vehicle" && end != "cloud") {
    std::cerr << "usage: " << words[0] << " vehicle|cloud\n";
    return 2;
  }
  try {
    const Ros ros("bench_" + end);
    out.line(json{{"ready", {{"version", Ros::VERSION}, {"mode", Ros::MODE}}}}.dump());
    serve_end(ros, out, end == "vehicle");
    return 0;
  } catch (const std::exception& cause) {
    std::cerr << words[0] << ": " << cause.what() << '\n';
    return 1;
  }
}

}  // namespace rivals
