// Cyclone DDS as a rival: a reliable topic of octets between two processes over UDP on the loopback device. Samples
// arrive in a listener on the transport's thread.

#include <dds/dds.h>
#include <malloc.h>

#include "../common/protocol.hpp"
#include "blob.h"

using namespace rivals;

namespace {

using Blob = rivals_Blob;

constexpr std::int32_t DEPTH = 16;  // messages that a history keeps

// Loopback device only, the largest UDP datagrams, and the largest socket buffers that the kernel grants.
constexpr const char* CONFIG =
    "<CycloneDDS><Domain><General>"
    "<Interfaces><NetworkInterface name=\"lo\"/></Interfaces><AllowMulticast>false</AllowMulticast>"
    "<MaxMessageSize>65500B</MaxMessageSize></General>"
    "<Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer address=\"127.0.0.1\"/></Peers></Discovery>"
    "<Internal><SocketReceiveBufferSize max=\"10MB\"/></Internal>"
    "</Domain></CycloneDDS>";

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

/// A reliable topic with a history of the last DEPTH messages.
class Topic {
 public:
  Topic(dds_entity_t participant, const char* way, std::size_t number)
      : qos_(dds_create_qos()),
        topic_(create(participant, std::string(way) + std::to_string(number), qos_), "the topic") {}

  ~Topic() { dds_delete_qos(qos_); }

  operator dds_entity_t() const { return topic_; }
  const dds_qos_t* qos() const { return qos_; }

 private:
  static dds_entity_t create(dds_entity_t participant, const std::string& name, dds_qos_t* qos) {
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, static_cast<dds_duration_t>(SECOND_NS));
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, DEPTH);
    return dds_create_topic(participant, &rivals_Blob_desc, name.c_str(), qos, nullptr);
  }

  dds_qos_t* qos_;
  Entity topic_;
};

/// The writer of a topic.
class Writer {
 public:
  Writer(dds_entity_t participant, const char* way, std::size_t number)
      : topic_(participant, way, number), writer_(dds_create_writer(participant, topic_, topic_.qos(), nullptr), "the writer") {}

  void wait_for_reader() const {
    const auto matched = [&] {
      dds_publication_matched_status_t status;
      return dds_get_publication_matched_status(writer_, &status) == 0 && status.current_count > 0;
    };
    if (!wait_for(matched, 10 * SECOND_NS)) throw std::runtime_error("the subscriber did not connect");
  }

  void write(const Blob& blob) const {
    const auto returned = dds_write(writer_, &blob);
    if (returned < 0) throw std::runtime_error(std::string("cannot write: ") + dds_strretcode(-returned));
  }

 private:
  Topic topic_;
  Entity writer_;
};

/// The reader of a topic. Calls `got` on the receiving thread.
class Reader {
 public:
  using Got = std::function<void(const Blob&)>;

  Reader(dds_entity_t participant, const char* way, std::size_t number, Got got)
      : got_(std::move(got)), topic_(participant, way, number), listener_(dds_create_listener(this)),
        reader_(create(participant), "the reader") {}

  ~Reader() {
    dds_set_listener(reader_, nullptr);
    dds_delete_listener(listener_);
  }

 private:
  dds_entity_t create(dds_entity_t participant) {
    dds_lset_data_available(listener_, [](dds_entity_t reader, void* self) { static_cast<Reader*>(self)->take_all(reader); });
    return dds_create_reader(participant, topic_, topic_.qos(), listener_);
  }

  void take_all(dds_entity_t reader) const {
    void* samples[1] = {nullptr};
    dds_sample_info_t infos[1];
    for (;;) {
      const auto taken = dds_take(reader, samples, infos, 1, 1);
      if (taken <= 0) return;
      if (infos[0].valid_data) got_(*static_cast<const Blob*>(samples[0]));
      dds_return_loan(reader, samples, taken);
    }
  }

  Got got_;
  Topic topic_;
  dds_listener_t* listener_;
  Entity reader_;
};

