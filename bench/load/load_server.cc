#include "bench/load/load_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "bench/load/connection.h"
#include "bench/load/load.h"
#include "bench/load/protobuf_wire.h"
#include "lookout/api/error.h"

namespace lookout::bench {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

/// The number of bytes per write.
constexpr std::size_t kPiece = 256u << 10;

std::uint64_t now_in_microseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<microseconds>(now).count());
}

/// A body of unknown length, in chunks.
class Body {
 public:
  Body(Connection& connection, std::string_view content_type) : connection_(connection) {
    connection.write(fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n", content_type));
    buffer_.reserve(kPiece + (64u << 10));
  }

  std::string& buffer() { return buffer_; }
  bool flush_if_full() { return buffer_.size() < kPiece || flush(); }
  bool flush() {
    if (buffer_.empty()) return connection_.good();
    // The chunk's head and tail are sent with the same call.
    chunk_.clear();
    fmt::format_to(std::back_inserter(chunk_), "{:x}\r\n", buffer_.size());
    chunk_ += buffer_;
    chunk_ += "\r\n";
    buffer_.clear();
    return connection_.write(chunk_);
  }
  bool end() { return flush() && connection_.write("0\r\n\r\n"); }

 private:
  Connection& connection_;
  std::string buffer_;
  std::string chunk_;
};

/// Writes the response to a request.
class Answer {
 public:
  Answer(Connection& connection, const LoadRequest& request, const Corpus& corpus)
      : connection_(connection),
        request_(request),
        protobuf_(request.protobuf && !corpus.protobuf.empty()),
        stamps_(protobuf_ ? corpus.protobuf : corpus.json) {
    if (!request.ns.empty()) {
      // Namespaces are numbered: ns-0007.
      const auto digits = request.ns.substr(std::min<std::size_t>(3, request.ns.size()));
      ns_ = std::strtoull(digits.c_str(), nullptr, 10) % 10000;
    }
  }

  bool write() { return request_.watch ? watch() : list(); }

 private:
  const Stamp& stamp(std::size_t number) const { return stamps_[number % stamps_.size()]; }

  Stamp::Values values(std::size_t number, std::uint64_t version) const {
    return {.number = number,
            .version = version,
            .ns = request_.ns.empty() ? number % 100 : ns_,
            .sent = now_};
  }

  /// The versions of objects that were created one after the other.
  std::uint64_t version_of(std::size_t number) const { return 1000 + number; }
  std::uint64_t list_version() const { return version_of(request_.load.count); }

  bool list() {
    const std::size_t begin = std::min(request_.offset, request_.load.count);
    const std::size_t end = request_.limit == 0
                                ? request_.load.count
                                : std::min(request_.load.count, begin + request_.limit);
    const std::string next = end < request_.load.count ? std::to_string(end) : "";
    now_ = now_in_microseconds();
    return protobuf_ ? protobuf_list(begin, end, next) : json_list(begin, end, next);
  }

