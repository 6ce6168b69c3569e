#include "examples/registry/curl_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <stdexcept>

namespace example {
namespace {

std::size_t append(char* data, std::size_t size, std::size_t count, void* body) {
  static_cast<std::string*>(body)->append(data, size * count);
  return size * count;
}

/// Asked by libcurl now and then: not 0 ends the transfer.
int stopped(void* attempt, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const lookout::registry::Attempt*>(attempt)->stop.stop_requested() ? 1 : 0;
}

}  // namespace

CurlClient::CurlClient() : curl_(curl_easy_init()) {
  if (curl_ == nullptr) throw std::bad_alloc();
}
CurlClient::~CurlClient() { curl_easy_cleanup(curl_); }

Response CurlClient::get(const std::string& url, const lookout::registry::Attempt& attempt) {
  Response response;
  const auto limit = std::chrono::milliseconds(std::numeric_limits<int>::max());
  const long time = static_cast<long>(std::min(attempt.time, limit).count());
  curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, time);
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, append);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &response.body);
  curl_easy_setopt(curl_, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl_, CURLOPT_XFERINFOFUNCTION, stopped);
  curl_easy_setopt(curl_, CURLOPT_XFERINFODATA, &attempt);
  const CURLcode code = curl_easy_perform(curl_);
  if (code != CURLE_OK) throw std::runtime_error(curl_easy_strerror(code));
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &response.status);
  return response;
}

}  // namespace example
