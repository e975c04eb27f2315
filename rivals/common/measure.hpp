// Measurement code of the C++ rivals: clock, exact sleeps, cores and priorities, publisher's loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace rivals {

enum class Fill { loan, copy };
enum class Filled { ahead, just_before };
enum class Cores { same, cross, free };
enum class Policy { other, fifo };
enum class Measure { one_way, rtt };

/// A measurement, as described in rivals/README.md.
struct Job {
  std::size_t size = 0;         // bytes of a message, at least 8
  std::size_t samples = 0;      // measured messages
  std::size_t warm_up = 0;      // messages of the warm-up
  std::uint64_t period_ns = 0;  // from one message to the next
  Fill fill = Fill::loan;
  Filled filled = Filled::ahead;  // when a loan is filled
  Cores cores = Cores::free;
  Policy policy = Policy::other;
  Measure measure = Measure::one_way;
  std::size_t subscribers = 1;

  /// Returns `true` if a message is filled while the publisher sleeps until its deadline.
  bool is_filled_ahead() const { return fill == Fill::loan && filled == Filled::ahead; }
};

/// Result of a job.
struct Samples {
  std::vector<std::uint64_t> latencies_ns;
  std::vector<std::uint64_t> lateness_ns;
  std::uint64_t page_faults = 0;
  std::string note;
};

/// Role of a thread. Transport threads of the publisher's process have its core and the subscriber's priority.
enum class Role { publisher, transport, subscriber };

inline constexpr std::uint64_t SECOND_NS = 1'000'000'000;
inline constexpr std::size_t STAMP_OCTETS = 8;

/// Returns the time of the monotonic clock.
inline std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * SECOND_NS + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Sleeps until a time of the monotonic clock. Returns at once if it has passed.
inline void sleep_until_ns(std::uint64_t moment) {
  const timespec time{static_cast<time_t>(moment / SECOND_NS), static_cast<long>(moment % SECOND_NS)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

/// Waits until `done` returns `true`, at most `at_most_ns`. Returns `true` if it did.
inline bool wait_for(const std::function<bool()>& done, std::uint64_t at_most_ns) {
  const auto deadline = now_ns() + at_most_ns;
  while (!done() && now_ns() < deadline) sleep_until_ns(now_ns() + 2'000'000);
  return done();
}

/// Returns the number of page faults of this process so far, minor and major.
inline std::uint64_t page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt);
}

/// Returns the cores of this process at the first call.
inline const cpu_set_t& cores_at_start() {
  static const cpu_set_t cores = [] {
    cpu_set_t found;
    CPU_ZERO(&found);
    sched_getaffinity(0, sizeof found, &found);
    return found;
  }();
  return cores;
}

/// Returns the core `before` positions before the last one that this process may use.
inline int core_before_last(int before) {
  for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
    if (CPU_ISSET(core, &cores_at_start()) && before-- == 0) return core;
  }
  throw std::runtime_error("the machine has too few cores");
}

inline void check(int returned, const char* what) {
  if (returned != 0) throw std::system_error(errno, std::generic_category(), what);
}

/// Sets the real-time priority of a thread (0 for the calling one). Priority 0 sets the ordinary policy.
inline void prioritize(pid_t thread, int priority) {
  sched_param parameters{};
  parameters.sched_priority = priority;
  const int policy = priority > 0 ? SCHED_FIFO : SCHED_OTHER;
  check(sched_setscheduler(thread, policy, &parameters), "cannot set the scheduling policy");
}

/// Sets cores and policy of a thread (0 for the calling one) by its role in the job.
inline void place(const Job& job, Role role, pid_t thread = 0) {
  cpu_set_t cores = cores_at_start();
  if (job.cores != Cores::free) {
    CPU_ZERO(&cores);
    CPU_SET(core_before_last(job.cores == Cores::cross && role == Role::subscriber ? 1 : 0), &cores);
  }
  check(sched_setaffinity(thread, sizeof cores, &cores), "cannot set the cores");
  prioritize(thread, job.policy == Policy::other ? 0 : role == Role::publisher ? 50 : 60);
}

