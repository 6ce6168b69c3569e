#include "rest/curl_multi.h"

#include <boost/asio/bind_executor.hpp>
#include <chrono>
#include <mutex>
#include <utility>

namespace lookout::rest::detail {

using boost::asio::posix::stream_descriptor;

/// A socket of libcurl's that is being waited for. libcurl opens and closes it; the descriptor only
/// borrows the number.
struct CurlMulti::Socket {
  Socket(const Strand& strand, curl_socket_t fd) : descriptor(strand, fd) {}
  ~Socket() {
    if (descriptor.is_open()) descriptor.release();
  }

  stream_descriptor descriptor;
  int wanted = 0;  // CURL_POLL_*
  bool reading = false;
  bool writing = false;
};

std::shared_ptr<CurlMulti> CurlMulti::create(Strand strand, OnDone on_done) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  return std::shared_ptr<CurlMulti>(new CurlMulti(std::move(strand), std::move(on_done)));
}

CurlMulti::CurlMulti(Strand strand, OnDone on_done)
    : strand_(std::move(strand)),
      on_done_(std::move(on_done)),
      multi_(curl_multi_init()),
      timer_(strand_) {
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
  curl_multi_cleanup(std::exchange(multi_, nullptr));
  sockets_.clear();
}

CURLMcode CurlMulti::add(CURL* easy) {
  return multi_ == nullptr ? CURLM_BAD_HANDLE : curl_multi_add_handle(multi_, easy);
}

void CurlMulti::remove(CURL* easy) {
  if (multi_ != nullptr) curl_multi_remove_handle(multi_, easy);
}

void CurlMulti::resume(CURL* easy) {
  curl_easy_pause(easy, CURLPAUSE_CONT);
  act(CURL_SOCKET_TIMEOUT, 0);
}

int CurlMulti::on_socket(CURL*, curl_socket_t fd, int what, void* self_pointer, void*) {
  auto* self = static_cast<CurlMulti*>(self_pointer);
  const auto found = self->sockets_.find(fd);
  if (what == CURL_POLL_REMOVE) {
    if (found != self->sockets_.end()) {
      // libcurl closes the number next: the descriptor must forget it now, pending waits or not.
      found->second->descriptor.release();
      self->sockets_.erase(found);
    }
    return 0;
  }
  std::shared_ptr<Socket> socket;
  if (found != self->sockets_.end()) {
    socket = found->second;
  } else {
    socket = std::make_shared<Socket>(self->strand_, fd);
    self->sockets_.emplace(fd, socket);
  }
  socket->wanted = what;
  self->watch(socket);
  return 0;
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
        // What is no longer wanted by now is not waited for again.
        if ((socket->wanted & (read ? CURL_POLL_IN : CURL_POLL_OUT)) == 0) return;
        const int events = error ? CURL_CSELECT_ERR : read ? CURL_CSELECT_IN : CURL_CSELECT_OUT;
        self->act(socket->descriptor.native_handle(), events);
        if (socket->descriptor.is_open()) self->watch(socket);
      });
}

int CurlMulti::on_timer(CURLM*, long timeout_ms, void* self_pointer) {
  auto* self = static_cast<CurlMulti*>(self_pointer);
  if (timeout_ms < 0) {
    self->timer_.cancel();
    return 0;
  }
  // libcurl must not be called from here, however short the time.
  self->timer_.expires_after(std::chrono::milliseconds(timeout_ms));
  self->timer_.async_wait([weak = self->weak_from_this()](boost::system::error_code error) {
    if (error) return;
    if (const auto owner = weak.lock()) owner->act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
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
    curl_multi_remove_handle(multi_, easy);
    on_done_(easy, result);
  }
}

}  // namespace lookout::rest::detail
