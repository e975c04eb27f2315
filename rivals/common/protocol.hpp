// The line protocol of rivals/README.md, and the protocol between the two processes of a rival.
#pragma once

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>

#include "measure.hpp"

namespace rivals {

using nlohmann::json;

NLOHMANN_JSON_SERIALIZE_ENUM(Fill, {{Fill::loan, "loan"}, {Fill::copy, "copy"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Filled, {{Filled::ahead, "ahead"}, {Filled::just_before, "just_before"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Cores, {{Cores::free, "free"}, {Cores::same, "same"}, {Cores::cross, "cross"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Policy, {{Policy::other, "other"}, {Policy::fifo, "fifo"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Measure, {{Measure::one_way, "one_way"}, {Measure::rtt, "rtt"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Job, size, samples, warm_up, period_ns, fill, filled, cores, policy, measure, subscribers)

/// Error for a job that the rival cannot run.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The process's standard output. Output of libraries is redirected to the log, so that only lines of the protocol
/// remain.
class Output {
 public:
  Output() : stream_(fdopen(dup(STDOUT_FILENO), "w")) { dup2(STDERR_FILENO, STDOUT_FILENO); }

  void line(const std::string& text) {
    std::fprintf(stream_, "%s\n", text.c_str());
    std::fflush(stream_);
  }

 private:
  std::FILE* stream_;
};

inline json answer_of(const Job& job, const Samples& samples) {
  const auto expected = job.samples;
  const auto got = std::min(expected, samples.latencies_ns.size());
  return {{"latencies_ns", samples.latencies_ns}, {"lateness_ns", samples.lateness_ns}, {"lost", expected - got},
          {"page_faults", samples.page_faults}, {"note", samples.note}};
}

/// Throws if a value is unknown; the JSON library would map a misspelt one to the first value of its enum.
inline void check_values(const Job& job, const json& words) {
  const json understood(job);
  for (const auto& [key, meant] : understood.items()) {
    const auto& value = words.at(key);
    if (value != meant) throw std::invalid_argument("a job's `" + key + "` cannot be " + value.dump());
  }
}

inline Job job_of(const std::string& line) {
  auto words = json::parse(line);
  words.emplace("filled", Filled::ahead);
  words.emplace("subscribers", 1);
  const auto job = words.get<Job>();
  check_values(job, words);
  if (job.size < STAMP_OCTETS || job.samples == 0) {
    throw std::invalid_argument("a job needs a size of at least 8 bytes and at least 1 sample");
  }
  if (job.subscribers != 1) throw Unsupported("one subscriber only");
  return job;
}

/// Answers each line of the input until it ends.
inline void serve(Output& out, const std::function<Samples(const Job&)>& run) {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.empty()) continue;
    json answer;
    try {
      const auto job = job_of(line);
      answer = answer_of(job, run(job));
    } catch (const Unsupported& why) {
      answer = {{"unsupported", why.what()}};
    } catch (const std::exception& cause) {
      answer = {{"error", cause.what()}};
    }
    out.line(answer.dump());
  }
}

/// Runs `publish` on a separate thread, because the caller must not keep its priority.
inline Samples on_a_thread(const std::function<Samples()>& publish) {
  Samples samples;
  std::exception_ptr failed;
  std::thread([&] {
    try {
      samples = publish();
    } catch (...) {
      failed = std::current_exception();
    }
  }).join();
  if (failed) std::rethrow_exception(failed);
  return samples;
}

/// A child process with pipes for input and output. It ends with this process.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    int to[2], from[2];
    check(pipe2(to, O_CLOEXEC), "cannot create a pipe");
    check(pipe2(from, O_CLOEXEC), "cannot create a pipe");
    pid_ = fork();
    if (pid_ == 0) become(words, to[0], from[1]);
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Closes its input. If it does not end, requests its termination.
  ~Child() {
    std::fclose(to_);
    if (!wait_for([&] { return waitpid(pid_, nullptr, WNOHANG) != 0; }, end_timeout_ns)) stop();
    std::fclose(from_);
  }

  /// Time limit for the child to end by itself.
  std::uint64_t end_timeout_ns = 3 * SECOND_NS;

  bool is_running() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

  void send_line(const std::string& line) {
    if (std::fprintf(to_, "%s\n", line.c_str()) < 0 || std::fflush(to_) != 0) throw std::runtime_error(GONE);
  }

  std::string receive() {
    std::string line;
    for (int octet; (octet = std::fgetc(from_)) != '\n';) {
      if (octet == EOF) throw std::runtime_error(GONE);
      line.push_back(static_cast<char>(octet));
    }
    return line;
  }

 private:
  static constexpr const char* GONE = "the second process has ended";

  [[noreturn]] static void become(const std::vector<std::string>& words, int in, int out) {
    prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }

  void stop() {
    kill(pid_, SIGTERM);
    if (wait_for([&] { return waitpid(pid_, nullptr, WNOHANG) != 0; }, 5 * SECOND_NS)) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid_;
  std::FILE* to_;
  std::FILE* from_;
};

/// Runs a job in the publisher's process: the child subscribes, this process publishes, and the child returns its
/// results. `publish` receives the job's number, which is part of the topics' names.
inline Samples with_child(Child& child, const Job& job, std::size_t number, const std::function<Samples()>& publish) {
  child.send_line(json{{"job", job}, {"number", number}}.dump());
  if (const auto answer = child.receive(); answer != "ready") throw std::runtime_error("the second process " + answer);
  Samples samples;
  std::exception_ptr failed;
  try {
    samples = on_a_thread(publish);
  } catch (...) {
    failed = std::current_exception();
  }
  child.send_line("");
  const auto taken = json::parse(child.receive());
  if (failed) std::rethrow_exception(failed);
  samples.page_faults += taken.at("page_faults").get<std::uint64_t>();
  if (job.measure == Measure::one_way) taken.at("latencies_ns").get_to(samples.latencies_ns);
  return samples;
}

/// Results of the child.
class Taken {
 public:
  explicit Taken(const Job& job) : latencies_ns_(job.samples), samples_(job.samples) {}

  void operator()(const std::uint8_t* data, std::size_t size) {
    take(data, size, latencies_ns_);
    if (read_stamp(data) == 0) faults_before_ = page_faults();
    if (latencies_ns_.size() == samples_) faults_after_ = page_faults();
  }

  bool is_whole() const { return faults_after_ != 0; }

  json report() const {
    const std::uint64_t after = is_whole() ? faults_after_.load() : page_faults();
    return {{"latencies_ns", latencies_ns_.all()}, {"page_faults", after - std::min(after, faults_before_.load())}};
  }

 private:
  Numbers latencies_ns_;
  std::size_t samples_;
  std::atomic<std::uint64_t> faults_before_{page_faults()};
  std::atomic<std::uint64_t> faults_after_{0};
};

/// Runs the subscriber's process: subscribes for each order, and waits up to one second for the last messages.
inline void serve_parent(Output& out, const std::function<std::shared_ptr<void>(const Job&, std::size_t, Taken&)>& subscribe) {
  for (std::string line; std::getline(std::cin, line);) {
    const auto order = json::parse(line);
    const auto job = order.at("job").get<Job>();
    Taken taken(job);
    try {
      const auto subscription = subscribe(job, order.at("number").get<std::size_t>(), taken);
      out.line("ready");
      std::getline(std::cin, line);
      wait_for([&] { return taken.is_whole(); }, SECOND_NS);
    } catch (const std::exception& cause) {
      out.line(std::string("failed: ") + cause.what());
      continue;
    }
    out.line(taken.report().dump());
  }
}

}  // namespace rivals