/// Sets cores and policy of all threads of this process except the calling one: the threads of the library.
inline void place_others(const Job& job, Role role) {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto thread = static_cast<pid_t>(std::stol(entry.path().filename()));
    if (thread != self) place(job, role, thread);
  }
}

/// A list of numbers in prefaulted memory, written by several threads and read after they have ended.
class Numbers {
 public:
  explicit Numbers(std::size_t capacity) : values_(capacity, 1) {}

  void push(std::uint64_t value) {
    const auto at = length_.fetch_add(1, std::memory_order_acq_rel);
    if (at < values_.size()) values_[at] = value;
  }

  std::size_t size() const { return std::min(length_.load(std::memory_order_acquire), values_.size()); }

  std::vector<std::uint64_t> all() const { return {values_.begin(), values_.begin() + static_cast<long>(size())}; }

 private:
  std::vector<std::uint64_t> values_;
  std::atomic<std::size_t> length_{0};
};

/// Returns the stamp at the start of a message.
inline std::uint64_t read_stamp(const std::uint8_t* data) {
  std::uint64_t stamp;
  std::memcpy(&stamp, data, STAMP_OCTETS);
  return stamp;
}

/// Touches both ends of a message and records the time since its stamp. A stamp of 0 (warm-up) is not recorded.
inline void take(const std::uint8_t* data, std::size_t size, Numbers& latencies_ns) {
  static_cast<void>(*static_cast<const volatile std::uint8_t*>(data + size - 1));
  const auto stamp = read_stamp(data);
  const auto now = now_ns();
  if (stamp != 0) latencies_ns.push(now - stamp);
}

/// Fills a whole message. Its stamp is written later.
inline void fill(std::uint8_t* data, const std::vector<std::uint8_t>& content) {
  std::memcpy(data, content.data(), content.size());
  asm volatile("" ::"r"(data) : "memory");  // keeps the copy before the stamp
}

/// Stamps a filled message: a loan with the current time, a copy with the time before the filling, 0 in the warm-up.
inline void write_stamp(std::uint8_t* data, const Job& job, bool counts, std::uint64_t woke_ns) {
  const auto stamp = !counts ? 0 : job.fill == Fill::loan ? now_ns() : woke_ns;
  std::memcpy(data, &stamp, STAMP_OCTETS);
}

/// A producer: a thread that fills messages, as a sensor's driver or its DMA does. The thread inherits cores and
/// policy from its creator.
class Producer {
 public:
  explicit Producer(const std::vector<std::uint8_t>& content) : content_(content), thread_([this] { work(); }) {}

  ~Producer() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  /// Passes a message to the producer. No other thread may access it until `take_back` returns.
  void hand_over(std::uint8_t* data) {
    {
      const std::lock_guard lock(mutex_);
      empty_ = data;
    }
    changed_.notify_one();
  }

  /// Waits until the message is filled.
  void take_back() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return empty_ == nullptr; });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ends_ || empty_ != nullptr; });
      if (empty_ == nullptr) return;
      lock.unlock();
      fill(empty_, content_);  // only this thread changes it until it is null
      lock.lock();
      empty_ = nullptr;
      changed_.notify_one();
    }
  }

  const std::vector<std::uint8_t>& content_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint8_t* empty_ = nullptr;  // message to fill
  bool ends_ = false;
  std::thread thread_;
};

/// Returns the producer's cores: all except the publisher's, and except that of a subscriber that never sleeps and so
/// never releases it.
inline cpu_set_t producer_cores(const Job& job, bool polls) {
  cpu_set_t cores = cores_at_start();
  if (job.cores != Cores::free) CPU_CLR(core_before_last(0), &cores);
  if (job.cores == Cores::cross && polls) CPU_CLR(core_before_last(1), &cores);
  return cores;
}

