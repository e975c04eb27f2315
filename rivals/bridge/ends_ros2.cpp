// The ends of `viaduct bench bridge` in ROS 2: Cyclone DDS with the names of ROS for topics and types. ROS_DOMAIN_ID is the domain, and
// CYCLONEDDS_URI the configuration of the network.
//
//   bin/ros2_bridge vehicle|cloud

#include <cstdlib>

#include <dds/dds.h>

#include "ends.hpp"
#include "ros2.h"

namespace {

using namespace rivals;

/// An entity of the library, deleted with its children on destruction.
class Entity {
 public:
  Entity(dds_entity_t handle, const char* what) : handle_(handle) {
    if (handle < 0) throw std::runtime_error(std::string("cannot create ") + what + ": " + dds_strretcode(-handle));
  }

  Entity(const Entity&) = delete;
  Entity& operator=(const Entity&) = delete;

  ~Entity() { dds_delete(handle_); }

  operator dds_entity_t() const { return handle_; }

 private:
  dds_entity_t handle_;
};

/// A message with its strings and sequences.
template <class R, const dds_topic_descriptor_t* D> class Message {
 public:
  using Raw = R;
  static constexpr const dds_topic_descriptor_t* TYPE = D;

  Message() : raw_(static_cast<R*>(dds_alloc(sizeof(R)))) { *raw_ = R{}; }

  R* operator->() { return raw_.get(); }
  operator const R&() const { return *raw_; }

 private:
  struct Free {
    void operator()(R* raw) const { dds_sample_free(raw, D, DDS_FREE_ALL); }
  };

  std::unique_ptr<R, Free> raw_;
};

/// Sets the length of a sequence of elements E, which must be empty.
template <class E, class S> void allocate(S& sequence, std::size_t length) {
  sequence._buffer = static_cast<E*>(dds_alloc(length * sizeof(E)));
  sequence._length = sequence._maximum = static_cast<std::uint32_t>(length);
  sequence._release = true;
  std::memset(sequence._buffer, 0, length * sizeof(E));
}

/// The quality of service of ROS: reliable, volatile, the last messages.
class Quality {
 public:
  Quality() : qos_(dds_create_qos()) {
    dds_qset_reliability(qos_, DDS_RELIABILITY_RELIABLE, static_cast<dds_duration_t>(SECOND_NS));
    dds_qset_history(qos_, DDS_HISTORY_KEEP_LAST, DEPTH);
  }

  Quality(const Quality&) = delete;
  Quality& operator=(const Quality&) = delete;

  ~Quality() { dds_delete_qos(qos_); }

  operator const dds_qos_t*() const { return qos_; }

 private:
  dds_qos_t* qos_;
};

dds_domainid_t domain() {
  const char* domain = std::getenv("ROS_DOMAIN_ID");
  return domain == nullptr ? 0 : static_cast<dds_domainid_t>(std::stoul(domain));
}

/// A participant of ROS 2.
class Ros2 {
 public:
  static constexpr const char* VERSION = CYCLONEDDS_VERSION_TEXT;
  static constexpr const char* MODE = "Cyclone DDS";

  using Cloud = Message<sensor_msgs_msg_dds__PointCloud2_, &sensor_msgs_msg_dds__PointCloud2__desc>;
  using List = Message<std_msgs_msg_dds__String_, &std_msgs_msg_dds__String__desc>;
  using Scan = Message<velodyne_msgs_msg_dds__VelodyneScan_, &velodyne_msgs_msg_dds__VelodyneScan__desc>;

  explicit Ros2(const std::string&) : participant_(dds_create_participant(domain(), nullptr, nullptr), "the participant") {}

  template <class M> class Publisher {
   public:
    Publisher(const Ros2& ros, const std::string& name)
        : topic_(ros.topic<M>(name), "the topic"), writer_(dds_create_writer(ros.participant_, topic_, Quality(), nullptr), "the writer") {}

    void publish(const typename M::Raw& message) const {
      const auto returned = dds_write(writer_, &message);
      if (returned < 0) throw std::runtime_error(std::string("cannot write: ") + dds_strretcode(-returned));
    }

   private:
    Entity topic_, writer_;
  };

