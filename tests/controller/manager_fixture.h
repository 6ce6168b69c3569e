// A manager that runs beside a test, and the server that it works on.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/controller/manager.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"
#include "tests/support/bounded_wait.h"

namespace lookout::controller {

class Running {
 public:
  explicit Running(Manager& manager)
      : ended_(std::async(std::launch::async,
                          [&manager, stop = stop_.get_token()] { manager.run(stop); })) {}
  ~Running() {
    stop_.request_stop();
    if (!ended_.valid()) return;
    try {
      test::get(ended_);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "run() has thrown: " << e.what();
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Stops, and throws what run() throws.
  void stop() {
    stop_.request_stop();
    end();
  }
  /// Only asks for the stop.
  void request_stop() { stop_.request_stop(); }
  /// Waits until it ends by itself.
  void end() { test::get(std::exchange(ended_, {})); }
  bool ended() const {
    return ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

 private:
  std::stop_source stop_;
  std::future<void> ended_;
};

class ManagerFixture : public testing::Test {
 protected:
  k8s::core::v1::ConfigMap put(const std::string& name, const std::string& value,
                               const std::string& ns = "default") const {
    const auto draft = k8s::core::v1::ConfigMap::draft(name, ns);
    draft.data().set("value", value);
    return client_.resource<k8s::core::v1::ConfigMap>(ns).create(draft);
  }
  void change(const std::string& name, const std::string& value) const {
    maps_.patch(name, rest::PatchType::kMerge, R"({"data":{"value":")" + value + R"("}})");
  }

  /// The value of a metric, of the sample that has this label; -1 if there is none.
  static double metric(const Manager& manager, const std::string& name,
                       const std::string& label = {}) {
    std::vector<metrics::Sample> samples;
    manager.collect(samples);
    for (const auto& sample : samples) {
      if (sample.name != name) continue;
      bool fits = label.empty();
      for (const auto& [key, value] : sample.labels) fits = fits || value == label;
      if (!fits) continue;
      return sample.type == metrics::Sample::Type::kHistogram ? static_cast<double>(sample.count)
                                                              : sample.value;
    }
    return -1;
  }

  apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
  const rest::TypedClient<k8s::core::v1::ConfigMap> maps_ =
      client_.resource<k8s::core::v1::ConfigMap>("default");
};

}  // namespace lookout::controller