  bool json_list(std::size_t begin, std::size_t end, const std::string& next) {
    Body body(connection_, "application/json");
    body.buffer() += fmt::format(
        R"({{"kind":"{}List","apiVersion":"{}","metadata":{{"resourceVersion":"{}"{}}},"items":[)",
        request_.type->kind, request_.type->group_version, list_version(),
        next.empty() ? "" : fmt::format(R"(,"continue":"{}")", next));
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin) body.buffer() += ',';
      stamp(i).append(body.buffer(), values(i, version_of(i)));
      if (!body.flush_if_full()) return false;
    }
    body.buffer() += "]}";
    return body.end();
  }

  bool protobuf_list(std::size_t begin, std::size_t end, const std::string& next) {
    std::string meta;
    append_field(meta, 1, "");
    append_field(meta, 2, std::to_string(list_version()));
    append_field(meta, 3, next);
    std::size_t size = field_size(meta.size());
    for (std::size_t i = begin; i < end; ++i) size += field_size(stamp(i).size());
    Body body(connection_, "application/vnd.kubernetes.protobuf");
    body.buffer() += envelope_head(request_.type->group_version,
                                   fmt::format("{}List", request_.type->kind), size);
    append_field(body.buffer(), 1, meta);
    for (std::size_t i = begin; i < end; ++i) {
      append_field_head(body.buffer(), 2, stamp(i).size());
      stamp(i).append(body.buffer(), values(i, version_of(i)));
      if (!body.flush_if_full()) return false;
    }
    body.buffer() += kEnvelopeTail;
    return body.end();
  }

  bool watch() {
    Body body(connection_,
              protobuf_ ? "application/vnd.kubernetes.protobuf;stream=watch" : "application/json");
    if (request_.initial_events) {
      now_ = now_in_microseconds();
      for (std::size_t i = 0; i < request_.load.count; ++i) {
        event(body.buffer(), "ADDED", i, version_of(i));
        if (!body.flush_if_full()) return false;
      }
      bookmark(body.buffer(), list_version(), true);
    }
    if (!body.flush()) return false;
    if (request_.load.events > 0 && request_.load.count > 0) {
      if (connection_.wait_gone(std::chrono::milliseconds(request_.load.delay))) return false;
      if (!(request_.load.rate > 0 ? changes_at_rate(body) : changes_flat_out(body))) return false;
    }
    // No further events.
    while (!connection_.wait_gone(std::chrono::seconds(30))) {
      bookmark(body.buffer(), list_version() + request_.load.events, false);
      if (!body.flush()) break;
    }
    return false;
  }

  void change(std::string& out, std::uint64_t n) const {
    // Consecutive events are for objects that are not adjacent in the store.
    event(out, "MODIFIED", n * 7919 % request_.load.count, list_version() + 1 + n);
  }

  bool changes_flat_out(Body& body) {
    for (std::uint64_t n = 0; n < request_.load.events; ++n) {
      now_ = now_in_microseconds();
      change(body.buffer(), n);
      // Flush pieces of the size that an HTTP/2 server would send.
      if (body.buffer().size() >= (32u << 10) && !body.flush()) return false;
    }
    return body.flush();
  }

  bool changes_at_rate(Body& body) {
    const auto begin = steady_clock::now();
    const auto due = [&](std::uint64_t n) {
      return begin + microseconds(n * 1'000'000 / request_.load.rate);
    };
    for (std::uint64_t n = 0; n < request_.load.events;) {
      std::this_thread::sleep_until(due(n));
      now_ = now_in_microseconds();
      const auto now = steady_clock::now();
      do {
        change(body.buffer(), n++);
      } while (n < request_.load.events && due(n) <= now && body.buffer().size() < kPiece);
      if (!body.flush()) return false;
    }
    return true;
  }

  void event(std::string& out, std::string_view type, std::size_t number,
             std::uint64_t version) const {
    const Stamp& object = stamp(number);
    if (protobuf_) {
      const std::string head =
          envelope_head(request_.type->group_version, request_.type->kind, object.size());
      const std::size_t size = head.size() + object.size() + kEnvelopeTail.size();
      frame_head(out, type, size);
      out += head;
      object.append(out, values(number, version));
      out += kEnvelopeTail;
    } else {
      out.append(R"({"type":")").append(type).append(R"(","object":)");
      object.append(out, values(number, version));
      out += "}\n";
    }
  }

  /// The bytes before an object of this size, with its envelope, in a watch.
  static void frame_head(std::string& out, std::string_view type, std::size_t size) {
    const std::size_t frame = field_size(type.size()) + field_size(field_size(size));
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(frame >> shift);
    append_field(out, 1, type);
    append_field_head(out, 2, field_size(size));
    append_field_head(out, 1, size);
  }

  void bookmark(std::string& out, std::uint64_t version, bool ends_initial_events) const {
    constexpr std::string_view kEnd = "k8s.io/initial-events-end";
    if (protobuf_) {
      std::string meta;
      append_field(meta, 6, std::to_string(version));
      if (ends_initial_events) {
        std::string entry;
        append_field(entry, 1, kEnd);
        append_field(entry, 2, "true");
        append_field(meta, 12, entry);
      }
      std::string object;
      append_field(object, 1, meta);
      const std::string head =
          envelope_head(request_.type->group_version, request_.type->kind, object.size());
      frame_head(out, "BOOKMARK", head.size() + object.size() + kEnvelopeTail.size());
      out.append(head).append(object).append(kEnvelopeTail);
    } else {
      out += fmt::format(
          R"({{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}",)"
          R"("metadata":{{"resourceVersion":"{}"{}}}}}}})"
          "\n",
          request_.type->kind, request_.type->group_version, version,
          ends_initial_events ? fmt::format(R"(,"annotations":{{"{}":"true"}})", kEnd) : "");
    }
  }

  Connection& connection_;
  const LoadRequest& request_;
  const bool protobuf_;
  const std::vector<Stamp>& stamps_;
  std::uint64_t ns_ = 0;
  std::uint64_t now_ = 0;
};

