// A factory of informers, and an API server with a test's responses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/client.h"
#include "lookout/testing/fake_clock.h"
#include "tests/support/http_server.h"

namespace lookout::informer {

// Names that the tests use.
using namespace std::chrono_literals;
using k8s::core::v1::Node;
using k8s::core::v1::Pod;

namespace test {

/// An API server with a test's list responses, which keeps watches open.
class ListingServer {
 public:
  /// Initially there are no objects.
  void answer_lists(int status, std::string body) {
    const std::lock_guard lock(mutex_);
    answer_ = {status, std::move(body)};
  }

  /// The targets of all requests ("/api/v1/pods?limit=500...").
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// Waits until this many requests with the text in their target have been received.
  bool wait_for(std::string_view part, std::ptrdiff_t count = 1) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] {
      return std::count_if(requests_.begin(), requests_.end(), [&](const std::string& request) {
               return request.find(part) != std::string::npos;
             }) >= count;
    });
  }

  /// The events of the next watch lists; empty: they are rejected.
  void answer_streams(std::string body) {
    const std::lock_guard lock(mutex_);
    stream_ = std::move(body);
  }
  /// The Accept headers of the requests.
  std::vector<std::string> accepted() const {
    const std::lock_guard lock(mutex_);
    return accepted_;
  }

  rest::Config config() const {
    rest::Config config;
    config.server = server_.url();
    return config;
  }

 private:
  void serve(lookout::test::HttpConnection& connection) {
    while (const auto request = connection.read_request()) {
      std::unique_lock lock(mutex_);
      requests_.push_back(request->target);
      accepted_.push_back(request->header("Accept"));
      changed_.notify_all();
      const lookout::test::HttpResponse answer = answer_;
      const std::string stream = stream_;
      lock.unlock();
      if (request->target.find("watch=") == std::string::npos) {
        connection.respond(answer);
      } else if (request->target.find("sendInitialEvents=") == std::string::npos) {
        connection.begin_chunks();
        return connection.wait_for_close();
      } else if (stream.empty()) {
        connection.respond({422, api::StatusError::invalid("meta.k8s.io", "ListOptions", "", {})
                                     .status()
                                     .to_object()
                                     .to_json()});
      } else {
        connection.begin_chunks();
        connection.chunk(stream);
        return connection.wait_for_close();
      }
    }
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> requests_;  // guarded by mutex_, like the following members
  std::vector<std::string> accepted_;
  std::string stream_;
  lookout::test::HttpResponse answer_{// guarded by mutex_
                                      200,
                                      R"({"kind":"List","apiVersion":"v1",
                                 "metadata":{"resourceVersion":"10"},"items":[]})"};
  lookout::test::HttpServer server_{
      [this](lookout::test::HttpConnection& connection) { serve(connection); }};
};

inline constexpr const char* kTwoPods = R"({"kind":"PodList","apiVersion":"v1",
  "metadata":{"resourceVersion":"10"},"items":[
  {"metadata":{"namespace":"shop","name":"x","resourceVersion":"7","labels":{"app":"web"}}},
  {"metadata":{"namespace":"bank","name":"y","resourceVersion":"8"}}]})";

class FactoryFixture : public testing::Test {
 protected:
  SharedInformerFactory& make(FactoryOptions options = {}) {
    options.use_watch_list = false;
    return make_streaming(std::move(options));
  }
  SharedInformerFactory& make_streaming(FactoryOptions options = {}) {
    options.clock = clock_;
    factory_ = std::make_unique<SharedInformerFactory>(client_, std::move(options));
    return *factory_;
  }
  template <class T>
  static SharedIndexInformer* identity(const SharedInformer<T>& informer) {
    return &informer.untyped_informer();
  }

  ListingServer server_;
  const std::shared_ptr<lookout::test::FakeClock> clock_ =
      std::make_shared<lookout::test::FakeClock>();
  rest::Client client_{server_.config(), std::make_shared<EventLoop>(2)};
  std::unique_ptr<SharedInformerFactory> factory_;
};

}  // namespace test
}  // namespace lookout::informer
