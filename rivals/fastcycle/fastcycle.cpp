// FastCycle's transfer model, implemented from its paper (sections "Message broker" and "Multi-threaded zero-copy
// message transfer"). A hash map leads from a topic's name to the message queues of its subscribers. One main thread
// checks the queues and submits the callbacks to a thread pool. Messages are immutable, behind shared pointers. It
// contains no code of the original program. The paper does not specify how the main thread waits between its checks.
// Here it never sleeps but yields the core, which is the best case; with `--sleep-us N` it sleeps instead.

#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "../common/protocol.hpp"

using namespace rivals;

namespace {

using Message = std::vector<std::uint8_t>;
using MessagePtr = std::shared_ptr<const Message>;
using Callback = std::function<void(const MessagePtr&)>;

/// A thread pool.
class ThreadPool {
 public:
  ThreadPool(std::size_t threads, const std::function<void()>& place) {
    for (std::size_t started = 0; started < threads; ++started) {
      threads_.emplace_back([this, place] {
        place();
        work();
      });
    }
  }

  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    submitted_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  void submit(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    submitted_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable submitted_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

/// A subscriber's queue.
class Subscription {
 public:
  explicit Subscription(Callback callback) : callback_(std::move(callback)) {}

  void push(MessagePtr message) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(message));
    length_.store(queue_.size(), std::memory_order_release);
  }

  /// Submits new messages. An empty queue costs one load and no lock.
  void check(ThreadPool& pool) {
    while (length_.load(std::memory_order_acquire) > 0) {
      pool.submit([this, message = pop()] { callback_(message); });
    }
  }

 private:
  MessagePtr pop() {
    const std::lock_guard lock(mutex_);
    auto message = std::move(queue_.front());
    queue_.pop_front();
    length_.store(queue_.size(), std::memory_order_release);
    return message;
  }

  Callback callback_;
  std::mutex mutex_;
  std::deque<MessagePtr> queue_;
  std::atomic<std::size_t> length_{0};
};

/// The message broker: registry of topics, main thread and pool. Topics must be added before it starts.
class Broker {
 public:
  void subscribe(const std::string& topic, Callback callback) {
    registry_[topic].push_back(std::make_unique<Subscription>(std::move(callback)));
  }

  void publish(const std::string& topic, const MessagePtr& message) {
    const auto found = registry_.find(topic);
    if (found == registry_.end()) return;
    for (const auto& subscription : found->second) subscription->push(message);
  }

  void start(const Job& job, std::uint64_t sleep_ns) {
    const auto threads = std::max(2U, std::thread::hardware_concurrency());
    pool_ = std::make_unique<ThreadPool>(threads, [job] { place(job, Role::subscriber); });
    main_ = std::thread([this, job, sleep_ns] {
      place(job, Role::subscriber);
      // A thread that never sleeps would starve the publisher if its priority were higher.
      if (job.policy == Policy::fifo && sleep_ns == 0) prioritize(0, 40);
      prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
      while (!ends_) check_all(sleep_ns);
    });
  }

  void stop() {
    ends_ = true;
    main_.join();
    pool_.reset();
  }

 private:
  void check_all(std::uint64_t sleep_ns) {
    for (const auto& [topic, subscriptions] : registry_) {
      for (const auto& subscription : subscriptions) subscription->check(*pool_);
    }
    if (sleep_ns == 0) {
      sched_yield();
    } else {
      sleep_until_ns(now_ns() + sleep_ns);
    }
  }

  std::unordered_map<std::string, std::vector<std::unique_ptr<Subscription>>> registry_;
  std::unique_ptr<ThreadPool> pool_;
  std::thread main_;
  std::atomic<bool> ends_{false};
};

Samples run(const Job& job, std::uint64_t sleep_ns) {
  // The broker's threads cannot report a refused priority, so a separate thread requests it first.
  on_a_thread([&] {
    place(job, Role::subscriber);
    return Samples{};
  });
  Broker broker;
  Numbers latencies_ns(job.samples);
  const bool one_way = job.measure == Measure::one_way;
  const auto takes = [&](const MessagePtr& message) { take(message->data(), message->size(), latencies_ns); };
  const auto answers = [&](const MessagePtr& message) { broker.publish("back", message); };
  broker.subscribe("there", one_way ? Callback(takes) : Callback(answers));
  broker.subscribe("back", takes);
  const Pool<std::shared_ptr<Message>> pool(20, [&] { return std::make_shared<Message>(job.size, 0xA5); });
  broker.start(job, sleep_ns);
  auto samples = on_a_thread([&] {
    const std::shared_ptr<Message>* lent = nullptr;
    const auto obtain = [&] { return (*(lent = &pool.lend()))->data(); };
    return publish(job, obtain, [&] { broker.publish("there", *lent); }, sleep_ns == 0);
  });
  wait_for([&] { return latencies_ns.size() == job.samples; }, SECOND_NS);
  broker.stop();
  samples.latencies_ns = latencies_ns.all();
  return samples;
}

json hello(std::uint64_t sleep_ns) {
  const auto waits = sleep_ns == 0 ? std::string("never sleeps but yields")
                                   : "sleeps " + std::to_string(sleep_ns / 1000) + " us between checks";
  return {{"rival", sleep_ns == 0 ? "fastcycle.model" : "fastcycle.model_sleep"},
          {"version", "own implementation from the paper"},
          {"mode", "one process, hash-map registry, main thread that " + waits +
                       ", thread pool with a mutex and a condition variable, shared pointers to reused messages"},
          {"placements", {"same", "cross", "free"}}};
}

}  // namespace

int main(int count, char** words) {
  Output out;
  const bool sleeps = count == 3 && std::string(words[1]) == "--sleep-us";
  if (count != 1 && !sleeps) {
    std::cerr << "usage: fastcycle [--sleep-us N]\n";
    return 2;
  }
  const std::uint64_t sleep_ns = sleeps ? 1000 * std::stoull(words[2]) : 0;
  out.line(hello(sleep_ns).dump());
  serve(out, [&](const Job& job) { return run(job, sleep_ns); });
}
