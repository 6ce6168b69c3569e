// The storage benchmark: a server on etcd in another process, watchers and writers over HTTP.
#include <fmt/format.h>
#include <rapidjson/document.h>

#include <atomic>
#include <boost/algorithm/string/join.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include "bench/load/objects.h"
#include "cmd/bench/child_program.h"
#include "cmd/bench/jobs.h"
#include "cmd/bench/lag_histogram.h"
#include "cmd/bench/usage.h"
#include "cmd/programs.h"
#include "cmd/say.h"
#include "cmd/scratch_folder.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::use_awaitable;
using asio::ip::tcp;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = 256u << 10;
constexpr std::size_t kStampDigits = lookout::bench::marker::kSent.size();
/// The time limit for the last write to reach all watchers.
constexpr std::chrono::seconds kLongestDelay{30};

std::int64_t wall_clock_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// etcd, unless a running one is given, and the API server on it.
class Servers {
 public:
  explicit Servers(const JobOptions& options) {
    std::vector<std::string> endpoints = options.etcd_endpoints;
    if (endpoints.empty()) {
      endpoints = {fmt::format("http://127.0.0.1:{}", free_port())};
      const std::string peer = fmt::format("http://127.0.0.1:{}", free_port());
      etcd_.emplace(
          std::vector<std::string>{"etcd", "--data-dir", folder_.file("etcd"),
                                   "--listen-client-urls", endpoints[0], "--advertise-client-urls",
                                   endpoints[0], "--listen-peer-urls", peer,
                                   "--initial-advertise-peer-urls", peer, "--initial-cluster",
                                   "default=" + peer, "--log-level", "error"},
          folder_.file("etcd.log"));
    }
    std::vector<std::string> command = {program_path("lookout"),
                                        "serve",
                                        "--listen",
                                        "127.0.0.1:0",
                                        "--storage",
                                        "etcd",
                                        "--etcd-endpoints",
                                        boost::algorithm::join(endpoints, ","),
                                        "--etcd-prefix",
                                        fmt::format("/lookout-bench-{}", wall_clock_us())};
    server_.emplace(command, folder_.file("server.log"));
    wait_until_it_serves();
  }

  const std::string& url() const { return url_; }
  std::uint16_t port() const { return port_; }
  ChildProgram& server() { return *server_; }
  /// Null if a running etcd was given.
  ChildProgram* etcd() { return etcd_ ? &*etcd_ : nullptr; }

