// `lookout serve --storage etcd` under load, during all kinds of operations on its three etcds: members
// are killed, frozen, cut off, defragmented and restored from a snapshot, the history is compacted, users
// and roles are added, certificates are renewed. All watchers receive each acknowledged write once and
// in order.
//
//     LOOKOUT_CHAOS_WATCHERS   watchers (10)
//     LOOKOUT_CHAOS_RATE       writes per second (100)
//     LOOKOUT_CHAOS_SECONDS    seconds of load per phase (1)
//
// scripts/etcd-chaos.sh runs it at full load. It prints a table with the writes, failed writes and watch
// latencies of each phase, and the CPU time of the server and of each member.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cmd/bench/lag_histogram.h"
#include "cmd/bench/processor_time.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/cmd/program.h"
#include "tests/rest/certificates.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"

namespace lookout {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Revision = std::uint64_t;
using test::eventually;

constexpr int kObjects = 200;
constexpr int kWriters = 16;
constexpr std::string_view kPath = "/api/v1/namespaces/default/configmaps";

int setting(const char* name, int otherwise) {
  const char* const text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? otherwise : std::atoi(text);
}

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// The number after the first `name` in the text; 0 if there is none.
std::uint64_t number_behind(std::string_view text, std::string_view name) {
  const void* const at = memmem(text.data(), text.size(), name.data(), name.size());
  if (at == nullptr) return 0;
  const char* const digits = static_cast<const char*>(at) + name.size();
  std::uint64_t out = 0;
  std::from_chars(digits, text.data() + text.size(), out);
  return out;
}

constexpr std::string_view kVersion = R"("resourceVersion":")";
constexpr std::string_view kSent = R"("sent":")";
constexpr std::string_view kName = R"("name":"m)";

tcp::endpoint endpoint_of(const std::string& url) {
  int port = 0;
  const std::size_t colon = url.rfind(':');
  std::from_chars(url.data() + colon + 1, url.data() + url.size(), port);
  return {asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)};
}

/// The common latencies of a phase's watchers.
struct Lags {
  cmd::bench::LagHistogram histogram;
  std::uint64_t events = 0;
};

/// Watches like a client: starts with the state, resumes after connection errors, and restarts with the
/// state after a 410. Runs on the thread of `context`.
class Watcher {
 public:
  /// A period without a gap: it has received every change after `begin`, up to the last one in `seen`.
  struct Span {
    Revision begin = 0;
    std::vector<Revision> seen;
  };

  Watcher(asio::io_context& context, tcp::endpoint server, Lags& lags)
      : server_(server), lags_(lags), socket_(context), timer_(context) {
    connect();
  }

  // Called on the thread of `context` as well:
  Revision last() const { return last_; }
  const std::vector<Span>& spans() const { return spans_; }
  const std::map<int, Revision>& state() const { return state_; }
  const std::string& wrong() const { return wrong_; }
  std::size_t resets() const { return spans_.size() - 1; }
  void begin_anew() {
    Span now;
    now.begin = last_;
    spans_.assign(1, now);
  }