/// The value of a header in a request's head, whatever the case of its name.
std::string header(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 2, head.size()));
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    if (strncasecmp(line.data(), name.data(), name.size()) == 0)
      return std::string(line.substr(name.size() + 1));
  }
  return "";
}

bool write_whole(Connection& connection, std::string_view status, std::string_view body) {
  return connection.write(
      fmt::format("HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  status, body.size(), body));
}

bool not_found(Connection& connection) {
  return write_whole(
      connection, "404 Not Found",
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,)"
      R"("message":"the load server has lists and watches only"})");
}

/// The number of responses in each encoding.
struct Answers {
  std::atomic<std::uint64_t> json{0};
  std::atomic<std::uint64_t> protobuf{0};
};

void serve(int fd, SSL_CTX* tls, Corpora& corpora, Answers& answers) {
  Connection connection(fd, tls);
  std::string in;
  while (connection.good()) {
    std::size_t end = in.find("\r\n\r\n");
    if (end == std::string::npos) {
      char piece[8192];
      const std::size_t n = connection.read(piece, sizeof piece);
      in.append(piece, n);
      if (n == 0 || in.size() > (1u << 20)) return;
      continue;
    }
    const std::string head = in.substr(0, end + 2);
    in.erase(0, end + 4);
    std::optional<LoadRequest> request;
    if (head.starts_with("GET ")) {
      const std::string target = head.substr(4, head.find(' ', 4) - 4);
      if (target == "/answers") {
        write_whole(connection, "200 OK",
                    fmt::format(R"({{"json":{},"protobuf":{}}})", answers.json.load(),
                                answers.protobuf.load()));
        continue;
      }
      request = LoadRequest::parse(target, header(head, "Accept"));
    }
    if (!request) {
      if (!not_found(connection)) return;
      continue;
    }
    const auto corpus = corpora.get(*request->type, request->load.bytes, request->protobuf);
    ++(request->protobuf && !corpus->protobuf.empty() ? answers.protobuf : answers.json);
    if (!Answer(connection, *request, *corpus).write()) return;
  }
}

}  // namespace

struct LoadServer::Impl {
  explicit Impl(ProtobufEncoder encoder) : corpora(std::move(encoder)) {}
  ~Impl() {
    if (listening >= 0) close(listening);
    SSL_CTX_free(tls);
  }

  int listening = -1;
  std::uint16_t port = 0;
  SSL_CTX* tls = nullptr;
  Corpora corpora;
  Answers answers;
};

LoadServer::LoadServer(LoadServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options.encoder))) {
  if (!options.cert_file.empty()) {
    impl_->tls = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(impl_->tls, options.cert_file.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(impl_->tls, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1)
      throw Error(fmt::format("no certificate in {} with a key in {}", options.cert_file,
                              options.key_file));
  }
  impl_->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(impl_->listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(options.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (bind(impl_->listening, any, size) != 0 || listen(impl_->listening, 4096) != 0 ||
      getsockname(impl_->listening, any, &size) != 0)
    throw Error(
        fmt::format("cannot listen on 127.0.0.1:{}: {}", options.port, std::strerror(errno)));
  impl_->port = ntohs(address.sin_port);
}

LoadServer::~LoadServer() = default;

std::uint16_t LoadServer::port() const { return impl_->port; }

void LoadServer::run() {
  for (;;) {
    const int fd = accept4(impl_->listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    std::thread([fd, this] {
      try {
        serve(fd, impl_->tls, impl_->corpora, impl_->answers);
      } catch (const std::exception& e) {
        fmt::print(stderr, "load server: {}\n", e.what());
      }
    }).detach();
  }
}

}  // namespace lookout::bench
