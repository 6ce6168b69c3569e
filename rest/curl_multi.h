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

/// Owns a CURLM, waits for its sockets and timers, and says when a transfer is done. Everything
/// happens on the strand; the functions are called there, too.
class CurlMulti : public std::enable_shared_from_this<CurlMulti> {
 public:
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;
  /// The handle has been taken out of the multi and belongs to the callee.
  using OnDone = std::function<void(CURL* easy, CURLcode result)>;
  /// A socket or a timer cannot be waited for (no memory, no room in epoll): transfers would wait
  /// for ever. The callee gives up and removes all of them; then everything begins anew.
  using OnFailure = std::function<void(const std::string& why)>;

  /// Called after libcurl has made its callbacks: readers may be woken now.
  using OnActed = std::function<void()>;
  /// A socket that opened() has told was given up before it was connected. libcurl 7.88 closes such
  /// sockets without calling CURLOPT_CLOSESOCKETFUNCTION; the number may be somebody else's now.
  using OnGivenUp = std::function<void(curl_socket_t fd)>;

  struct Owner {
    OnDone on_done;
    OnFailure on_failure;
    OnActed on_acted;
    OnGivenUp on_given_up;
    long idle_connections = 4;  // so many are kept
  };

  static std::shared_ptr<CurlMulti> create(Strand strand, Owner owner);
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  CurlMulti& operator=(const CurlMulti&) = delete;

  CURLMcode add(CURL* easy);
  void remove(CURL* easy);
  /// Lets a transfer go on whose write callback asked for a pause.
  void resume(CURL* easy);
  /// Lets libcurl read its sockets again in a moment, readable or not. To be called when something
  /// has come over a connection that transfers share (HTTP/2): libcurl 7.88 stops in the middle of
  /// what it has read if the buffer of one of them is full, and may go on only when more comes over
  /// that socket. The end of an answer could wait for ever.
  void look_for_held_input();
  /// libcurl has opened a socket. Once it is connected, closed() will tell its end, and it stays
  /// registered while its connection is idle.
  void opened(curl_socket_t fd);
  /// The socket is about to be closed.
  void closed(curl_socket_t fd);
  /// Closes all connections. The caller has removed its handles. Nothing works afterwards.
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
  /// Calls `f` for libcurl, through whose frames nothing may be thrown.
  template <class F>
  int guarded(F f) noexcept;
  void begin_anew_if_failed();

  Strand strand_;
  const Owner owner_;
  CURLM* multi_ = nullptr;
  long transfers_ = 0;  // that libcurl has
  // libcurl sets its timer several times for each request, mostly to a later time, or to none: then
  // timer_ is left as it is, and looks at due_ when it ends.
  boost::asio::steady_timer timer_;
  Clock::time_point due_ = kNever;    // when libcurl wants to be called
  Clock::time_point armed_ = kNever;  // when timer_ ends
  bool posted_ = false;               // a call that is due at once
  boost::asio::steady_timer look_;    // of look_for_held_input()
  bool looking_ = false;              // it is armed
  std::unordered_map<curl_socket_t, std::shared_ptr<Socket>> sockets_;
  std::unordered_set<curl_socket_t> open_;  // until closed()
  std::exception_ptr failure_;
};

}  // namespace lookout::rest::detail
