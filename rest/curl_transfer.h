// Transfer: a request that libcurl executes, and its callbacks.
#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/rest/detail/http_transport.h"
#include "rest/connection_monitor.h"
#include "rest/http_flow.h"
#include "rest/refused_stream.h"

namespace lookout::rest::detail {

ConnectionMonitor::Port local_port_of(CURL* easy);

/// The flows with new data, until libcurl has processed all ready sockets: a reader woken then finds
/// the head, body and end of a short response at once. (Long responses wake it sooner: Flow::kMuch.)
/// Used only on the strand.
class News {
 public:
  void add(std::shared_ptr<Flow> flow) {
    // Usually it is the last one.
    if (flows_.empty() || flows_.back() != flow) flows_.push_back(std::move(flow));
  }

  /// Data has arrived on a connection that transfers may share.
  void came_over_shared_connection() { shared_ = true; }
  bool over_shared_connection() const { return shared_; }

  /// Wakes the readers, after the current handler.
  void tell() {
    for (const auto& flow : flows_) flow->event.ring_next();
    flows_.clear();
    shared_ = false;
  }

 private:
  bool shared_ = false;
  std::vector<std::shared_ptr<Flow>> flows_;
};

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using UrlPtr = std::unique_ptr<CURLU, UrlDeleter>;

struct Transfer;
using Transfers = std::unordered_map<CURL*, std::unique_ptr<Transfer>>;

/// A running request. Used only on the strand.
struct Transfer {
  std::shared_ptr<Flow> flow;
  ConnectionMonitor* monitor = nullptr;
  const Transfers* all = nullptr;  // the transport's
  News* news = nullptr;
  HttpRequest request;
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  UrlPtr url;  // used by libcurl; may be null
  HttpHead head;
  bool head_done = false;
  bool upgraded = false;  // the server has switched protocols, which was not requested
  std::size_t sent = 0;   // bytes of the body
  bool held_back = false;
  bool would_repeat = false;  // libcurl tried to repeat a request that the server may have executed
  bool held = false;          // paused: libcurl holds the last data
      // Accepts all data that libcurl has held. Each time an HTTP/2 transfer resumes, libcurl lets the
      // server send up to 32 MB more; it fails a transfer for which it would have to hold 64 MB.
  bool takes_all = false;
  bool probe = false;  // the monitor's request
  StreamNotes stream;
  int begun_again = 0;
  const ConnectionMonitor::TimePoint begun = ConnectionMonitor::Clock::now();
  ConnectionMonitor::TimePoint heard = ConnectionMonitor::TimePoint::min();
  ConnectionMonitor::Port lost_port = 0;  // of the connection that was shut down
  std::string lost;                       // why
  char error[CURL_ERROR_SIZE] = {};
  std::string failure;  // an exception in a callback

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
  }

  std::size_t on_header(std::string_view line);
  std::size_t on_send(char* out, std::size_t size);
  bool may_begin();
  std::size_t on_body(std::string_view bytes);
};

/// Sets the transfer's callbacks. Call it after the request's options are set.
void set_callbacks(CURL* easy, Transfer& transfer);

/// For writes without HTTP/2: makes libcurl send the head and a short body with one system call. Call
/// it after set_callbacks().
void send_in_one_piece(CURL* easy, Transfer& transfer);

/// libcurl 7.88 does not free the data held for a paused transfer that ends while others use its
/// connection: the handle's next transfer would receive it, and destroying the handle leaks it. A
/// transfer with its own connection frees the data.
void let_go_of_held_data(CURL* easy);

}  // namespace lookout::rest::detail