 private:
  void connect() {
    boost::system::error_code error;
    socket_ = tcp::socket(timer_.get_executor());
    socket_.connect(server_, error);
    raw_.clear();
    line_.clear();
    head_ = true;
    in_chunk_ = 0;
    std::string target = fmt::format("{}?watch=1&allowWatchBookmarks=true", kPath);
    if (last_ == 0) {
      target += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
      initial_.clear();
      begins_ = true;
    } else {
      target += fmt::format("&resourceVersion={}", last_);
    }
    const std::string request = fmt::format(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n", target);
    if (!error) asio::write(socket_, asio::buffer(request), error);
    if (error) return again();
    read();
  }

  void again() {
    boost::system::error_code ignored;
    socket_.close(ignored);
    timer_.expires_after(milliseconds(50));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) connect();
    });
  }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [this](const boost::system::error_code& error, std::size_t size) {
                              if (error == asio::error::operation_aborted) return;
                              if (error || !take({buffer_.data(), size})) return again();
                              read();
                            });
  }

  /// False at the end of the response.
  bool take(std::string_view text) {
    raw_ += text;
    if (head_) {
      const std::size_t end = raw_.find("\r\n\r\n");
      if (end == std::string::npos) return true;
      if (raw_.find(" 200 ") > end) {
        if (raw_.find(" 410 ") < end) last_ = 0;
        return false;
      }
      raw_.erase(0, end + 4);
      head_ = false;
    }
    // Reads the chunks, and the lines in them.
    std::size_t at = 0;
    for (;;) {
      if (in_chunk_ == 0) {
        const std::size_t end = raw_.find("\r\n", at);
        if (end == std::string::npos) break;
        if (end == at) {  // after the previous chunk
          at += 2;
          continue;
        }
        std::from_chars(raw_.data() + at, raw_.data() + end, in_chunk_, 16);
        at = end + 2;
        if (in_chunk_ == 0) return false;
      }
      const std::size_t size = std::min(in_chunk_, raw_.size() - at);
      if (!take_lines(std::string_view(raw_).substr(at, size))) return false;
      at += size;
      in_chunk_ -= size;
      if (in_chunk_ > 0) break;
    }
    raw_.erase(0, at);
    return true;
  }

  bool take_lines(std::string_view text) {
    for (;;) {
      const std::size_t end = text.find('\n');
      if (end == std::string_view::npos) break;
      if (line_.empty()) {
        if (!take_event(text.substr(0, end))) return false;
      } else {
        line_ += text.substr(0, end);
        if (!take_event(line_)) return false;
        line_.clear();
      }
      text.remove_prefix(end + 1);
    }
    line_ += text;
    return true;
  }

  bool take_event(std::string_view event) {
    constexpr std::string_view kType = R"({"type":")";
    if (!event.starts_with(kType)) return fail("no event");
    event.remove_prefix(kType.size());
    if (event.starts_with("ERROR")) {
      if (number_behind(event, R"("code":)") == 410) last_ = 0;
      return false;
    }
    const Revision revision = number_behind(event, kVersion);
    if (event.starts_with("BOOKMARK")) {
      if (begins_ && event.find("initial-events-end") != std::string_view::npos) {
        begins_ = false;
        state_ = initial_;
        Span span;
        span.begin = revision;
        spans_.push_back(std::move(span));
        last_ = revision;
      } else if (!begins_) {
        last_ = std::max(last_, revision);
      }
      return true;
    }
    const int number = static_cast<int>(number_behind(event, kName));
    if (begins_) {
      initial_[number] = revision;
      return true;
    }
    if (revision <= last_) return fail(fmt::format("{} behind {}", revision, last_));
    last_ = revision;
    state_[number] = revision;
    spans_.back().seen.push_back(revision);
    lags_.histogram.add(now_us() - static_cast<std::int64_t>(number_behind(event, kSent)));
    ++lags_.events;
    return true;
  }

  bool fail(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
    return true;
  }

  const tcp::endpoint server_;
  Lags& lags_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::vector<char> buffer_ = std::vector<char>(128u << 10);
  std::string raw_;
  std::string line_;
  bool head_ = true;
  std::size_t in_chunk_ = 0;
  bool begins_ = true;
  std::map<int, Revision> initial_;
  std::map<int, Revision> state_;
  Revision last_ = 0;
  std::vector<Span> spans_;
  std::string wrong_;
};

/// All watchers, on their own thread.
class Watchers {
 public:
  Watchers(int count, tcp::endpoint server) {
    for (int i = 0; i < count; ++i)
      all_.push_back(std::make_unique<Watcher>(context_, server, lags_));
    thread_ = std::thread([this] { context_.run(); });
  }
  ~Watchers() {
    context_.stop();
    thread_.join();
  }

  template <class Function>
  auto look(Function function) {
    std::promise<decltype(function(all_))> out;
    asio::post(context_, [&] { out.set_value(function(all_)); });
    return test::get(out.get_future());
  }
  Revision slowest() {
    return look([](const auto& all) {
      Revision out = ~Revision{0};
      for (const auto& watcher : all) out = std::min(out, watcher->last());
      return out;
    });
  }
  /// The latencies since the last call.
  Lags take_lags() {
    return look([this](const auto&) { return std::exchange(lags_, Lags()); });
  }

 private:
  asio::io_context context_{1};
  Lags lags_;
  std::vector<std::unique_ptr<Watcher>> all_;
  std::thread thread_;
};

