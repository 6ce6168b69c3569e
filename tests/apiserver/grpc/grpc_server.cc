#include "tests/apiserver/grpc/grpc_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "apiserver/grpc/call.h"

namespace lookout::test {

using apiserver::grpc::Headers;
using apiserver::grpc::Http2Error;
using apiserver::grpc::Http2Session;
using apiserver::grpc::kMessageHead;
using apiserver::grpc::StreamId;

class GrpcConnection {
 public:
  GrpcConnection(GrpcServer& server, int fd)
      : server_(server),
        fd_(fd),
        session_(Http2Session::Role::kServer, callbacks(), server.options_.max_streams) {
    thread_ = std::thread([this] { run(); });
  }
  ~GrpcConnection() {
    {
      const std::lock_guard lock(mutex_);
      ::shutdown(fd_, SHUT_RDWR);
    }
    thread_.join();
    for (std::thread& thread : scripts_) thread.join();
    ::close(fd_);
  }

  /// Runs a function on the session, and sends the output.
  template <class F>
  void with_session(F f) {
    const std::lock_guard lock(mutex_);
    f(session_);
    write();
  }
  /// Call with the mutex held. The reader closes the socket, which sends a RST.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    resetting_ = true;
    ::shutdown(fd_, SHUT_RD);
  }

 private:
  friend class GrpcCall;

  Http2Session::Callbacks callbacks() {
    Http2Session::Callbacks out;
    out.headers = [this](StreamId id, Headers headers, bool end) {
      auto& call = calls_[id];
      if (call == nullptr) {
        call = std::make_unique<GrpcCall>(*this, id, std::move(headers));
        ++server_.open_calls_;
        scripts_.emplace_back([this, made = call.get()] {
          server_.script_(*made);
          made->end();
        });
      }
      if (end) call->client_ended_ = true;
    };
    out.data = [this](StreamId id, std::string_view bytes, bool end) {
      session_.consumed(id, bytes.size());
      GrpcCall& call = *calls_.at(id);
      call.body_.append(bytes);
      take_messages(call);
      call.client_ended_ = call.client_ended_ || end;
    };
    out.reset = [this](StreamId id, Http2Error) { leave(*calls_.at(id)); };
    return out;
  }

  static void take_messages(GrpcCall& call) {
    while (call.body_.size() >= kMessageHead) {
      std::size_t size = 0;
      for (std::size_t i = 1; i < kMessageHead; ++i)
        size = size << 8 | static_cast<unsigned char>(call.body_[i]);
      if (call.body_.size() < kMessageHead + size) return;
      call.messages_.push_back(call.body_.substr(kMessageHead, size));
      call.body_.erase(0, kMessageHead + size);
    }
  }

  void leave(GrpcCall& call) {
    if (!std::exchange(call.gone_, true)) --server_.open_calls_;
  }

  void write() {
    const std::string out = session_.take_output();
    std::size_t at = 0;
    while (at < out.size()) {
      const ssize_t n = ::send(fd_, out.data() + at, out.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }

  void run() {
    with_session([](Http2Session&) {});
    std::array<char, 16384> buffer;
    for (;;) {
      const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
      const std::lock_guard lock(mutex_);
      const bool good = n > 0 && session_.feed({buffer.data(), static_cast<std::size_t>(n)});
      write();
      if (!good) break;
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    for (auto& [id, call] : calls_) leave(*call);
    changed_.notify_all();
    if (!resetting_) return;
    ::close(fd_);
    fd_ = -1;
  }

  GrpcServer& server_;
  int fd_;
  bool resetting_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  Http2Session session_;  // guarded by mutex_, as are those below
  std::map<StreamId, std::unique_ptr<GrpcCall>> calls_;
  std::vector<std::thread> scripts_;
  std::thread thread_;
};

std::string GrpcCall::header(std::string_view name) const {
  return std::string(apiserver::grpc::find_header(headers_, name));
}

std::optional<std::string> GrpcCall::message() {
  std::unique_lock lock(connection_.mutex_);
  connection_.changed_.wait(lock, [&] { return !messages_.empty() || client_ended_ || gone_; });
  if (messages_.empty()) return std::nullopt;
  std::string out = std::move(messages_.front());
  messages_.pop_front();
  return out;
}

void GrpcCall::begin_answer() {
  if (std::exchange(answered_, true)) return;
  connection_.session_.respond(id_, {{":status", "200"}, {"content-type", "application/grpc"}},
                               false);
}

bool GrpcCall::send(std::string_view message) { return send_raw(apiserver::grpc::framed(message)); }

bool GrpcCall::send_raw(std::string_view bytes) {
  std::unique_lock lock(connection_.mutex_);
  if (gone_) return false;
  begin_answer();
  connection_.session_.send(id_, bytes, false);
  connection_.write();
  written_ += bytes.size();
  const auto done = [&] { return gone_ || connection_.session_.unsent(id_) == 0; };
  while (!connection_.changed_.wait_for(lock, std::chrono::milliseconds(100), done))
    stalled_ = true;
  stalled_ = false;
  return !gone_;
}

void GrpcCall::end(int code, std::string_view message) {
  const std::lock_guard lock(connection_.mutex_);
  if (gone_ || std::exchange(ended_, true)) return;
  Headers trailers;
  if (!answered_) trailers = {{":status", "200"}, {"content-type", "application/grpc"}};
  trailers.emplace_back("grpc-status", std::to_string(code));
  if (!message.empty()) trailers.emplace_back("grpc-message", std::string(message));
  connection_.session_.respond(id_, trailers, true);
  connection_.write();
  connection_.leave(*this);
}

void GrpcCall::end_body() {
  const std::lock_guard lock(connection_.mutex_);
  begin_answer();
  ended_ = true;
  connection_.session_.send(id_, {}, true);
  connection_.write();
  connection_.leave(*this);
}

void GrpcCall::answer(const Headers& headers) {
  const std::lock_guard lock(connection_.mutex_);
  ended_ = true;
  connection_.session_.respond(id_, headers, true);
  connection_.write();
  connection_.leave(*this);
}

void GrpcCall::reset(Http2Error why) {
  const std::lock_guard lock(connection_.mutex_);
  ended_ = true;
  connection_.session_.reset(id_, why);
  connection_.write();
  connection_.leave(*this);
}

void GrpcCall::reset_connection() {
  const std::lock_guard lock(connection_.mutex_);
  ended_ = true;
  connection_.reset();
}

void GrpcCall::go_away(StreamId last) {
  connection_.with_session([&](Http2Session& session) { session.go_away(last); });
}

void GrpcCall::wait_for_end() {
  std::unique_lock lock(connection_.mutex_);
  connection_.changed_.wait(lock, [&] { return gone_; });
}

GrpcServer::GrpcServer(Script script, Options options)
    : script_(std::move(script)), options_(options) {
  listen_fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listen_fd_, 16) != 0 ||
      ::getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("cannot listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

GrpcServer::~GrpcServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::shutdown(listen_fd_, SHUT_RDWR);
  acceptor_.join();
  connections_.clear();
  ::close(listen_fd_);
}

std::string GrpcServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

void GrpcServer::accept_loop() {
  for (;;) {
    const int fd = ::accept(listen_fd_, nullptr, nullptr);
    const std::lock_guard lock(mutex_);
    if (stopping_ || fd < 0) {
      if (fd >= 0) ::close(fd);
      return;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ++accepted_;
    connections_.push_back(std::make_unique<GrpcConnection>(*this, fd));
  }
}

}  // namespace lookout::test
