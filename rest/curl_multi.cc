#include "rest/curl_multi.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/defer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

namespace lookout::rest::detail {

using boost::asio::posix::stream_descriptor;

/// A libcurl socket that is waited for. libcurl opens and closes it; the descriptor only borrows its
/// number. This is not safe until the socket is connected, because libcurl may close it without a
/// callback: until then, the descriptor has a duplicate.
struct CurlMulti::Socket {
  Socket(const Strand& strand, curl_socket_t number, bool is_connecting)
      : fd(number), descriptor(strand) {
    const int own = is_connecting ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    connecting = own >= 0;
    boost::system::error_code error;
    descriptor.assign(connecting ? own : fd, error);
    if (!error) return;
    if (connecting) ::close(own);
    throw boost::system::system_error(error);
  }
  ~Socket() { leave(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void leave() {
    if (!descriptor.is_open()) return;
    boost::system::error_code ignored;
    if (connecting) {
      descriptor.close(ignored);
    } else {
      descriptor.release();
    }
  }

  const curl_socket_t fd;
  stream_descriptor descriptor;
  bool connecting = false;
  int wanted = 0;  // CURL_POLL_*
  bool reading = false;
  bool writing = false;
};

std::shared_ptr<CurlMulti> CurlMulti::create(Strand strand, Owner owner) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  return std::shared_ptr<CurlMulti>(new CurlMulti(std::move(strand), std::move(owner)));
}

CurlMulti::CurlMulti(Strand strand, Owner owner)
    : strand_(std::move(strand)), owner_(std::move(owner)), timer_(strand_), look_(strand_) {
  open();
}

void CurlMulti::open() {
  multi_ = curl_multi_init();
  if (multi_ == nullptr) throw std::bad_alloc();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlMulti::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlMulti::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
}

CurlMulti::~CurlMulti() { close(); }

void CurlMulti::close() {
  if (multi_ == nullptr) return;
  timer_.cancel();
  look_.cancel();
  due_ = kNever;
  armed_ = kNever;
  curl_multi_cleanup(std::exchange(multi_, nullptr));
  sockets_.clear();
  open_.clear();
}

CURLMcode CurlMulti::add(CURL* easy) {
  if (multi_ == nullptr) return CURLM_BAD_HANDLE;
  const CURLMcode code = curl_multi_add_handle(multi_, easy);
  if (code == CURLM_OK) count_transfers(1);
  if (code != CURLM_OK || !failure_) return code;
  // The timer that would start the transfer could not be set.
  failure_ = nullptr;
  take_out(easy);
  return CURLM_OUT_OF_MEMORY;
}

CURLMcode CurlMulti::start(CURL* easy) {
  // libcurl sets its timer to begin: no call is posted for that.
  const bool posted = std::exchange(posted_, true);
  const CURLMcode code = add(easy);
  posted_ = posted;
  if (code == CURLM_OK) act_if_due();
  return code;
}

void CurlMulti::remove(CURL* easy) {
  if (multi_ == nullptr) return;
  take_out(easy);
  if (!failure_) return;
  // Posted: a caller that removes one transfer does not expect the others to end.
  boost::asio::post(strand_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->begin_anew_if_failed();
  });
}

void CurlMulti::take_out(CURL* easy) {
  curl_multi_remove_handle(multi_, easy);
  count_transfers(-1);
}

/// By default, libcurl keeps four connections per running transfer: between the requests of eight
/// writers, it would close half of their connections.
void CurlMulti::count_transfers(long change) {
  transfers_ += change;
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, transfers_ + owner_.idle_connections);
}

void CurlMulti::resume(CURL* easy) {
  curl_easy_pause(easy, CURLPAUSE_CONT);
  act(CURL_SOCKET_TIMEOUT, 0);
}

void CurlMulti::look_for_held_input() {
  if (multi_ == nullptr || std::exchange(looking_, true)) return;
  look_.expires_after(kMoment);
  look_.async_wait([weak = weak_from_this()](boost::system::error_code) {
    const auto self = weak.lock();
    if (!self) return;
    self->looking_ = false;
    std::vector<curl_socket_t> sockets;
    for (const auto& [fd, socket] : self->sockets_) {
      if ((socket->wanted & CURL_POLL_IN) != 0) sockets.push_back(fd);
    }
    for (const curl_socket_t fd : sockets) self->act(fd, CURL_CSELECT_IN);
  });
}

template <class F>
int CurlMulti::guarded(F f) noexcept {
  try {
    f();
  } catch (...) {
    // Do not return the error to libcurl, whose transfers would then fail without a callback: see
    // begin_anew_if_failed().
    failure_ = std::current_exception();
  }
  return 0;
}

int CurlMulti::on_socket(CURL*, curl_socket_t fd, int what, void* self_pointer, void*) {
  auto* self = static_cast<CurlMulti*>(self_pointer);
  return self->guarded([&] { self->want(fd, what); });
}

