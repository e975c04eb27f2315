// ROS 1 as rivals: `ros1.inter`, roscpp between two processes over TCPROS, and `ros1.nodelet`, two nodelets in one
// manager that exchange a shared pointer. The program starts and stops its own `rosmaster`.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <nodelet/loader.h>
#include <nodelet/nodelet.h>
#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <ros/spinner.h>
#include <sensor_msgs/Image.h>

#include "../common/protocol.hpp"

using namespace rivals;
using sensor_msgs::Image;
using sensor_msgs::ImageConstPtr;
using sensor_msgs::ImagePtr;

namespace {

constexpr std::uint32_t DEPTH = 16;  // messages that a queue holds

std::string topic_of(const char* way, std::size_t number) { return "/" + std::string(way) + std::to_string(number); }

/// Returns an unused port of the loopback device. Another program may take it before it is used.
int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  check(bind(listener, reinterpret_cast<sockaddr*>(&address), length), "cannot find a free port");
  check(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), "cannot find a free port");
  close(listener);
  return ntohs(address.sin_port);
}

/// The folder of the ROS logs, removed on destruction.
class Folder {
 public:
  Folder() : path_("/tmp/viaduct_rivals_" + std::to_string(getpid()) + "_ros1") {
    std::filesystem::create_directory(path_);
    setenv("ROS_HOME", path_.c_str(), 1);
    setenv("ROS_LOG_DIR", path_.c_str(), 1);
  }

  ~Folder() {
    std::error_code gone;
    std::filesystem::remove_all(path_, gone);
  }

 private:
  std::string path_;
};

/// The ROS master of this run.
class Master {
 public:
  Master() : port_(free_port()), process_({"rosmaster", "--core", "-p", std::to_string(port_)}) {
    process_.end_timeout_ns = 0;
    setenv("ROS_MASTER_URI", ("http://127.0.0.1:" + std::to_string(port_)).c_str(), 1);
  }

  /// Waits until the master answers. Must be called after `ros::init`.
  void wait() {
    if (!wait_for([&] { return ros::master::check() || !process_.is_running(); }, 20 * SECOND_NS) || !ros::master::check()) {
      throw std::runtime_error("rosmaster does not answer: is python3-rosmaster installed?");
    }
  }

 private:
  int port_;
  Child process_;
};

/// Initialises ROS in this process.
void start_ros(const std::string& name) {
  setenv("ROS_HOSTNAME", "127.0.0.1", 1);
  int count = 0;
  ros::init(count, nullptr, name, ros::init_options::NoSigintHandler | ros::init_options::NoRosout);
}