/// Replace their own objects at a given rate, and record acknowledged writes.
class Writers {
 public:
  Writers(tcp::endpoint server, int rate) : server_(server), rate_(rate), begin_(Clock::now()) {
    for (int i = 0; i < kWriters; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  ~Writers() { stop(); }

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  std::uint64_t failures() const { return failures_; }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return acknowledged_.size();
  }
  std::vector<Revision> acknowledged() const {
    const std::lock_guard lock(mutex_);
    auto out = acknowledged_;
    std::sort(out.begin(), out.end());
    return out;
  }
  Revision last() const { return last_; }

 private:
  void run(int first) {
    std::optional<tcp::socket> socket;
    asio::io_context context;
    for (int i = first; !stop_; i = i + kWriters < kObjects ? i + kWriters : first) {
      std::this_thread::sleep_until(begin_ + next_++ * std::chrono::nanoseconds(1'000'000'000) /
                                                 std::max(rate_, 1));
      try {
        if (!socket) {
          socket.emplace(context);
          socket->connect(server_);
          // A write without a response counts as failed after a while.
          const timeval patience{20, 0};
          setsockopt(socket->native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        }
        write(*socket, i);
      } catch (const std::exception&) {
        ++failures_;
        socket.reset();
        std::this_thread::sleep_for(milliseconds(20));
      }
    }
  }

  void write(tcp::socket& socket, int object) {
    const std::string body = fmt::format(
        R"({{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{}"}},"data":{{"sent":"{}","fill":"{}"}}}})",
        object, now_us(), std::string(500, 'x'));
    asio::write(socket,
                asio::buffer(fmt::format("PUT {}/m{} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                                         "application/json\r\nContent-Length: {}\r\n\r\n{}",
                                         kPath, object, body.size(), body)));
    boost::beast::flat_buffer buffer;
    http::response<http::string_body> answer;
    http::read(socket, buffer, answer);
    if (answer.result_int() != 200) {
      ++failures_;
      std::this_thread::sleep_for(milliseconds(20));
      return;
    }
    const Revision revision = number_behind(answer.body(), kVersion);
    const std::lock_guard lock(mutex_);
    acknowledged_.push_back(revision);
    if (revision > last_) last_ = revision;
  }

  const tcp::endpoint server_;
  const int rate_;
  const Clock::time_point begin_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> failures_{0};
  std::atomic<Revision> last_{0};
  mutable std::mutex mutex_;
  std::vector<Revision> acknowledged_;
  std::vector<std::thread> threads_;
};

/// The processor time of a process, in seconds.
double cpu_of(pid_t pid) { return cmd::bench::processor_time_of(pid).count(); }

class EtcdChaosTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
    const test::KeyPair member = authority_.issue_local();
    ca_ = file("ca.crt", authority_.certificate());
    issue("lookout");
    issue("root");
    test::EtcdCluster::Options options;
    options.members = 3;
    options.tls = true;
    options.partitions = true;
    options.flags = {"--cert-file",       file("member.crt", member.certificate),
                     "--key-file",        file("member.key", member.key),
                     "--trusted-ca-file", ca_,
                     "--client-cert-auth"};
    options.control_flags = {"--cacert", ca_,
                             "--cert",   (dir_ / "root.crt").string(),
                             "--key",    (dir_ / "root.key").string()};
    etcd_.emplace(options);
    std::string endpoints;
    for (const std::string& one : etcd_->endpoints())
      endpoints += (endpoints.empty() ? "" : ",") + one;
    serve_.emplace(environment_,
                   std::vector<std::string>{"--storage", "etcd", "--etcd-endpoints", endpoints,
                                            "--etcd-cafile", ca_, "--etcd-certfile",
                                            (dir_ / "lookout.crt").string(), "--etcd-keyfile",
                                            (dir_ / "lookout.key").string()});
    server_ = endpoint_of(serve_->url());
    rest::Config config;
    config.server = serve_->url();
    client_.emplace(config);
    const auto maps = client_->resource<k8s::core::v1::ConfigMap>("default");
    for (int i = 0; i < kObjects; ++i)
      maps.create(api::Object::parse(fmt::format(R"({{"metadata":{{"name":"m{}"}}}})", i)));
    watchers_.emplace(setting("LOOKOUT_CHAOS_WATCHERS", 10), server_);
    ASSERT_TRUE(eventually([&] { return watchers_->slowest() > 0; }));
    begin_writing();
    fmt::print(
        "| phase | writes | failed | writes/s | lag p50, p99, max (ms) | server us/write | "
        "members us/write |\n|---|---|---|---|---|---|---|\n");
  }

  std::string file(const std::string& name, const std::string& text) {
    // The rename is atomic: a reader finds the old file or the new one.
    const std::string path = (dir_ / name).string();
    test::write_file(path + ".new", text);
    std::filesystem::rename(path + ".new", path);
    return path;
  }
  void issue(const std::string& user) {
    const test::KeyPair pair = authority_.issue({.common_name = user, .names = {}});
    file(user + ".crt", pair.certificate);
    file(user + ".key", pair.key);
  }

  void begin_writing() { writers_.emplace(server_, setting("LOOKOUT_CHAOS_RATE", 100)); }
  /// Waits until all watchers have received a write after this call's start.
  bool progress() {
    const Revision before = writers_->last();
    const std::size_t count = writers_->count();
    if (!eventually([&] { return writers_->last() > before && writers_->count() >= count + 50; }))
      return false;
    const Revision wanted = writers_->last();
    return eventually([&] { return watchers_->slowest() >= wanted; });
  }

  /// Runs an operation under load, and continues the load.
  template <class Function>
  void phase(const char* name, Function function) {
    SCOPED_TRACE(name);
    watchers_->take_lags();
    const std::size_t written = writers_->count();
    const std::uint64_t failed = writers_->failures();
    const double server = cpu_of(serve_->pid());
    const auto processes = member_processes();
    const double members = members_cpu();
    const auto begin = Clock::now();
    function();
    std::this_thread::sleep_for(seconds(setting("LOOKOUT_CHAOS_SECONDS", 1)));
    ASSERT_TRUE(progress());
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto writes = static_cast<double>(writers_->count() - written);
    const cmd::bench::LagHistogram lags = watchers_->take_lags().histogram;
    // A restarted member's CPU time starts at 0.
    const bool same = member_processes() == processes;
    const double by_members = members_cpu() - members;
    fmt::print("| {} | {} | {} | {:.0f} | {:.0f}, {:.0f}, {:.0f} | {:.0f} | {} |\n", name, writes,
               writers_->failures() - failed, writes / taken, lags.quantile_ms(0.5),
               lags.quantile_ms(0.99), lags.max_ms(),
               (cpu_of(serve_->pid()) - server) / writes * 1e6,
               same ? fmt::format("{:.0f}", by_members / writes * 1e6) : "-");
    std::fflush(stdout);
  }
  std::vector<pid_t> member_processes() const {
    std::vector<pid_t> out;
    for (std::size_t i = 0; i < etcd_->size(); ++i) out.push_back(etcd_->pid(i));
    return out;
  }
  double members_cpu() const {
    double out = 0;
    for (std::size_t i = 0; i < etcd_->size(); ++i) out += cpu_of(etcd_->pid(i));
    return out;
  }

  /// Stops the load and compares.
  void end_and_compare() {
    writers_->stop();
    const Revision last = writers_->last();
    ASSERT_TRUE(eventually([&] { return watchers_->slowest() >= last; }));
    const auto acknowledged = writers_->acknowledged();
    // A write without a response may have been executed.
    std::map<int, Revision> present;
    for (const auto& map : client_->resource<k8s::core::v1::ConfigMap>("default").list().items) {
      if (map.name().starts_with('m'))
        present[std::atoi(std::string(map.name().substr(1)).c_str())] =
            std::stoull(std::string(map.resource_version()));
    }
    ASSERT_EQ(present.size(), static_cast<std::size_t>(kObjects));
    EXPECT_TRUE(eventually([&] {
      return watchers_->look([&](const auto& all) {
        return std::all_of(all.begin(), all.end(),
                           [&](const auto& watcher) { return watcher->state() == present; });
      });
    }));
    watchers_->look([&](const auto& all) {
      std::size_t missed = 0;
      for (const auto& watcher : all) {
        EXPECT_EQ(watcher->wrong(), "");
        for (const auto& span : watcher->spans()) {
          const Revision end = span.seen.empty() ? span.begin : span.seen.back();
          const auto from = std::upper_bound(acknowledged.begin(), acknowledged.end(), span.begin);
          const auto to = std::upper_bound(from, acknowledged.end(), end);
          std::vector<Revision> lost;
          std::set_difference(from, to, span.seen.begin(), span.seen.end(),
                              std::back_inserter(lost));
          missed += lost.size();
        }
      }
      EXPECT_EQ(missed, 0u) << "of " << acknowledged.size() << " writes that were acknowledged";
      return 0;
    });
  }
  std::size_t resets() {
    return watchers_->look([](const auto& all) {
      std::size_t out = 0;
      for (const auto& watcher : all) out += watcher->resets();
      return out;
    });
  }

  const test::TempDir dir_;
  const test::CertificateAuthority authority_;
  const test::ProgramEnvironment environment_;
  std::string ca_;
  std::optional<test::EtcdCluster> etcd_;
  std::optional<test::ServeProcess> serve_;
  tcp::endpoint server_;
  std::optional<rest::Client> client_;
  std::optional<Watchers> watchers_;
  std::optional<Writers> writers_;
};

