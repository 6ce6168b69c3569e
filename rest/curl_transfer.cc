#include "rest/curl_transfer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "lookout/base/ascii.h"
#include "lookout/base/numbers.h"
#include "rest/call_from_c.h"

namespace lookout::rest::detail {
namespace {

/// Like append(), but without doubling up to the high-water mark, which would waste half of the
/// memory of a thousand unread responses.
void append(std::string& buffer, std::string_view bytes) {
  static constexpr std::size_t kStep = 32u << 10;
  const std::size_t size = buffer.size() + bytes.size();
  if (size > buffer.capacity() && size > kStep && size <= Flow::kHighWater + kStep) {
    std::string larger;
    larger.reserve((size / kStep + 1) * kStep - 1);
    larger.append(buffer);
    buffer = std::move(larger);
  }
  buffer.append(bytes);
}

}  // namespace

ConnectionMonitor::Port local_port_of(CURL* easy) {
  long port = 0;
  curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &port);
  return static_cast<ConnectionMonitor::Port>(std::max(port, 0L));
}

std::size_t Transfer::on_header(std::string_view line) {
  heard = ConnectionMonitor::Clock::now();
  if (head.http2) news->came_over_shared_connection();
  if (line.starts_with("HTTP/")) {
    head = {};
    head.http2 = line.starts_with("HTTP/2");
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos)
      std::from_chars(line.data() + space + 1, line.data() + line.size(), head.status);
  } else if (base::starts_with_ignoring_case(line, "content-type:")) {
    head.content_type = base::trim(line.substr(13));
  } else if (base::starts_with_ignoring_case(line, "retry-after:")) {
    // A date is possible, too; like client-go, accept only numbers.
    const auto seconds = base::parse_number<std::int32_t>(base::trim(line.substr(12)));
    if (seconds && *seconds >= 0) head.retry_after = std::chrono::seconds(*seconds);
  } else if (base::starts_with_ignoring_case(line, "warning:")) {
    head.warnings.emplace_back(base::trim(line.substr(8)));
  } else if (base::starts_with_ignoring_case(line, "location:")) {
    head.location = base::trim(line.substr(9));
  } else if (base::trim(line).empty() && head.status == 101) {
    upgraded = true;
    failure = "the server switches to another protocol (HTTP 101)";
    return 0;
  } else if (base::trim(line).empty() && head.status >= 200 && !head_done) {
    head_done = true;
    {
      const std::lock_guard lock(flow->mutex);
      flow->head = head;
    }
    news->add(flow);
  }
  return line.size();
}

std::size_t Transfer::on_send(char* out, std::size_t size) {
  if (sent == 0 && request.held_back()) {
    held_back = true;
    return CURL_READFUNC_ABORT;
  }
  size = std::min(size, request.body.size() - sent);
  std::memcpy(out, request.body.data() + sent, size);
  sent += size;
  return size;
}

/// libcurl is about to send the request on an established connection. If a reused connection breaks
/// before the response, libcurl sends it again: see seek_callback().
bool Transfer::may_begin() {
  held_back = request.held_back();
  long before = 0;  // bytes sent
  curl_easy_getinfo(flow->easy, CURLINFO_REQUEST_SIZE, &before);
  would_repeat = before > 0;
  if (would_repeat) failure = "the connection broke before the answer";
  return !held_back && !would_repeat;
}

std::size_t Transfer::on_body(std::string_view bytes) {
  heard = ConnectionMonitor::Clock::now();
  if (head.http2) news->came_over_shared_connection();
  bool ring = false;
  bool ring_at_once = false;
  {
    const std::lock_guard lock(flow->mutex);
    held = flow->buffer.size() >= Flow::kHighWater && !takes_all;
    if (held) {
      flow->paused = true;
      return CURL_WRITEFUNC_PAUSE;
    }
    // A reader waits only for the first bytes.
    ring = flow->buffer.empty();
    if (flow->buffer.capacity() < bytes.size() && ring) flow->buffer = flow->buffers->take();
    const std::size_t unread = flow->buffer.size();
    append(flow->buffer, bytes);
    ring_at_once = unread < Flow::kMuch && flow->buffer.size() >= Flow::kMuch;
  }
  if (ring) news->add(flow);
  if (ring_at_once) flow->event.ring();
  return bytes.size();
}

namespace {

std::size_t header_callback(char* data, std::size_t size, std::size_t count, void* transfer) {
  auto* const self = static_cast<Transfer*>(transfer);
  return call_from_c(self->failure, std::size_t{0}, [&] {
    return self->on_header({data, size * count});
  });
}

std::size_t write_callback(char* data, std::size_t size, std::size_t count, void* transfer) {
  auto* const self = static_cast<Transfer*>(transfer);
  return call_from_c(self->failure, std::size_t{CURL_WRITEFUNC_ERROR}, [&] {
    return self->on_body({data, size * count});
  });
}

std::size_t read_callback(char* out, std::size_t size, std::size_t count, void* transfer) {
  return static_cast<Transfer*>(transfer)->on_send(out, size * count);
}

int begin_callback(void* transfer, char*, char*, int, int) {
  auto* const self = static_cast<Transfer*>(transfer);
  return call_from_c(self->failure, CURL_PREREQFUNC_ABORT, [&] {
    return self->may_begin() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
  });
}

/// libcurl repeats a request if a reused connection breaks before the response, even a write that
/// the server may have executed. Rejecting the seek prevents this once the body was being sent.
/// Repeating is allowed if the server has refused the stream.
int seek_callback(void* pointer, curl_off_t offset, int origin) {
  auto* transfer = static_cast<Transfer*>(pointer);
  CURL* easy = transfer->flow->easy;
  if (offset != 0 || origin != SEEK_SET ||
      (!transfer->stream.never_begun() &&
       !was_refused(easy, transfer->error, transfer->monitor->socket_of(local_port_of(easy)))))
    return CURL_SEEKFUNC_FAIL;
  transfer->sent = 0;
  return CURL_SEEKFUNC_OK;
}

int debug_callback(CURL* easy, curl_infotype type, char* data, std::size_t size, void* transfer) {
  if (type != CURLINFO_TEXT) return 0;
  auto* const self = static_cast<Transfer*>(transfer);
  const auto last_begun = self->stream.note({data, size});
  if (!last_begun) return 0;
  const ConnectionMonitor::Port port = local_port_of(easy);
  for (const auto& [other, its] : *self->all) {
    if (local_port_of(other) == port) its->stream.gone_away(*last_begun);
  }
  return 0;
}

}  // namespace

void set_callbacks(CURL* easy, Transfer& transfer) {
  const auto set = [easy](CURLoption option, auto value) { curl_easy_setopt(easy, option, value); };
  set(CURLOPT_ERRORBUFFER, transfer.error);
  set(CURLOPT_HEADERFUNCTION, &header_callback);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &write_callback);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_READFUNCTION, &read_callback);
  set(CURLOPT_READDATA, &transfer);
  set(CURLOPT_SEEKFUNCTION, &seek_callback);
  set(CURLOPT_SEEKDATA, &transfer);
  set(CURLOPT_DEBUGFUNCTION, &debug_callback);
  set(CURLOPT_DEBUGDATA, &transfer);
}

void send_in_one_piece(CURL* easy, Transfer& transfer) {
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer.request.body.data());
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &begin_callback);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &transfer);
}

void let_go_of_held_data(CURL* easy) {
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "file");
  curl_easy_setopt(easy, CURLOPT_URL, "file:///dev/null");
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_perform(easy);
}

}  // namespace lookout::rest::detail