/// Runs a job in the publisher's process. The message's buffer is reused because `dds_write` serialises before it
/// returns.
Samples run(dds_entity_t participant, Child& child, const Job& job, std::size_t number) {
  const Writer writer(participant, "there", number);
  Numbers round_trips_ns(job.samples);
  const Reader answers(participant, "back", number,
                       [&](const Blob& blob) { take(blob.data._buffer, blob.data._length, round_trips_ns); });
  std::vector<std::uint8_t> octets(job.size, 0xA5);
  const auto size = static_cast<std::uint32_t>(job.size);
  const Blob blob{{size, size, octets.data(), false}};
  auto samples = with_child(child, job, number, [&] {
    writer.wait_for_reader();
    place_others(job, Role::transport);
    auto published = publish(job, [&] { return octets.data(); }, [&] { writer.write(blob); });
    if (job.measure == Measure::rtt) wait_for([&] { return round_trips_ns.size() == job.samples; }, SECOND_NS);
    return published;
  });
  if (job.measure == Measure::rtt) samples.latencies_ns = round_trips_ns.all();
  return samples;
}

/// State of a job in the subscriber's process. The reader is destroyed first because it uses the writer.
struct Subscription {
  std::unique_ptr<Writer> back;
  std::unique_ptr<Reader> reader;
};

std::shared_ptr<void> subscribe(dds_entity_t participant, const Job& job, std::size_t number, Taken& taken) {
  const auto kept = std::make_shared<Subscription>();
  if (job.measure == Measure::rtt) kept->back = std::make_unique<Writer>(participant, "back", number);
  const auto got = [&taken, back = kept->back.get()](const Blob& blob) {
    taken(blob.data._buffer, blob.data._length);
    if (back != nullptr) back->write(blob);
  };
  kept->reader = std::make_unique<Reader>(participant, "there", number, got);
  if (kept->back) kept->back->wait_for_reader();
  place_others(job, Role::subscriber);
  return kept;
}

json hello() {
  return {{"rival", "cyclonedds.one_way"},
          {"version", CYCLONEDDS_VERSION_TEXT},
          {"mode", "two processes, UDP on the loopback device in datagrams of 65500 octets, reliable, keep last 16, "
                   "sequence of octets, listener on the receiving thread, loaned reads; a loan is the program's own buffer, "
                   "serialised after the stamp"},
          {"placements", {"same", "cross", "free"}}};
}

/// Keeps freed memory in the process. By default the allocator adapts only after the first large buffers are freed,
/// so the first job alone would have page faults.
void keep_memory() {
  constexpr int LARGEST_THRESHOLD = 32 << 20;  // largest value that the allocator accepts, in bytes
  mallopt(M_MMAP_THRESHOLD, LARGEST_THRESHOLD);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int measure(Output& out, bool is_subscriber, dds_domainid_t domain) {
  keep_memory();
  setenv("CYCLONEDDS_URI", CONFIG, 1);
  const Entity participant(dds_create_participant(domain, nullptr, nullptr), "the participant");
  if (is_subscriber) {
    serve_parent(out, [&](const Job& job, std::size_t number, Taken& taken) { return subscribe(participant, job, number, taken); });
    return 0;
  }
  Child child({"/proc/self/exe", "--subscriber", std::to_string(domain)});
  out.line(hello().dump());
  std::size_t jobs = 0;
  serve(out, [&](const Job& job) { return run(participant, child, job, ++jobs); });
  return 0;
}

}  // namespace

int main(int count, char** words) {
  Output out;
  const bool is_subscriber = count == 3 && std::string(words[1]) == "--subscriber";
  // Each run has its own domain, so that concurrent runs do not receive each other's messages.
  const auto domain = is_subscriber ? static_cast<dds_domainid_t>(std::stoul(words[2])) : 100 + getpid() % 100;
  try {
    return measure(out, is_subscriber, static_cast<dds_domainid_t>(domain));
  } catch (const std::exception& cause) {
    std::cerr << "cyclonedds: " << cause.what() << '\n';
    return 1;
  }
}
