// HTTP with libcurl for Balancer::call(). Header-only: link lookout::registry_curl.
#pragma once

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/registry/call.h"
#include "lookout/registry/clients/http.h"

namespace lookout::registry {

/// Sends requests to instances and reuses connections. A request ends when the time of its attempt
/// is over, and immediately when the attempt is stopped.
///
///     registry::CurlClient http;
///     auto answer = web.call({.deadline = 1s, .scheme = "http"},
///                            [&](const registry::Endpoint& e, const registry::Attempt& attempt) {
///                              return http.request(e, {.path = "/hello"}, attempt);
///                            },
///                            registry::judge_http);
///
/// For one thread at a time: each calling thread needs its own client, and so does each attempt of
/// a call with `hedge_after`, because attempts then run on several threads. (The program calls
/// curl_global_init(), or rest::Client does.)
class CurlClient {
 public:
  /// A response with a longer body is an error.
  explicit CurlClient(std::size_t max_body = std::size_t{16} << 20)
      : max_body_(max_body), multi_(curl_multi_init()), easy_(curl_easy_init()) {
    if (!multi_ || !easy_) throw std::bad_alloc();
    // libcurl supports other protocols, and an announced endpoint may have any scheme.
    curl_easy_setopt(easy_.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  }

  /// Throws Error if there is no response in time.
  HttpResponse request(const Endpoint& endpoint, const HttpRequest& request,
                       const Attempt& attempt) {
    Reception reception{{}, max_body_};
    const Headers headers = set_up(endpoint, request, attempt, reception);
    const Transfer transfer(*this);
    const std::stop_callback on_stop(attempt.stop, [this] { curl_multi_wakeup(multi_.get()); });
    for (int running = 1; running > 0;) {
      if (attempt.stop.stop_requested()) throw Error("the request was stopped");
      CURLMcode code = curl_multi_perform(multi_.get(), &running);
      if (code == CURLM_OK && running > 0) {
        code = curl_multi_poll(multi_.get(), nullptr, 0, 1000, nullptr);
      }
      if (code != CURLM_OK) throw Error(curl_multi_strerror(code));
    }
    int left = 0;
    const CURLMsg* const ended = curl_multi_info_read(multi_.get(), &left);
    if (ended == nullptr) throw Error("libcurl has lost the request");
    if (reception.too_long) throw Error("the response is too long");
    if (ended->data.result != CURLE_OK) throw Error(curl_easy_strerror(ended->data.result));
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &reception.response.status);
    return std::move(reception.response);
  }

  /// For the program's own options, such as certificates and proxies. request() sets the URL, the
  /// method, the headers, the body and the time limit for each request.
  CURL* handle() const { return easy_.get(); }

 private:
  struct Free {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  using Headers = std::unique_ptr<curl_slist, Free>;
  struct Reception {
    HttpResponse response;
    std::size_t max_body;
    bool too_long = false;
  };
  /// A request in progress.
  class Transfer {
   public:
    explicit Transfer(CurlClient& client) : client_(client) {
      curl_multi_add_handle(client_.multi_.get(), client_.easy_.get());
    }
    ~Transfer() { curl_multi_remove_handle(client_.multi_.get(), client_.easy_.get()); }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

   private:
    CurlClient& client_;
  };

  static std::size_t receive(char* data, std::size_t size, std::size_t count, void* reception) {
    auto& into = *static_cast<Reception*>(reception);
    const std::size_t bytes = size * count;
    if (bytes > into.max_body - into.response.body.size()) {
      into.too_long = true;
      return 0;
    }
    into.response.body.append(data, bytes);
    return bytes;
  }

  Headers set_up(const Endpoint& endpoint, const HttpRequest& request, const Attempt& attempt,
                 Reception& reception) {
    CURL* const easy = easy_.get();
    Headers headers;
    for (const auto& [name, value] : request.headers) {
      // libcurl interprets "name:" as a header to omit.
      const std::string line = value.empty() ? name + ";" : name + ": " + value;
      curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
      if (longer == nullptr) throw std::bad_alloc();
      static_cast<void>(headers.release());
      headers.reset(longer);
    }
    constexpr std::chrono::milliseconds kLongest(std::numeric_limits<int>::max());
    curl_easy_setopt(easy, CURLOPT_URL, endpoint.url(request.path).c_str());
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::min(attempt.time, kLongest).count()));
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_NOBODY, request.method == "HEAD" ? 1L : 0L);
    // Some servers require a Content-Length even without a body.
    const bool has_body = !request.body.empty() || request.method == "POST" ||
                          request.method == "PUT" || request.method == "PATCH";
    if (has_body) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request.body.data());
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &CurlClient::receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &reception);
    return headers;
  }

  const std::size_t max_body_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
  const std::unique_ptr<CURL, Free> easy_;  // destroyed before multi_
};

}  // namespace lookout::registry