 private:
  void wait_until_it_serves() {
    for (;;) {
      url_ = served_url(server_->output());
      if (!url_.empty()) {
        const char* const end = url_.data() + url_.size();
        std::from_chars(url_.data() + url_.rfind(':') + 1, end, port_);
        return;
      }
      if (etcd_ && !etcd_->running())
        throw Error("etcd has exited; use --etcd-endpoints for a running one: " + etcd_->output());
      if (!server_->running()) throw Error("the server has exited: " + server_->output());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const ScratchFolder folder_;
  std::optional<ChildProgram> etcd_;
  std::optional<ChildProgram> server_;
  std::string url_;
  std::uint16_t port_ = 0;
};

/// A connection that reads a watch and only searches for the time stamps of events.
class Watcher {
 public:
  Watcher(asio::io_context& context, std::uint16_t port) : socket_(context) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
    socket_.set_option(tcp::no_delay(true));
  }

  void begin(const std::string& target) {
    const std::string request = fmt::format(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n", target);
    asio::write(socket_, asio::buffer(request));
    // The response head; there are no events yet.
    const std::size_t size = socket_.read_some(asio::buffer(buffer_));
    if (std::string_view(buffer_.data(), size).find(" 200 ") == std::string_view::npos)
      throw Error(fmt::format("a watch was refused: {}", std::string_view(buffer_.data(), size)));
  }

  asio::awaitable<void> follow(LagHistogram& lags, std::atomic<std::uint64_t>& events) {
    std::size_t kept = 0;
    for (;;) {
      const auto [error, size] = co_await socket_.async_read_some(
          asio::buffer(buffer_.data() + kept, buffer_.size() - kept),
          asio::as_tuple(use_awaitable));
      if (error) co_return;
      const std::int64_t now = wall_clock_us();
      const std::string_view text(buffer_.data(), kept + size);
      std::size_t read = 0;
      std::uint64_t found = 0;
      for (;;) {
        const void* at =
            memmem(text.data() + read, text.size() - read, stamp_.data(), stamp_.size());
        if (at == nullptr) break;
        const char* digits = static_cast<const char*>(at) + stamp_.size();
        if (digits + kStampDigits > text.data() + text.size()) break;
        std::int64_t sent = 0;
        std::from_chars(digits, digits + kStampDigits, sent);
        lags.add(now - sent);
        ++found;
        read = static_cast<std::size_t>(digits - text.data()) + kStampDigits;
      }
      events.fetch_add(found, std::memory_order_relaxed);
      // A stamp may be split between two reads.
      kept = std::min(text.size() - read, stamp_.size() + kStampDigits - 1);
      std::memmove(buffer_.data(), text.data() + text.size() - kept, kept);
    }
  }

  void close() { socket_.close(); }

 private:
  const std::string stamp_ = fmt::format(R"("{}":")", lookout::bench::kSentAnnotation);

  tcp::socket socket_;
  std::vector<char> buffer_ = std::vector<char>(kReadBytes);
};

/// An object that is written repeatedly, with a new stamp each time.
struct Written {
  std::string target;
  std::string body;
  std::size_t stamp = 0;  // its position in the body
};

std::vector<Written> create_objects(const rest::Client& client,
                                    const lookout::bench::ObjectType& type,
                                    const JobOptions& options) {
  const std::string ns(lookout::bench::marker::kNamespace);
  const std::string_view version = type.group_version;
  const std::size_t slash = version.find('/');
  const bool core = slash == std::string_view::npos;
  const api::Resource resource(std::string(core ? "" : version.substr(0, slash)),
                               std::string(core ? version : version.substr(slash + 1)),
                               std::string(type.kind), std::string(type.plural), true);
  client.resource(api::Resource("", "v1", "Namespace", "namespaces", false))
      .create(api::Object::parse(fmt::format(R"({{"metadata":{{"name":"{}"}}}})", ns)));
  const auto objects = client.resource(resource, ns);
  std::vector<Written> out;
  for (std::size_t i = 0; i < options.objects; ++i) {
    std::string json = type.json(i % lookout::bench::kVariants, options.object_bytes);
    const std::string number = fmt::format("{:0>10}", i);
    for (std::size_t at = 0;
         (at = json.find(lookout::bench::marker::kNumber, at)) != std::string::npos;)
      json.replace(at, number.size(), number);
    rapidjson::Document wanted = api::Object::parse(json).to_document();
    auto& metadata = wanted["metadata"];
    for (const char* field : {"resourceVersion", "uid", "creationTimestamp", "managedFields",
                              "generation", "ownerReferences"})
      metadata.RemoveMember(field);
    const api::Object created = objects.create(api::Object::from(wanted));
    rapidjson::Document kept = created.to_document();
    kept["metadata"].RemoveMember("resourceVersion");
    Written written;
    written.body = api::Object::from(kept).to_json();
    written.stamp = written.body.find(lookout::bench::marker::kSent);
    if (written.stamp == std::string::npos) throw Error("an object came back without its stamp");
    written.target = fmt::format("{}/namespaces/{}/{}/{}", resource.root_path(), ns, type.plural,
                                 created.name());
    out.push_back(std::move(written));
  }
  return out;
}

/// Writes at a given rate over a few connections, each with its own objects.
class Writers {
 public:
  Writers(std::uint16_t port, std::vector<Written> objects, const JobOptions& options,
          std::stop_token stop)
      : port_(port), objects_(std::move(objects)), options_(options), stop_(std::move(stop)) {}

  void run() {
    begin_ = Steady::now();
    end_ = begin_ + options_.load_time;
    const std::size_t connections = std::min(options_.writers, objects_.size());
    for (std::size_t i = 0; i < connections; ++i) {
      asio::co_spawn(context_, write(i, connections), [this](const std::exception_ptr& failure) {
        if (failure && !failure_) failure_ = failure;
      });
    }
    context_.run();
    taken_ = Steady::now() - begin_;
    if (failure_) std::rethrow_exception(failure_);
  }

  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t refused() const { return refused_; }
  double seconds() const { return std::chrono::duration<double>(taken_).count(); }
  const LagHistogram& times() const { return times_; }

 private:
  asio::awaitable<void> write(std::size_t first, std::size_t step) {
    tcp::socket socket(context_);
    co_await socket.async_connect({asio::ip::make_address("127.0.0.1"), port_}, use_awaitable);
    socket.set_option(tcp::no_delay(true));
    asio::steady_timer timer(context_);
    beast::flat_buffer buffer;
    for (std::size_t at = first;; at = at + step < objects_.size() ? at + step : first) {
      const auto due =
          begin_ + std::chrono::nanoseconds(
                       options_.rate == 0 ? 0 : next_++ * 1'000'000'000ull / options_.rate);
      if (due >= end_ || Steady::now() >= end_ || stop_.stop_requested()) co_return;
      if (due > Steady::now()) {
        timer.expires_at(due);
        co_await timer.async_wait(use_awaitable);
      }
      Written& object = objects_[at];
      const std::int64_t sent = wall_clock_us();
      fmt::format_to(object.body.begin() + static_cast<std::ptrdiff_t>(object.stamp), "{:0>{}}",
                     sent, kStampDigits);
      const std::string request = fmt::format(
          "PUT {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
          "Content-Length: {}\r\n\r\n{}",
          object.target, object.body.size(), object.body);
      co_await asio::async_write(socket, asio::buffer(request), use_awaitable);
      beast::http::response<beast::http::string_body> response;
      co_await beast::http::async_read(socket, buffer, response, use_awaitable);
      times_.add(wall_clock_us() - sent);
      if (response.result_int() == 200) {
        ++acknowledged_;
      } else {
        if (refused_++ == 0) say("a write was refused: {}\n", response.body());
      }
    }
  }

  const std::uint16_t port_;
  std::vector<Written> objects_;
  const JobOptions& options_;
  const std::stop_token stop_;
  asio::io_context context_{1};
  Steady::time_point begin_;
  Steady::time_point end_;
  Steady::duration taken_{};
  std::uint64_t next_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t refused_ = 0;
  LagHistogram times_;
  std::exception_ptr failure_;
};

}  // namespace

Result storage_job(const JobOptions& options, std::stop_token stop) {
  const lookout::bench::ObjectType* type = lookout::bench::object_type(options.resource);
  if (type == nullptr || !type->namespaced)
    throw Error(fmt::format("there are no objects in namespaces called {}", options.resource));
  Servers servers(options);
  rest::Config config;
  config.server = servers.url();
  const rest::Client client(config);
  std::vector<Written> objects = create_objects(client, *type, options);
  const std::string collection = objects.at(0).target.substr(0, objects[0].target.rfind('/'));
  const std::string present =
      std::string(api::Object::parse(client.get_raw(collection + "?limit=1")).resource_version());

  asio::io_context reading(1);
  LagHistogram lags;
  std::atomic<std::uint64_t> events{0};
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (std::size_t i = 0; i < options.watchers; ++i) {
    watchers.push_back(std::make_unique<Watcher>(reading, servers.port()));
    watchers.back()->begin(collection + "?watch=1&resourceVersion=" + present);
    asio::co_spawn(reading, watchers.back()->follow(lags, events), asio::detached);
  }
  std::thread reader([&] { reading.run(); });

  // The measurement starts here.
  const Usage before = Usage::now();
  const auto server_before = servers.server().cpu();
  const auto etcd_before = servers.etcd() == nullptr ? server_before * 0 : servers.etcd()->cpu();
  const std::int64_t rss_before = servers.server().status("VmRSS");
  std::atomic<bool> done{false};
  std::int64_t threads = 0;
  std::thread looking([&] {
    while (!done) {
      threads = std::max(threads, servers.server().status("Threads"));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  std::exception_ptr failure;
  Writers writers(servers.port(), std::move(objects), options, stop);
  try {
    writers.run();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::uint64_t wanted = writers.acknowledged() * options.watchers;
  const auto patience = Steady::now() + kLongestDelay;
  while (!failure && events < wanted && Steady::now() < patience && !stop.stop_requested())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  done = true;
  looking.join();
  asio::post(reading, [&] {
    for (const auto& watcher : watchers) watcher->close();
  });
  reader.join();
  if (failure) std::rethrow_exception(failure);

  Result result;
  result.set("job", "storage");
  result.set("resource", options.resource);
  result.set("objects", static_cast<std::int64_t>(options.objects));
  result.set("object_bytes", static_cast<std::int64_t>(options.object_bytes));
  result.set("watchers", static_cast<std::int64_t>(options.watchers));
  result.set("watchers_over", "http");
  result.set("writes", static_cast<std::int64_t>(writers.acknowledged()));
  result.set("writes_refused", static_cast<std::int64_t>(writers.refused()));
  result.set("rate_wanted", static_cast<std::int64_t>(options.rate));
  result.set("rate", static_cast<double>(writers.acknowledged()) / writers.seconds());
  result.set("write_p50_ms", writers.times().quantile_ms(0.5));
  result.set("write_p99_ms", writers.times().quantile_ms(0.99));
  result.set("write_max_ms", writers.times().max_ms());
  result.set("events", static_cast<std::int64_t>(events.load()));
  result.set("events_missing",
             static_cast<std::int64_t>(wanted) - static_cast<std::int64_t>(events.load()));
  result.set("lag_p50_ms", lags.quantile_ms(0.5));
  result.set("lag_p99_ms", lags.quantile_ms(0.99));
  result.set("lag_max_ms", lags.max_ms());
  result.set("server_rss_before", rss_before);
  result.set("server_vm_hwm", servers.server().status("VmHWM"));
  result.set("server_threads", threads);
  result.set("server_cpu_s", (servers.server().cpu() - server_before).count());
  if (ChildProgram* etcd = servers.etcd()) {
    result.set("etcd_vm_hwm", etcd->status("VmHWM"));
    result.set("etcd_cpu_s", (etcd->cpu() - etcd_before).count());
  }
  const Usage after = Usage::now();
  result.set("load_cpu_s", after.cpu_seconds_since(before));
  result.set("wall_s", std::chrono::duration<double>(after.wall - before.wall).count());
  return result;
}

}  // namespace lookout::cmd::bench