TEST_F(EtcdChaosTest, AllWatchersReceiveEverythingOnceAndInOrder) {
  const auto load = seconds(setting("LOOKOUT_CHAOS_SECONDS", 1));
  phase("nothing", [] {});
  const std::size_t follower = (etcd_->leader() + 1) % 3;
  phase("a member dies and comes back", [&] {
    etcd_->kill(follower);
    std::this_thread::sleep_for(load);
    etcd_->restart(follower);
    etcd_->wait_until_ready();
  });
  phase("the leader dies and comes back", [&] {
    const std::size_t old = etcd_->leader();
    etcd_->kill(old);
    std::this_thread::sleep_for(load);
    etcd_->restart(old);
    etcd_->wait_until_ready();
  });
  // At full load, each member; otherwise only the leader, to save time.
  const auto members = [&]() -> std::vector<std::size_t> {
    if (load > seconds(1)) return {0, 1, 2};
    return {etcd_->leader()};
  };
  phase("members are frozen for 12 s", [&] {
    for (const std::size_t member : members()) {
      etcd_->freeze(member);
      // Longer than the client's detection time.
      std::this_thread::sleep_for(seconds(12));
      etcd_->thaw(member);
      std::this_thread::sleep_for(load);
    }
  });
  phase("members are cut off from the others for 5 s", [&] {
    for (const std::size_t member : members()) {
      etcd_->isolate(member);
      std::this_thread::sleep_for(seconds(5));
      etcd_->rejoin();
      etcd_->wait_until_ready();
      std::this_thread::sleep_for(load);
    }
  });
  phase("compaction and defragmentation, five times", [&] {
    for (int i = 0; i < 5; ++i) {
      etcd_->etcdctl({"compact", std::to_string(writers_->last())}, etcd_->leader());
      for (std::size_t member = 0; member < 3; ++member) etcd_->etcdctl({"defrag"}, member);
    }
  });
  phase("users and roles", [&] {
    // Under full load, a command may take long.
    const auto control = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {"--command-timeout", "20s"});
      etcd_->etcdctl(std::move(arguments), etcd_->leader());
    };
    for (const std::string name : {"root", "lookout"})
      control({"user", "add", name, "--no-password"});
    control({"user", "grant-role", "root", "root"});
    control({"role", "add", "server"});
    control({"role", "grant-permission", "server", "--prefix=true", "readwrite", "/registry"});
    control({"role", "grant-permission", "server", "readwrite", "compact_rev_key"});
    control({"user", "grant-role", "lookout", "server"});
    control({"auth", "enable"});
    std::this_thread::sleep_for(load);
    // Without the permission, the write is rejected, not lost.
    control({"role", "revoke-permission", "server", "/registry", "/registrz"});
    std::this_thread::sleep_for(milliseconds(300));
    control({"role", "grant-permission", "server", "--prefix=true", "readwrite", "/registry"});
  });
  phase("certificates are renewed", [&] {
    const test::KeyPair member = authority_.issue_local();
    file("member.crt", member.certificate);
    file("member.key", member.key);
    issue("lookout");
    issue("root");
    std::this_thread::sleep_for(load);
    // Restart all members, so that all clients use the new certificates.
    for (std::size_t i = 0; i < 3; ++i) {
      etcd_->kill(i);
      etcd_->restart(i);
      etcd_->wait_until_ready();
    }
  });
  EXPECT_EQ(resets(), 0u) << "no watch had to begin again";
  std::string snapshot;
  phase("a snapshot is saved", [&] { snapshot = etcd_->save_snapshot(etcd_->leader()); });
  end_and_compare();

  // A new history: acknowledged writes after the snapshot are lost, and all watchers get 410.
  etcd_->restore(snapshot);
  begin_writing();
  ASSERT_TRUE(eventually([&] {
    return watchers_->look([](const auto& all) {
      return std::all_of(all.begin(), all.end(),
                         [](const auto& watcher) { return watcher->resets() > 0; });
    });
  })) << "each gets its 410";
  watchers_->look([](const auto& all) {
    for (const auto& watcher : all) watcher->begin_anew();
    return 0;
  });
  phase("the cluster was restored from the snapshot", [] {});
  end_and_compare();
  EXPECT_EQ(resets(), 0u);
}

}  // namespace
}  // namespace lookout