/// The reader of a topic, with a dedicated thread.
class Reader {
 public:
  Reader(const std::string& topic, const std::function<void(const ImageConstPtr&)>& got) : spinner_(1, &queue_) {
    node_.setCallbackQueue(&queue_);
    subscriber_ = node_.subscribe<Image>(topic, DEPTH, got, ros::VoidConstPtr(), ros::TransportHints().tcpNoDelay());
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

void wait_for_subscriber(const ros::Publisher& publisher) {
  if (!wait_for([&] { return publisher.getNumSubscribers() > 0; }, 10 * SECOND_NS)) {
    throw std::runtime_error("the subscriber did not connect");
  }
}

ImagePtr image_of(std::size_t size) {
  const auto image = boost::make_shared<Image>();
  image->height = 1;
  image->width = image->step = static_cast<std::uint32_t>(size);
  image->encoding = "mono8";
  image->data.assign(size, 0xA5);
  return image;
}

// ros1.inter

/// Runs a job in the publisher's process. The message is reused because `publish` serialises before it returns.
Samples run_inter(Child& child, const Job& job, std::size_t number) {
  ros::NodeHandle node;
  const auto publisher = node.advertise<Image>(topic_of("there", number), DEPTH);
  Numbers round_trips_ns(job.samples);
  std::optional<Reader> answers;
  if (job.measure == Measure::rtt) {
    answers.emplace(topic_of("back", number),
                    [&](const ImageConstPtr& image) { take(image->data.data(), image->data.size(), round_trips_ns); });
  }
  const auto image = image_of(job.size);
  auto samples = with_child(child, job, number, [&] {
    wait_for_subscriber(publisher);
    place_others(job, Role::transport);
    auto published = publish(job, [&] { return image->data.data(); }, [&] { publisher.publish(*image); });
    if (answers) wait_for([&] { return round_trips_ns.size() == job.samples; }, SECOND_NS);
    return published;
  });
  if (job.measure == Measure::rtt) samples.latencies_ns = round_trips_ns.all();
  return samples;
}

/// State of a job in the subscriber's process.
struct Subscription {
  ros::Publisher back;
  std::unique_ptr<Reader> reader;
};

std::shared_ptr<void> subscribe_inter(const Job& job, std::size_t number, Taken& taken) {
  const auto kept = std::make_shared<Subscription>();
  ros::NodeHandle node;
  const bool answers = job.measure == Measure::rtt;
  if (answers) kept->back = node.advertise<Image>(topic_of("back", number), DEPTH);
  kept->reader = std::make_unique<Reader>(topic_of("there", number), [&taken, answers, back = kept->back](const auto& image) {
    taken(image->data.data(), image->data.size());
    if (answers) back.publish(image);
  });
  if (answers) wait_for_subscriber(kept->back);
  place_others(job, Role::subscriber);
  return kept;
}

// ros1.nodelet

/// State that a job's nodelets share with the program.
struct Bench {
  Bench(const Job& of, std::size_t with) : job(of), number(with), latencies_ns(of.samples) {}

  const Job& job;
  std::size_t number;
  Numbers latencies_ns;
  const ros::Publisher* publisher = nullptr;  // the writer's
};

/// Nodelet that publishes on the program's thread, as a driver of a sensor does.
class Writer : public nodelet::Nodelet {
 public:
  explicit Writer(Bench& bench) : bench_(bench) {}

 private:
  void onInit() override {
    auto& node = getNodeHandle();
    publisher_ = node.advertise<Image>(topic_of("there", bench_.number), DEPTH);
    bench_.publisher = &publisher_;
    if (bench_.job.measure == Measure::rtt) {
      answers_ = node.subscribe<Image>(topic_of("back", bench_.number), DEPTH, [this](const ImageConstPtr& image) {
        take(image->data.data(), image->data.size(), bench_.latencies_ns);
      });
    }
  }

  Bench& bench_;
  ros::Publisher publisher_;
  ros::Subscriber answers_;
};

/// Nodelet that takes the messages, or sends them back.
class Taker : public nodelet::Nodelet {
 public:
  explicit Taker(Bench& bench) : bench_(bench) {}

 private:
  void onInit() override {
    auto& node = getNodeHandle();
    const bool answers = bench_.job.measure == Measure::rtt;
    if (answers) back_ = node.advertise<Image>(topic_of("back", bench_.number), DEPTH);
    taking_ = node.subscribe<Image>(topic_of("there", bench_.number), DEPTH, [this, answers](const ImageConstPtr& image) {
      if (answers) {
        back_.publish(image);
      } else {
        take(image->data.data(), image->data.size(), bench_.latencies_ns);
      }
    });
  }

  Bench& bench_;
  ros::Publisher back_;
  ros::Subscriber taking_;
};

Samples run_nodelets(const Job& job, std::size_t number) {
  Bench bench(job, number);
  const auto make = [&](const std::string& type) -> boost::shared_ptr<nodelet::Nodelet> {
    if (type == "rivals/Writer") return boost::make_shared<Writer>(bench);
    return boost::make_shared<Taker>(bench);
  };
  nodelet::Loader manager{boost::function<boost::shared_ptr<nodelet::Nodelet>(const std::string&)>(make)};
  for (const std::string type : {"rivals/Taker", "rivals/Writer"}) {
    if (!manager.load("/" + type + std::to_string(number), type, {}, {})) throw std::runtime_error("cannot load " + type);
  }
  wait_for_subscriber(*bench.publisher);
  const Pool<ImagePtr> pool(DEPTH + 4, [&] { return image_of(job.size); });
  auto samples = on_a_thread([&] {
    place_others(job, Role::subscriber);
    const ImagePtr* lent = nullptr;
    const auto obtain = [&] { return (*(lent = &pool.lend()))->data.data(); };
    return publish(job, obtain, [&] { bench.publisher->publish(*lent); });
  });
  wait_for([&] { return bench.latencies_ns.size() == job.samples; }, SECOND_NS);
  manager.clear();
  samples.latencies_ns = bench.latencies_ns.all();
  return samples;
}

// The program

json hello(const std::string& rival, const char* mode) {
  return {{"rival", rival}, {"version", ROS_VERSION_TEXT}, {"mode", mode}, {"placements", {"same", "cross", "free"}}};
}

int run_subscriber(Output& out) {
  start_ros("rival_subscriber");
  const ros::NodeHandle keeps_ros_running;
  serve_parent(out, subscribe_inter);
  ros::shutdown();
  return 0;
}

int run(Output& out, const std::string& name, const char* program) {
  const Folder folder;
  Master master;
  start_ros("rival_publisher");
  master.wait();
  std::size_t jobs = 0;
  {
    const ros::NodeHandle keeps_ros_running;
    if (name == "inter") {
      out.line(hello("ros1.inter", "roscpp, two processes, TCPROS with tcpNoDelay, sensor_msgs/Image, message object reused; "
                     "a loan is that object, serialised after the stamp").dump());
      Child child({program, "inter", "--subscriber"});
      serve(out, [&](const Job& job) { return run_inter(child, job, ++jobs); });
    } else {
      out.line(hello("ros1.nodelet", "two nodelets in one manager, sensor_msgs/Image by shared pointer, messages reused").dump());
      ros::AsyncSpinner spinner(1);
      spinner.start();
      serve(out, [&](const Job& job) { return run_nodelets(job, ++jobs); });
    }
  }
  ros::shutdown();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  Output out;
  const std::string name = count > 1 ? words[1] : "";
  if (name != "inter" && name != "nodelet") {
    std::cerr << "usage: ros1 inter|nodelet\n";
    return 2;
  }
  try {
    return count > 2 ? run_subscriber(out) : run(out, name, "/proc/self/exe");
  } catch (const std::exception& cause) {
    std::cerr << "ros1: " << cause.what() << '\n';
    return 1;
  }
}