  /// A subscription with a thread of its own, as the executor of rclcpp is one.
  template <class M> class Reader {
   public:
    using Got = std::function<void(const typename M::Raw&)>;

    Reader(const Ros2& ros, const std::string& name, Got got)
        : got_(std::move(got)), topic_(ros.topic<M>(name), "the topic"),
          reader_(dds_create_reader(ros.participant_, topic_, Quality(), nullptr), "the reader"),
          stop_(dds_create_guardcondition(ros.participant_), "the guard condition"),
          waitset_(dds_create_waitset(ros.participant_), "the waitset") {
      dds_set_status_mask(reader_, DDS_DATA_AVAILABLE_STATUS);
      dds_waitset_attach(waitset_, reader_, 0);
      dds_waitset_attach(waitset_, stop_, 0);
      thread_ = std::thread([this] { run(); });
    }

    ~Reader() {
      dds_set_guardcondition(stop_, true);
      thread_.join();
    }

   private:
    void run() const {
      for (bool stop = false; !stop;) {
        dds_waitset_wait(waitset_, nullptr, 0, DDS_INFINITY);
        while (take()) {
        }
        dds_read_guardcondition(stop_, &stop);
      }
    }

    /// Takes a message. Returns `false` if there is none.
    bool take() const {
      void* sample = nullptr;
      dds_sample_info_t info;
      const auto taken = dds_take(reader_, &sample, &info, 1, 1);
      if (taken <= 0) return false;
      if (info.valid_data) got_(*static_cast<const typename M::Raw*>(sample));
      dds_return_loan(reader_, &sample, taken);
      return true;
    }

    Got got_;
    Entity topic_, reader_, stop_, waitset_;
    std::thread thread_;
  };

  template <class M> static void set_number(M& message, std::size_t number) {
    dds_string_free(message->header.frame_id);
    message->header.frame_id = dds_string_dup(std::to_string(number).c_str());
  }
  static void set_number(List& list, std::size_t number) {
    std::memcpy(list->data, text_of_number(number).c_str(), NUMBER_OCTETS);
  }
  template <class R> static std::size_t number_of(const R& message) { return std::stoul(message.header.frame_id); }
  static std::size_t number_of(const List::Raw& list) { return number_of_text(list.data); }

  static Scan scan_of(const Order& order) {
    const auto octets = read_content(order);
    Scan scan;
    allocate<velodyne_msgs_msg_dds__VelodynePacket_>(scan->packets, order.octets / PACKET_OCTETS);
    for (std::size_t index = 0; index < scan->packets._length; ++index) {
      std::memcpy(scan->packets._buffer[index].data, octets.data() + index * PACKET_OCTETS, PACKET_OCTETS);
    }
    return scan;
  }

  static Cloud cloud_of(const Order& order) {
    Cloud cloud;
    allocate<sensor_msgs_msg_dds__PointField_>(cloud->fields, std::size(FIELDS));
    for (std::size_t index = 0; index < std::size(FIELDS); ++index) {
      const auto& [name, is_float] = FIELDS[index];
      auto& field = cloud->fields._buffer[index];
      field.name = dds_string_dup(name);
      field.offset = cloud->point_step;
      field.datatype = is_float ? 7 : 4;
      field.count = 1;
      cloud->point_step += is_float ? 4 : 2;
    }
    const auto octets = read_content(order);
    allocate<std::uint8_t>(cloud->data, octets.size());
    std::copy(octets.begin(), octets.end(), cloud->data._buffer);
    cloud->height = 1;
    cloud->width = static_cast<std::uint32_t>(order.octets / cloud->point_step);
    cloud->row_step = static_cast<std::uint32_t>(order.octets);
    cloud->is_dense = true;
    return cloud;
  }

  static List list_of(const Order& order) {
    List list;
    list->data = dds_string_dup(read_list(order).c_str());
    return list;
  }

 private:
  template <class M> dds_entity_t topic(const std::string& name) const {
    return dds_create_topic(participant_, M::TYPE, ("rt" + name).c_str(), nullptr, nullptr);
  }

  Entity participant_;
};

}  // namespace

int main(int count, char** words) { return run_end<Ros2>(count, words); }
