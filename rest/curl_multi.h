// libcurl's multi interface on a Boost.Asio strand.
#pragma once

#include <curl/curl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace lookout::rest::detail {

/// Owns a CURLM, waits for its sockets and timers, and reports completed transfers. Everything runs
/// on the strand; call the functions there, too.
class CurlMulti : public std::enable_shared_from_this<CurlMulti> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  /// The handle was removed from the multi; the callee owns it.
  using OnDone = std::function<void(CURL* easy, CURLcode result)>;
  /// Waiting for a socket or a timer failed (no memory, epoll limit), so transfers would hang. The
  /// callee removes and fails all of them; then the multi starts afresh.
  using OnFailure = std::function<void(const std::string& why)>;

  /// Called after libcurl's callbacks: readers may be woken now.
  using OnActed = std::function<void()>;
  /// A socket passed to opened() was abandoned before it was connected. libcurl 7.88 closes such
  /// sockets without calling CURLOPT_CLOSESOCKETFUNCTION, so the number may have been reused.
  using OnGivenUp = std::function<void(curl_socket_t fd)>;

  struct Owner {
    OnDone on_done;
    OnFailure on_failure;
    OnActed on_acted;
    OnGivenUp on_given_up;
    long idle_connections = 4;  // the maximum number to keep
  };

  static std::shared_ptr<CurlMulti> create(Strand strand, Owner owner);
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  CURLMcode add(CURL* easy);
  /// The same, and libcurl begins at once; not for use by callbacks.
  CURLMcode start(CURL* easy);
  void remove(CURL* easy);
  /// Resumes a transfer whose write callback has paused it.
  void resume(CURL* easy);
  /// Lets libcurl read its sockets again in a moment, readable or not. Call it when data has arrived
  /// over a connection that transfers share (HTTP/2): if the buffer of one of them is full, libcurl
  /// 7.88 stops in the middle of the data that it has read, and may continue only when more data
  /// arrives on that socket. Otherwise the end of a response could wait forever.
  void look_for_held_input();
  /// libcurl has opened a socket. Once connected, it stays registered, also while idle, until
  /// closed().
  void opened(curl_socket_t fd);
  /// The socket is about to be closed.
  void closed(curl_socket_t fd);
  /// Closes all connections. The caller must have removed its handles. Do not use it afterwards.
  void close();

  const Strand& strand() const { return strand_; }

 private:
  struct Socket;

  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();
  static constexpr std::chrono::milliseconds kMoment{5};

  CurlMulti(Strand strand, Owner owner);

  void open();
  void take_out(CURL* easy);
  void count_transfers(long change);
  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* self, void* socket);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);
  void forget(curl_socket_t fd);
  void watch(const std::shared_ptr<Socket>& socket);
  void wait(const std::shared_ptr<Socket>& socket,
            boost::asio::posix::stream_descriptor::wait_type type);
  void act(curl_socket_t fd, int events);
  void want(curl_socket_t fd, int what);
  void set_timer(long timeout_ms);
  void arm();
  void act_if_due();
  /// Calls `f` in a callback of libcurl, through which exceptions must not propagate.
  template <class F>
  int guarded(F f) noexcept;
  void begin_anew_if_failed();

  Strand strand_;
  const Owner owner_;
  CURLM* multi_ = nullptr;
  long transfers_ = 0;  // in the multi
      // libcurl sets its timer several times per request, mostly to a later time or to none. Then timer_
      // is left unchanged, and checks due_ when it ends.
  boost::asio::steady_timer timer_;
  Clock::time_point due_ = kNever;    // libcurl's deadline
  Clock::time_point armed_ = kNever;  // when timer_ ends
  bool posted_ = false;               // an immediate call is posted
  boost::asio::steady_timer look_;    // of look_for_held_input()
  bool looking_ = false;              // look_ is armed
  std::unordered_map<curl_socket_t, std::shared_ptr<Socket>> sockets_;
  std::unordered_set<curl_socket_t> open_;  // until closed()
  std::exception_ptr failure_;
};

}  // namespace lookout::rest::detail