/// Starts the job's producer. Returns null if messages are not filled ahead or no core is left. Leaves the calling
/// thread on the producer's cores.
inline std::unique_ptr<Producer> start_producer(const Job& job, bool polls, const std::vector<std::uint8_t>& content) {
  const auto cores = producer_cores(job, polls);
  if (!job.is_filled_ahead() || CPU_COUNT(&cores) == 0) return nullptr;
  check(sched_setaffinity(0, sizeof cores, &cores), "cannot set the producer's cores");
  prioritize(0, 0);
  return std::make_unique<Producer>(content);
}

/// Note of a result whose messages the publisher filled ahead itself.
inline constexpr const char* NO_CORE_FOR_PRODUCER = "filled on the publisher's thread: no core is left for a producer";

/// Fills a message ahead, on the producer if there is one, and sleeps until the deadline. Returns the time of the
/// wake-up. The message is filled when this returns.
inline std::uint64_t sleep_while_filled(Producer* producer, std::uint8_t* data, const std::vector<std::uint8_t>& content,
                                        std::uint64_t deadline) {
  if (producer == nullptr) {
    fill(data, content);
  } else {
    producer->hand_over(data);
  }
  sleep_until_ns(deadline);
  const auto woke_ns = now_ns();
  if (producer != nullptr) producer->take_back();
  return woke_ns;
}

/// Sends a message each period, filled ahead or after the wake-up. Must run on a dedicated thread. `obtain` returns
/// the bytes of a message without readers, and `send` sends that message. `polls` is true if a subscriber never
/// sleeps.
template <typename Obtain, typename Send>
Samples publish(const Job& job, Obtain obtain, Send send, bool polls = false) {
  const std::vector<std::uint8_t> content(job.size, 0x5A);
  const auto producer = start_producer(job, polls, content);
  Samples samples;
  if (job.is_filled_ahead() && !producer) samples.note = NO_CORE_FOR_PRODUCER;
  Numbers lateness_ns(job.samples);
  std::uint8_t* data = nullptr;
  std::uint64_t woke_ns = 0;
  place(job, Role::publisher);
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  auto deadline = now_ns();
  for (std::size_t number = 0; number < job.warm_up + job.samples; ++number) {
    if (number == job.warm_up) {
      deadline = now_ns();
      samples.page_faults = page_faults();
    }
    deadline += job.period_ns;
    if (job.is_filled_ahead()) {
      woke_ns = sleep_while_filled(producer.get(), data = obtain(), content, deadline);
    } else {
      sleep_until_ns(deadline);
      woke_ns = now_ns();
      fill(data = obtain(), content);
    }
    if (number >= job.warm_up) lateness_ns.push(woke_ns - deadline);
    write_stamp(data, job, number >= job.warm_up, woke_ns);
    send();
  }
  samples.page_faults = page_faults() - samples.page_faults;
  samples.lateness_ns = lateness_ns.all();
  return samples;
}

/// A pool of prefaulted buffers behind shared pointers. A loan takes the first free buffer. Unless messages
/// pile up, this is the one returned last, which is still in the cache.
template <typename Pointer>
class Pool {
 public:
  Pool(std::size_t buffers, const std::function<Pointer()>& make) {
    for (std::size_t made = 0; made < buffers; ++made) buffers_.push_back(make());
  }

  /// Returns a free buffer. Only one thread may call this, and it must send the buffer before the next call.
  const Pointer& lend() const {
    for (;;) {
      for (const auto& buffer : buffers_) {
        if (buffer.use_count() != 1) continue;
        std::atomic_thread_fence(std::memory_order_acquire);  // the previous reader has finished
        return buffer;
      }
      // Yielding is not enough: a thread of a lower priority may have to return a buffer.
      sleep_until_ns(now_ns() + 50'000);
    }
  }

 private:
  std::vector<Pointer> buffers_;
};

}  // namespace rivals
