// A reflector on a manually run loop.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/testing/fake_clock.h"
#include "lookout/tools/cache/reflector.h"
#include "tests/support/fake_lister_watcher.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"

namespace lookout::cache::test {

using lookout::test::FakeClock;
using lookout::test::FakeListerWatcher;
using lookout::test::object_of_kind;
using lookout::test::pod;

inline rest::TransportError transport_error(rest::TransportError::Kind kind) {
  return {kind, "no answer"};
}
inline std::string text(const api::Object& object) {
  return object.key() + "@" + std::string(object.resource_version());
}

/// Stores objects and records all calls.
class RecordingStore : public ReflectorStore {
 public:
  void add(const api::Object& object) override { put("add", object); }
  void update(const api::Object& object) override { put("update", object); }
  void remove(const api::Object& object) override {
    note("remove " + text(object));
    objects_.erase(object.key());
  }
  void replace(std::vector<api::Object> objects, const std::string& resource_version) override {
    note("replace @" + resource_version);
    objects_.clear();
    for (auto& object : objects) objects_[object.key()] = std::move(object);
  }
  void resync() override { note("resync"); }
  void flush(const std::string& resource_version) override { note("flush @" + resource_version); }

  /// True if the store keeps a listed object; by default it keeps all.
  std::function<bool(const api::Object&)> keeps = [](const api::Object&) { return true; };
  api::Object prepare(api::Object object) const override {
    return keeps(object) ? object : api::Object();
  }

  std::vector<api::Object> objects() const override {
    std::vector<api::Object> out;
    for (const auto& [key, object] : objects_) out.push_back(object);
    return out;
  }

  /// The changes since the last call.
  std::vector<std::string> told() { return std::exchange(told_, {}); }
  std::vector<std::string> contents() const {
    std::vector<std::string> out;
    for (const auto& [key, object] : objects_) out.push_back(text(object));
    return out;
  }
  void throw_once() { throw_once_ = true; }
  /// Called at each change; may be empty.
  std::function<void()> on_told;

 private:
  void note(std::string what) {
    if (std::exchange(throw_once_, false)) throw std::runtime_error("the store is full");
    told_.push_back(std::move(what));
    if (on_told) on_told();
  }
  void put(const char* what, const api::Object& object) {
    note(what + (" " + text(object)));
    objects_[object.key()] = object;
  }

  std::map<std::string, api::Object> objects_;
  std::vector<std::string> told_;
  bool throw_once_ = false;
};

/// A reflector on a loop that the test runs: settle() processes everything that is possible without new
/// input.
class ReflectorTest : public testing::Test {
 protected:
  ReflectorTest() {
    options_.name = "test";
    options_.expected_api_version = "v1";
    options_.expected_kind = "Pod";
    options_.watch_error_handler = [this](std::string_view name, const std::exception& e) {
      EXPECT_EQ(name, "test");
      errors_.push_back(e.what());
    };
  }

  void TearDown() override {
    if (reflector_) expect_stop();
  }

  void settle() {
    context_.restart();
    context_.poll();
  }
  void start(ReflectorStore& store) { start(store, source_); }
  void start(ReflectorStore& store, std::shared_ptr<ListerWatcher> source) {
    options_.clock = clock_;
    reflector_ = Reflector::create(std::move(source), store, options_);
    boost::asio::co_spawn(boost::asio::make_strand(context_), reflector_->run(stop_.get_token()),
                          [this](std::exception_ptr error) {
                            EXPECT_FALSE(error);
                            done_ = true;
                          });
    settle();
  }
  /// Starts with this list and opens a watch.
  void begin(std::vector<api::Object> objects = {}, const std::string& resource_version = "10") {
    start(store_);
    list({std::move(objects), resource_version});
    open_watch();
    store_.told();
  }
  void list(FakeListerWatcher::Page page) {
    source_->list_returns(std::move(page));
    settle();
  }
  void open_watch() {
    source_->watch_opens();
    settle();
  }
  void send(std::vector<api::WatchEvent> events) {
    source_->send(std::move(events));
    settle();
  }
  void bookmark(std::string_view resource_version) {
    send({{api::EventType::kBookmark, object_of_kind("v1", "Pod", "", resource_version)}});
  }
  template <class E>
  void fail_watch(E error) {
    source_->break_watch(std::move(error));
    settle();
  }
  void advance(Clock::Duration duration) {
    clock_->advance(duration);
    settle();
  }
  /// True if the reflector waits to try again; if so, the wait passes.
  bool back_off() {
    const auto wait = clock_->next_wake();
    if (!wait) return false;
    advance(*wait);
    return true;
  }
  /// There was one failure. The reflector waits, and lists again from this resourceVersion.
  void expect_relist(const std::string& resource_version) {
    const std::size_t before = lists();
    EXPECT_EQ(errors_.size(), 1u);
    ASSERT_TRUE(back_off());
    ASSERT_EQ(lists(), before + 1);
    EXPECT_EQ(last_list().resource_version, resource_version);
  }
  /// The watch opens and fails; the reflector waits, and lists again.
  void list_after_a_failed_watch() {
    open_watch();
    fail_watch(api::StatusError::internal_error("oops"));
    EXPECT_TRUE(back_off());
  }
  void expect_list_after_a_failed_watch(const std::string& resource_version, int limit) {
    list_after_a_failed_watch();
    EXPECT_EQ(last_list().resource_version, resource_version);
    EXPECT_EQ(last_list().limit, limit);
  }
  void expect_stop() {
    stop_.request_stop();
    settle();
    EXPECT_TRUE(done_) << "it still runs";
    EXPECT_EQ(source_->open_watchers(), 0u);
    EXPECT_EQ(clock_->sleepers(), 0u);
  }
  void expect_stop_in_back_off() {
    settle();
    EXPECT_EQ(clock_->sleepers(), 1u);
    expect_stop();
  }

  std::size_t lists() const { return source_->lists().size(); }
  std::size_t watches() const { return source_->watches().size(); }
  const rest::ListOptions& last_list() const { return source_->lists().back(); }
  const rest::ListOptions& last_watch() const { return source_->watches().back(); }

  boost::asio::io_context context_;
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  const std::shared_ptr<FakeListerWatcher> source_ = std::make_shared<FakeListerWatcher>();
  RecordingStore store_;
  ReflectorOptions options_;
  std::shared_ptr<Reflector> reflector_;
  std::stop_source stop_;
  std::vector<std::string> errors_;
  bool done_ = false;
};

}  // namespace lookout::cache::test

namespace lookout::cache {

// The names that tests of reflectors use.
using namespace std::chrono_literals;
using api::EventType;
using api::StatusError;
using rest::TransportError;
using test::object_of_kind;
using test::pod;
using test::ReflectorTest;
using test::transport_error;
using testing::Ge;
using testing::Le;
using Kind = TransportError::Kind;

/// A response of the server, with a name for the test.
struct Refusal {
  const char* name;
  api::StatusError error;
};

}  // namespace lookout::cache
