// Waiting functions on a loop that the test runs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/rest/error.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/watch/until.h"
#include "tests/support/fake_lister_watcher.h"
#include "tests/support/objects.h"

namespace lookout::watch::test {

using lookout::test::FakeClock;
using lookout::test::FakeListerWatcher;
using lookout::test::pod;

inline std::string text(const api::WatchEvent& event) {
  if (event.type == api::EventType::kError) {
    const auto status = api::Status::from(event.object);
    return "ERROR " + std::to_string(status ? status->code : 0);
  }
  return std::string(api::to_string(event.type)) + " " + event.object.key() + "@" +
         std::string(event.object.resource_version());
}

inline api::WatchEvent added(std::string_view key, std::size_t version) {
  return {api::EventType::kAdded, pod(key, version)};
}
inline api::WatchEvent modified(std::string_view key, std::size_t version) {
  return {api::EventType::kModified, pod(key, version)};
}
inline api::WatchEvent deleted(std::string_view key, std::size_t version) {
  return {api::EventType::kDeleted, pod(key, version)};
}
inline api::WatchEvent bookmark(std::size_t version) {
  return {api::EventType::kBookmark, pod("", version)};
}
inline api::WatchEvent error(const api::StatusError& what) {
  return {api::EventType::kError, what.status().to_object()};
}

class WatchTest : public testing::Test {
 protected:
  WatchTest() { clock_->skip_sleeps_below(std::chrono::seconds(2)); }
  void TearDown() override {
    stop_.request_stop();
    settle();
    EXPECT_EQ(source_->open_watchers(), 0u);
  }

  /// Processes everything that is possible without new input.
  void settle() {
    context_.restart();
    context_.poll();
  }
  void advance(Clock::Duration time) {
    clock_->advance(time);
    settle();
  }

  template <class T>
  struct Outcome {
    std::optional<T> value;
    std::exception_ptr error;

    bool pending() const { return !value && !error; }
    /// The result; throws the exception of the call.
    T get() const {
      if (error) std::rethrow_exception(error);
      if (!value) throw Error("it is still pending");
      return *value;
    }
  };
  template <class T>
  std::shared_ptr<Outcome<T>> begin(Awaitable<T> task) {
    auto out = std::make_shared<Outcome<T>>();
    boost::asio::co_spawn(boost::asio::make_strand(context_), std::move(task),
                          [out](std::exception_ptr failed, T value) {
                            if (failed) {
                              out->error = failed;
                            } else {
                              out->value = std::move(value);
                            }
                          });
    settle();
    return out;
  }
  template <class T>
  static std::optional<WaitError::Reason> reason(const Outcome<T>& outcome) {
    try {
      outcome.get();
    } catch (const WaitError& e) {
      return e.reason();
    }
    return std::nullopt;
  }

  WaitOptions options(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) const {
    WaitOptions out;
    out.stop = stop_.get_token();
    out.timeout = timeout;
    out.clock = clock_;
    return out;
  }
  void send(std::vector<api::WatchEvent> events) {
    source_->send(std::move(events));
    settle();
  }

  boost::asio::io_context context_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  const std::shared_ptr<FakeListerWatcher> source_ = std::make_shared<FakeListerWatcher>();
  std::stop_source stop_;
};

}  // namespace lookout::watch::test

namespace lookout::watch {

// The names that tests of watches use.
using namespace std::chrono_literals;
using test::added;
using test::bookmark;
using test::deleted;
using test::error;
using test::modified;
using test::pod;
using test::text;
using testing::IsEmpty;
using Reason = WaitError::Reason;

}  // namespace lookout::watch