void CurlMulti::want(curl_socket_t fd, int what) {
  auto found = sockets_.find(fd);
  if (what == CURL_POLL_REMOVE) {
    if (found == sockets_.end()) return;
    found->second->wanted = 0;
    if (found->second->connecting) {
      forget(fd);
      open_.erase(fd);
      owner_.on_given_up(fd);
      return;
    }
    // The connection is idle, or libcurl will close it with a callback. Keep the wait for the next
    // request.
    if (open_.count(fd) == 0) forget(fd);
    return;
  }
  // libcurl does not read from a socket before it is connected.
  const bool connecting = (what & CURL_POLL_IN) == 0 && open_.count(fd) != 0;
  if (found != sockets_.end() && found->second->connecting && !connecting) {
    forget(fd);
    found = sockets_.end();
  }
  std::shared_ptr<Socket> socket;
  if (found != sockets_.end()) {
    socket = found->second;
  } else {
    socket = std::make_shared<Socket>(strand_, fd, connecting);
    sockets_.emplace(fd, socket);
  }
  socket->wanted = what;
  watch(socket);
}

void CurlMulti::opened(curl_socket_t fd) {
  // libcurl has closed the previous socket of this number without a callback.
  const auto before = sockets_.find(fd);
  const int wanted = before == sockets_.end() ? 0 : before->second->wanted;
  forget(fd);
  guarded([&] {
    open_.insert(fd);
    if (wanted != 0) want(fd, wanted);
  });
}

void CurlMulti::closed(curl_socket_t fd) {
  open_.erase(fd);
  forget(fd);
}

void CurlMulti::forget(curl_socket_t fd) {
  const auto found = sockets_.find(fd);
  if (found == sockets_.end()) return;
  // libcurl may close the socket next, so release the number now, even if waits are pending.
  found->second->leave();
  sockets_.erase(found);
}

void CurlMulti::begin_anew_if_failed() {
  if (!failure_ || multi_ == nullptr) return;
  std::string why = "an unknown failure";
  try {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): as unknown as said above
  }
  owner_.on_failure(why);
  close();
  failure_ = nullptr;
  open();
}

void CurlMulti::watch(const std::shared_ptr<Socket>& socket) {
  if ((socket->wanted & CURL_POLL_IN) != 0 && !socket->reading)
    wait(socket, stream_descriptor::wait_read);
  if ((socket->wanted & CURL_POLL_OUT) != 0 && !socket->writing)
    wait(socket, stream_descriptor::wait_write);
}

void CurlMulti::wait(const std::shared_ptr<Socket>& socket, stream_descriptor::wait_type type) {
  const bool read = type == stream_descriptor::wait_read;
  (read ? socket->reading : socket->writing) = true;
  socket->descriptor.async_wait(
      type, [weak = weak_from_this(), socket, read](boost::system::error_code error) {
        (read ? socket->reading : socket->writing) = false;
        const auto self = weak.lock();
        if (!self || !socket->descriptor.is_open()) return;
        // Do not wait again for an event that is no longer wanted.
        if ((socket->wanted & (read ? CURL_POLL_IN : CURL_POLL_OUT)) == 0) return;
        const int events = error ? CURL_CSELECT_ERR : read ? CURL_CSELECT_IN : CURL_CSELECT_OUT;
        self->act(socket->fd, events);
        if (socket->descriptor.is_open()) self->watch(socket);
      });
}

int CurlMulti::on_timer(CURLM*, long timeout_ms, void* self_pointer) {
  auto* self = static_cast<CurlMulti*>(self_pointer);
  return self->guarded([&] { self->set_timer(timeout_ms); });
}

void CurlMulti::set_timer(long timeout_ms) {
  if (timeout_ms < 0) {
    due_ = kNever;
    return;
  }
  due_ = Clock::now() + std::chrono::milliseconds(timeout_ms);
  if (timeout_ms > 0) {
    if (due_ < armed_) arm();
    return;
  }
  // Posted: libcurl must not be called from its own callback.
  if (std::exchange(posted_, true)) return;
  boost::asio::defer(strand_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->posted_ = false;
    self->act_if_due();
  });
}

void CurlMulti::arm() {
  armed_ = due_;
  timer_.expires_at(armed_);
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    if (error) return;
    const auto self = weak.lock();
    if (!self) return;
    self->armed_ = kNever;
    self->act_if_due();
  });
}

void CurlMulti::act_if_due() {
  if (due_ <= Clock::now()) {
    due_ = kNever;
    act(CURL_SOCKET_TIMEOUT, 0);
  } else if (due_ < armed_) {
    arm();
  }
}

void CurlMulti::act(curl_socket_t fd, int events) {
  if (multi_ == nullptr) return;
  int running = 0;
  curl_multi_socket_action(multi_, fd, events, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode result = message->data.result;
    take_out(easy);
    owner_.on_done(easy, result);
    if (multi_ == nullptr) break;
  }
  begin_anew_if_failed();
  owner_.on_acted();
}

}  // namespace lookout::rest::detail
