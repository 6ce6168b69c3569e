// Transfer: one request in libcurl's hands, and what libcurl calls meanwhile.
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

/// The flows whose readers have something to look at, until libcurl has done what it could do: a
/// reader that is woken then finds the head, the body and the end of a short answer at once. (A long
/// one wakes it sooner: Flow::kMuch.) Used on the strand only.
class News {
 public:
  void add(std::shared_ptr<Flow> flow) {
    // It is mostly the last one.
    if (flows_.empty() || flows_.back() != flow) flows_.push_back(std::move(flow));
  }

  /// Something has come over a connection that transfers may share.
  void came_over_shared_connection() { shared_ = true; }
  bool over_shared_connection() const { return shared_; }

  /// Wakes the readers, after the handler that runs now.
  void tell() {
    for (const auto& flow : flows_) flow->event.ring_next();
    flows_.clear();
    shared_ = false;
  }

 private:
  bool shared_ = false;
  std::vector<std::shared_ptr<Flow>> flows_;
};

struct Transfer;
using Transfers = std::unordered_map<CURL*, std::unique_ptr<Transfer>>;

/// One request on its way; lives on the strand from start to end.
struct Transfer {
  std::shared_ptr<Flow> flow;
  ConnectionMonitor* monitor = nullptr;
  const Transfers* all = nullptr;  // those of the transport
  News* news = nullptr;
  HttpRequest request;
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  HttpHead head;
  bool head_done = false;
  bool upgraded = false;  // the server goes on in another protocol, which nobody has asked for
  std::size_t sent = 0;   // of the body
  bool held_back = false;
  bool would_repeat = false;  // libcurl wanted to send again what the server may have done
  bool held = false;          // what arrived last was not taken; libcurl holds it
  // libcurl hands over what it has held. Over HTTP/2 it lets the server send more (up to 32 MB)
  // each time that a transfer goes on, and gives up one for which it would have to hold 64 MB.
  bool takes_all = false;
  bool probe = false;  // the monitor's question
  StreamNotes stream;
  int begun_again = 0;
  const ConnectionMonitor::TimePoint begun = ConnectionMonitor::Clock::now();
  ConnectionMonitor::TimePoint heard = ConnectionMonitor::TimePoint::min();
  ConnectionMonitor::Port lost_port = 0;  // of the connection that was given up
  std::string lost;                       // why
  char error[CURL_ERROR_SIZE] = {};
  std::string failure;  // what a callback threw

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

/// Has libcurl call the transfer. Set what the request sends first.
void set_callbacks(CURL* easy, Transfer& transfer);

/// For what changes something, without HTTP/2: has libcurl send head and (short) body with one system
/// call. To be called after set_callbacks().
void send_in_one_piece(CURL* easy, Transfer& transfer);

/// libcurl 7.88 does not let go of what it holds for a paused transfer that ends while others use
/// its connection: the next transfer of the handle would be given it, and the handle's end does not
/// free it. The end of a transfer that has a connection to itself does.
void let_go_of_held_data(CURL* easy);

}  // namespace lookout::rest::detail
