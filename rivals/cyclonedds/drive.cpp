// Cyclone DDS as a rival in `viaduct bench drive`: one end of a link, which sends or receives the frames of one to four
// cameras. "Ends of a link" in rivals/README.md describes its lines.

#include <dds/dds.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "blob.h"

namespace {

using nlohmann::json;
using Blob = rivals_Blob;

constexpr std::uint64_t MS_NS = 1'000'000;
constexpr std::size_t HEADER = 16;  // camera and number with 4 bytes each, time with 8 bytes

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void sleep_until(std::uint64_t time_ns) {
  const timespec time{static_cast<time_t>(time_ns / 1'000'000'000), static_cast<long>(time_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

struct Job {
  bool is_sender;
  std::string variant;
  std::string own, other;
  std::uint32_t cameras, warm_up, frames;
  std::size_t size;
  std::uint64_t period_ns, silence_ns, drain_ns;

  std::uint32_t all() const { return warm_up + frames; }
  bool tuned() const { return variant == "tuned"; }
};

Job parse(const json& line) {
  const bool is_sender = line.at("role") == "sender";
  const std::string sender = line.at("sender"), receiver = line.at("receiver");
  Job job{is_sender, line.at("variant"), is_sender ? sender : receiver, is_sender ? receiver : sender,
          line.at("cameras"), line.at("warm_up"), line.at("frames"), line.at("size"), line.at("period_ns"),
          line.at("silence_ms").get<std::uint64_t>() * MS_NS, line.at("drain_ms").get<std::uint64_t>() * MS_NS};
  if (job.size < HEADER || job.cameras < 1 || job.cameras > 255) throw std::runtime_error("invalid job");
  return job;
}

/// Returns the configuration. Both have the addresses of the ends, so that discovery does not depend on multicast over a lossy
/// link. `tuned` avoids fragmentation by IP, retransmits sooner, and has room for the frames of a tick; all else is the default.
std::string config(const Job& job) {
  const std::string tuned_sizes = "<MaxMessageSize>1472B</MaxMessageSize><FragmentSize>1344B</FragmentSize>";
  const std::string tuned_times =
      "<Internal><HeartbeatInterval min=\"1ms\" minsched=\"2ms\" max=\"100ms\">5ms</HeartbeatInterval>"
      "<NackDelay>1ms</NackDelay><AckDelay>1ms</AckDelay>"
      "<SocketReceiveBufferSize min=\"4MB\"/><SocketSendBufferSize min=\"4MB\"/>"
      "<Watermarks><WhcHigh>4MB</WhcHigh><WhcHighInit>4MB</WhcHighInit></Watermarks></Internal>";
  return "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address=\"" + job.own +
         "\" multicast=\"false\"/></Interfaces><AllowMulticast>false</AllowMulticast>" + (job.tuned() ? tuned_sizes : "") +
         "</General><Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer address=\"" + job.own +
         "\"/><Peer address=\"" + job.other + "\"/></Peers></Discovery>" + (job.tuned() ? tuned_times : "") +
         "</Domain></CycloneDDS>";
}

std::string mode(const Job& job) {
  if (job.tuned()) {
    return "Reliable, KeepLast 10; messages of 1472 octets, heartbeats every 5 ms, NACK after 1 ms, history of 4 MB, "
           "socket buffers of 4 MB";
  }
  const char* qos[] = {"Reliable, KeepLast 10", "Reliable, KeepLast 1", "Reliable, KeepAll", "BestEffort, KeepLast 1"};
  return std::string(qos[std::stoul(job.variant) - 1]) + ", Volatile; default configuration, unicast discovery";
}

dds_entity_t checked(dds_entity_t handle, const char* what) {
  if (handle < 0) throw std::runtime_error(std::string("cannot create ") + what + ": " + dds_strretcode(-handle));
  return handle;
}

/// The quality of service of a case of the paper.
class Qos {
 public:
  explicit Qos(const Job& job) : qos_(dds_create_qos()) {
    const auto number = job.tuned() ? 1 : std::stoul(job.variant);
    if (number < 1 || number > 4) throw std::runtime_error("unknown case");
    const bool reliable = number != 4;
    // A write that is blocked for this time is repeated.
    dds_qset_reliability(qos_, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_SECS(1));
    dds_qset_history(qos_, number == 3 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST, number == 1 ? 10 : 1);
    dds_qset_durability(qos_, DDS_DURABILITY_VOLATILE);
  }
  Qos(const Qos&) = delete;
  Qos& operator=(const Qos&) = delete;
  ~Qos() { dds_delete_qos(qos_); }
  operator dds_qos_t*() const { return qos_; }

 private:
  dds_qos_t* qos_;
};

dds_entity_t topic(dds_entity_t participant, std::uint32_t camera, const Qos& qos) {
  const auto name = "camera_" + std::to_string(camera);
  return checked(dds_create_topic(participant, &rivals_Blob_desc, name.c_str(), qos, nullptr), "a topic");
}

/// Sends the frames of one camera, each at its tick. A write that the library blocks delays the frames after it. Frames that cannot
/// be written before `end_ns` are lost.
void send_frames(const Job& job, dds_entity_t writer, std::uint32_t camera, std::uint64_t start_ns) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::vector<std::uint8_t> octets(job.size, 0xA5);
  const auto size = static_cast<std::uint32_t>(job.size);
  const Blob blob{{size, size, octets.data(), false}};
  const auto end_ns = start_ns + job.all() * job.period_ns + job.drain_ns;
  for (std::uint32_t number = 0; number < job.all(); ++number) {
    const auto tick_ns = start_ns + number * job.period_ns;
    sleep_until(tick_ns);
    std::memcpy(octets.data(), &camera, 4);
    std::memcpy(octets.data() + 4, &number, 4);
    std::memcpy(octets.data() + 8, &tick_ns, 8);
    dds_return_t written;
    do {
      written = dds_write(writer, &blob);
    } while (written == DDS_RETCODE_TIMEOUT && monotonic_ns() < end_ns);
    if (monotonic_ns() >= end_ns) return;
  }
}

json run_sender(const Job& job, const std::vector<dds_entity_t>& writers) {
  const auto start_ns = monotonic_ns() + 50 * MS_NS;
  std::vector<std::thread> threads;
  for (std::uint32_t camera = 0; camera < job.cameras; ++camera) {
    threads.emplace_back(send_frames, std::cref(job), writers[camera], camera, start_ns);
  }
  for (auto& thread : threads) thread.join();
  return {{"sent", {{"first", std::vector<std::uint32_t>(job.cameras, job.warm_up)}}}};
}

void wait_for_reader(dds_entity_t writer) {
  const auto end_ns = monotonic_ns() + 15'000 * MS_NS;
  for (;;) {
    dds_publication_matched_status_t status{};
    if (dds_get_publication_matched_status(writer, &status) == 0 && status.current_count > 0) return;
    if (monotonic_ns() >= end_ns) throw std::runtime_error("the receiver was not discovered");
    dds_sleepfor(DDS_MSECS(20));
  }
}

/// The frames that have arrived.
class Arrivals {
 public:
  void add(const Blob& blob) {
    const auto now_ns = monotonic_ns();
    if (blob.data._length < HEADER) return;
    std::uint32_t camera, number;
    std::uint64_t taken_ns;
    std::memcpy(&camera, blob.data._buffer, 4);
    std::memcpy(&number, blob.data._buffer + 4, 4);
    std::memcpy(&taken_ns, blob.data._buffer + 8, 8);
    const std::lock_guard lock(mutex_);
    latest_ns_ = now_ns;
    if (known_.emplace(camera, number).second) frames_.push_back({camera, number, now_ns - taken_ns});
  }

  /// Waits until nothing has arrived for a time, or all frames have.
  json drain(const Job& job) {
    const auto end_ns = monotonic_ns() + job.drain_ns;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        const auto now_ns = monotonic_ns();
        const bool complete = frames_.size() >= static_cast<std::size_t>(job.cameras) * job.all();
        if (complete || now_ns >= end_ns || now_ns - latest_ns_ >= job.silence_ns) {
          return {{"arrived", {{"frames", frames_}}}};
        }
      }
      dds_sleepfor(DDS_MSECS(20));
    }
  }

 private:
  std::mutex mutex_;
  std::uint64_t latest_ns_ = monotonic_ns();
  std::set<std::pair<std::uint32_t, std::uint32_t>> known_;
  json frames_ = json::array();
};

void take_all(dds_entity_t reader, void* arrivals) {
  void* samples[1] = {nullptr};
  dds_sample_info_t infos[1];
  for (;;) {
    const auto taken = dds_take(reader, samples, infos, 1, 1);
    if (taken <= 0) return;
    if (infos[0].valid_data) static_cast<Arrivals*>(arrivals)->add(*static_cast<const Blob*>(samples[0]));
    dds_return_loan(reader, samples, taken);
  }
}

json next_line() {
  std::string line;
  if (!std::getline(std::cin, line)) throw std::runtime_error("the bench has ended");
  return json::parse(line);
}

void answer(const json& line) { std::cout << line.dump() << std::endl; }

void serve() {
  const Job job = parse(next_line());
  const auto settings = config(job);
  setenv("CYCLONEDDS_URI", settings.c_str(), 1);
  const auto participant = checked(dds_create_participant(0, nullptr, nullptr), "the participant");
  const Qos qos(job);
  const json ready = {{"ready", {{"version", CYCLONEDDS_VERSION_TEXT}, {"mode", mode(job)}}}};
  if (job.is_sender) {
    std::vector<dds_entity_t> writers;
    for (std::uint32_t camera = 0; camera < job.cameras; ++camera) {
      writers.push_back(checked(dds_create_writer(participant, topic(participant, camera, qos), qos, nullptr), "a writer"));
    }
    for (const auto writer : writers) wait_for_reader(writer);
    answer(ready);
    next_line();
    answer(run_sender(job, writers));
    // Samples in the history are sent until the receiver has finished.
    for (std::string line; std::getline(std::cin, line);) {
    }
  } else {
    const auto arrivals = std::make_shared<Arrivals>();
    auto* listener = dds_create_listener(arrivals.get());
    dds_lset_data_available(listener, take_all);
    for (std::uint32_t camera = 0; camera < job.cameras; ++camera) {
      checked(dds_create_reader(participant, topic(participant, camera, qos), qos, listener), "a reader");
    }
    answer(ready);
    next_line();
    answer(arrivals->drain(job));
    dds_delete_listener(listener);
  }
  // Without an orderly end, which can take seconds: the process and its sockets end at once.
  std::cout.flush();
  _exit(0);
}

}  // namespace

int main() {
  try {
    serve();
  } catch (const std::exception& cause) {
    answer({{"error", cause.what()}});
    return 1;
  }
}
