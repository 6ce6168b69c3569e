// Many concurrent watches, and clients that do not read.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/apiserver/server.h"
#include "lookout/base/pinned.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/held.h"
#include "tests/support/own_resources.h"
#include "tests/support/sanitizers.h"

namespace lookout::apiserver {
namespace {

using namespace std::chrono_literals;

constexpr const char* kWatch = "/api/v1/namespaces/default/configmaps?watch=1";

/// Room for a few thousand connections, whose two ends are both in this process.
void raise_descriptor_limit(rlim_t wanted) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, wanted));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/// A connection with a watch on it, read without waiting.
class RawWatch : public base::Pinned {
 public:
  /// `receive_buffer`: the kernel's buffer size for a client that does not read; 0: the default.
  RawWatch(std::uint16_t port, const std::string& target, int receive_buffer = 0)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd_ < 0 || connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::system_error(errno, std::generic_category(), "connect");
    const std::string request = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    if (send(fd_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      throw std::system_error(errno, std::generic_category(), "send");
    fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  ~RawWatch() { close(fd_); }

  int fd() const { return fd_; }
  /// The body so far.
  const std::string& body() const { return body_; }
  std::size_t events() const { return events_; }
  /// Whether the body or the connection has ended.
  bool complete() const { return complete_; }
  bool ended() const { return ended_ || complete_; }

  /// Reads the available data.
  void read_some() {
    char buffer[65536];
    for (;;) {
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (n <= 0) {
        ended_ = true;
        break;
      }
      input_.append(buffer, static_cast<std::size_t>(n));
      if (static_cast<std::size_t>(n) < sizeof buffer) break;
    }
    take_input();
  }

 private:
  void take_input() {
    if (!in_body_) {
      const std::size_t end = input_.find("\r\n\r\n");
      if (end == std::string::npos) return;
      EXPECT_TRUE(input_.starts_with("HTTP/1.1 200 OK\r\n")) << input_.substr(0, end);
      input_.erase(0, end + 4);
      in_body_ = true;
    }
    std::size_t at = 0;
    for (;;) {
      const std::size_t line = input_.find("\r\n", at);
      if (line == std::string::npos) break;
      std::size_t size = 0;
      std::from_chars(input_.data() + at, input_.data() + line, size, 16);
      if (input_.size() < line + 2 + size + 2) break;
      const std::string_view chunk(input_.data() + line + 2, size);
      events_ += static_cast<std::size_t>(std::count(chunk.begin(), chunk.end(), '\n'));
      body_ += chunk;
      at = line + 2 + size + 2;
      if (size == 0) complete_ = true;
    }
    input_.erase(0, at);
  }

  int fd_;
  std::string input_;
  std::string body_;
  std::size_t events_ = 0;
  bool in_body_ = false;
  bool complete_ = false;
  bool ended_ = false;
};

using Watches = std::vector<std::unique_ptr<RawWatch>>;

/// Reads from all until each is done; false on timeout.
template <class Done>
bool read_all(Watches& watches, Done done) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::size_t waiting = 0;
  for (std::size_t i = 0; i < watches.size(); ++i) {
    watches[i]->read_some();
    if (done(*watches[i])) continue;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    epoll_ctl(epoll, EPOLL_CTL_ADD, watches[i]->fd(), &event);
    ++waiting;
  }
  epoll_event events[256];
  while (waiting > 0) {
    const int n = epoll_wait(epoll, events, 256, 60'000);
    if (n == 0) break;
    for (int i = 0; i < n; ++i) {
      RawWatch& watch = *watches[events[i].data.u64];
      watch.read_some();
      if (!done(watch) && !watch.ended()) continue;
      epoll_ctl(epoll, EPOLL_CTL_DEL, watch.fd(), nullptr);
      --waiting;
    }
  }
  close(epoll);
  return std::all_of(watches.begin(), watches.end(), [&](const auto& w) { return done(*w); });
}

/// Waits until one watch has this many events.
bool read_until(RawWatch& watch, std::size_t events) {
  while (watch.events() < events) {
    pollfd poll_fd{watch.fd(), POLLIN, 0};
    if (poll(&poll_fd, 1, 60'000) <= 0) return false;
    watch.read_some();
    if (watch.ended()) return watch.events() >= events;
  }
  return true;
}

class ManyWatches : public testing::Test {
 protected:
  void start(ServerOptions options = {}) { server_ = std::make_unique<Server>(std::move(options)); }

  std::string version() const {
    const HttpAnswer answer = http(server_->port(), "GET", kConfigMapsPath);
    return std::string(api::Object::parse(answer.body).resource_version());
  }
  std::string from_now() const { return kWatch + ("&resourceVersion=" + version()); }
  Watches open(std::size_t count, const std::string& target, int receive_buffer = 0) const {
    Watches watches;
    for (std::size_t i = 0; i < count; ++i)
      watches.push_back(std::make_unique<RawWatch>(server_->port(), target, receive_buffer));
    return watches;
  }
  bool have(std::int64_t watches) const {
    return test::eventually([&] { return server_->stats().watches == watches; });
  }

  std::unique_ptr<Server> server_;
};

TEST_F(ManyWatches, ReceiveTheSameChangesOnAFewThreads) {
  constexpr std::size_t kWatches = test::kSanitized ? 500 : 2000;
  constexpr std::size_t kChanges = 50;
  raise_descriptor_limit(2 * kWatches + 200);
  start();
  HttpClient writer(server_->port());
  const std::string target = from_now();
  const std::size_t threads = test::thread_count();
  Watches watches = open(kWatches, target);
  ASSERT_TRUE(have(kWatches));
  EXPECT_EQ(test::thread_count(), threads);

  std::vector<std::string> expected;
  for (std::size_t i = 0; i < kChanges; ++i) {
    const std::string name = "c" + std::to_string(i % 10);
    const std::string path = kConfigMapsPath + ("/" + name);
    const std::string value = std::to_string(i);
    int code = 0;
    if (i % 10 == i) {
      code = writer.request("POST", kConfigMapsPath, config_map_text(name, value)).code;
      expected.push_back("ADDED " + name + " " + value);
    } else if (i < kChanges - 10) {
      code = writer.request("PUT", path, config_map_text(name, value)).code;
      expected.push_back("MODIFIED " + name + " " + value);
    } else {
      code = writer.request("DELETE", path).code;
      expected.push_back("DELETED " + name + " " + std::to_string(i - 10));
    }
    ASSERT_LT(code, 300);
  }
  ASSERT_TRUE(read_all(watches, [](const RawWatch& w) { return w.events() >= kChanges; }));
  EXPECT_EQ(test::thread_count(), threads);

  std::vector<std::string> seen;
  for (const auto& line : test::lines(watches[0]->body())) {
    if (line.empty()) continue;
    const api::Object event = api::Object::parse(line);
    seen.push_back(std::string(event["type"].as_string()) + " " +
                   std::string(event["object"]["metadata"]["name"].as_string()) + " " +
                   std::string(event["object"]["data"]["key"].as_string()));
  }
  EXPECT_EQ(seen, expected);
  std::size_t different = 0;
  for (const auto& watch : watches) {
    if (watch->body() != watches[0]->body()) ++different;
  }
  EXPECT_EQ(different, 0u);
  // Each change was encoded once for all watches, or twice when two threads started at the same
  // time.
  EXPECT_LE(server_->stats().events_encoded, kChanges * 2);
  EXPECT_EQ(server_->stats().slow_watchers, 0u);

  watches.clear();
  EXPECT_TRUE(have(0));
}

TEST_F(ManyWatches, UnreadWatchesEndWhenTheirChangesExpire) {
  ServerOptions options;
  options.history = 40;
  start(std::move(options));
  HttpClient writer(server_->port());
  const std::string large(100'000, 'x');
  ASSERT_EQ(writer.request("POST", kConfigMapsPath, config_map_text("a", large)).code, 201);
  const std::string target = from_now();
  RawWatch reader(server_->port(), target);
  Watches stuck = open(20, target, 4096);
  ASSERT_TRUE(have(21));

  constexpr std::size_t kChanges = 300;
  const std::size_t before = test::resident_bytes();
  for (std::size_t i = 0; i < kChanges; ++i) {
    const std::string next = config_map_text("a", large + std::to_string(i));
    ASSERT_EQ(writer.request("PUT", kConfigMapsPath + std::string("/a"), next).code, 200);
    // A reader receives each change, regardless of the others.
    ASSERT_TRUE(read_until(reader, i + 1)) << i;
  }
  EXPECT_TRUE(have(1));
  // The reader's copy of the 300 changes is 30 MB. A copy for each of the 20 would take 600 MB more.
  if (!test::kSanitized) {
    EXPECT_LT(test::resident_bytes(), before + (150u << 20));
  }
  // The clients notice it when they read: by the end of the connection, or by an event, if the
  // kernel had buffered all earlier data.
  EXPECT_TRUE(read_all(stuck, [](const RawWatch& w) { return w.ended(); }));
  std::size_t cut_off = 0;
  for (const auto& watch : stuck) {
    EXPECT_LT(watch->events(), kChanges);
    if (!watch->complete()) {
      ++cut_off;
      continue;
    }
    const auto lines = test::lines(watch->body());
    EXPECT_EQ(lookout::test::held(api::Object::parse(lines.back()))["object"]["code"].as_int(),
              410);
  }
  EXPECT_EQ(server_->stats().slow_watchers, cut_off);
}

TEST_F(ManyWatches, UnreadWatchesEndAfterATime) {
  ServerOptions options;
  options.write_timeout = 1s;
  start(std::move(options));
  HttpClient writer(server_->port());
  const std::string large(1'000'000, 'x');
  const std::string target = from_now();
  RawWatch reader(server_->port(), target);
  RawWatch stuck(server_->port(), target, 4096);
  ASSERT_TRUE(have(2));
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(
        writer.request("POST", kConfigMapsPath, config_map_text("c" + std::to_string(i), large))
            .code,
        201);
    ASSERT_TRUE(read_until(reader, i + 1));
  }
  EXPECT_TRUE(have(1));
  EXPECT_EQ(server_->stats().slow_watchers, 1u);
  ASSERT_EQ(writer.request("POST", kConfigMapsPath, config_map_text("last", "x")).code, 201);
  EXPECT_TRUE(read_until(reader, 11));
}

// The initial state is encoded for each watch, so only a little of it may be buffered per watch.
TEST_F(ManyWatches, UnreadInitialStatesTakeLittleMemory) {
  start();
  HttpClient writer(server_->port());
  const std::string large(200'000, 'x');
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(
        writer.request("POST", kConfigMapsPath, config_map_text("c" + std::to_string(i), large))
            .code,
        201);
  }
  const std::size_t before = test::resident_bytes();
  Watches stuck = open(40, kWatch, 4096);
  ASSERT_TRUE(have(40));
  // Each watch has sent at least one event, and waits for its client.
  ASSERT_TRUE(test::eventually([&] { return server_->stats().events_sent >= stuck.size(); }));
  RawWatch reader(server_->port(), kWatch);
  EXPECT_TRUE(read_until(reader, 100));
  // The state is 20 MB: one copy is the reader's, 40 more would be 800 MB.
  if (!test::kSanitized) {
    EXPECT_LT(test::resident_bytes(), before + (150u << 20));
  }
}

TEST_F(ManyWatches, EndAtTheirTimeout) {
  start();
  Watches watches = open(100, from_now() + "&timeoutSeconds=1");
  EXPECT_TRUE(read_all(watches, [](const RawWatch& w) { return w.complete(); }));
  EXPECT_TRUE(have(0));
}

TEST_F(ManyWatches, EndWithTheServerAndReleaseEverything) {
  const std::size_t threads = test::thread_count();
  const std::size_t descriptors = test::open_descriptors();
  start();
  ASSERT_EQ(http(server_->port(), "POST", kConfigMapsPath, config_map_text("a", "x")).code, 201);
  Watches watches = open(200, kWatch);
  Watches stuck = open(5, kWatch, 4096);
  for (auto& watch : watches) ASSERT_TRUE(read_until(*watch, 1));
  ASSERT_TRUE(have(205));
  server_->stop();
  EXPECT_EQ(server_->stats().connections, 0u);
  EXPECT_EQ(server_->stats().watches, 0);
  // All of them end properly.
  EXPECT_TRUE(read_all(watches, [](const RawWatch& w) { return w.complete(); }));
  EXPECT_EQ(test::thread_count(), threads);
  watches.clear();
  stuck.clear();
  server_.reset();
  EXPECT_EQ(test::open_descriptors(), descriptors);
}

TEST_F(ManyWatches, AStopDoesNotWaitForUnreadWatches) {
  start();
  HttpClient writer(server_->port());
  const std::string large(1'000'000, 'x');
  Watches stuck = open(5, from_now(), 4096);
  ASSERT_TRUE(have(5));
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(
        writer.request("POST", kConfigMapsPath, config_map_text("c" + std::to_string(i), large))
            .code,
        201);
  }
  server_->stop(100ms);
  EXPECT_EQ(server_->stats().watches, 0);
  EXPECT_EQ(server_->stats().connections, 0u);
}

}  // namespace
}  // namespace lookout::apiserver
