#include "lookout/tools/record/event_broadcaster.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/k8s/events/v1.h"
#include "lookout/rest/error.h"
#include "lookout/testing/fake_clock.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"

namespace lookout::record {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

/// Records writes, and responds as the test configures.
class FakeSink : public EventSink {
 public:
  struct Call {
    bool create = false;
    std::string name;
    api::Object event;  // the created event
    std::string patch;
  };
  /// Throws to fail the write.
  using Answer = std::function<void(const Call&)>;

  Awaitable<void> create(api::Object event, rest::CallOptions call) override {
    const std::string name(event.name());
    return take({true, name, std::move(event), ""}, std::move(call));
  }
  Awaitable<void> patch(std::string, std::string name, std::string patch,
                        rest::CallOptions call) override {
    return take({false, std::move(name), api::Object(), std::move(patch)}, std::move(call));
  }

  void answer(Answer given) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(given);
  }
  std::vector<Call> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  std::size_t count() const { return calls().size(); }
  /// Makes requests hang until they are cancelled.
  void hang() { hangs_ = true; }

 private:
  Awaitable<void> take(Call made, rest::CallOptions call) {
    Answer reply;
    {
      const std::lock_guard lock(mutex_);
      calls_.push_back(made);
      reply = answer_;
    }
    while (hangs_ && !call.stop.stop_requested())
      co_await Clock::real()->sleep(std::chrono::hours(1), call.stop);
    if (call.stop.stop_requested())
      throw rest::TransportError(rest::TransportError::Kind::kCancelled, "cancelled");
    if (reply) reply(made);
  }

  std::atomic<bool> hangs_{false};
  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  Answer answer_;
};

ObjectReference pod_reference(std::string name = "foo") {
  ObjectReference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.ns = "baz";
  out.name = std::move(name);
  out.uid = "bar";
  return out;
}

Event make_event(std::string reason = "Started", std::string note = "some verbose message: 1") {
  Event event;
  event.regarding = pod_reference();
  event.reason = std::move(reason);
  event.note = std::move(note);
  return event;
}

class EventBroadcasterTest : public testing::Test {
 protected:
  EventBroadcasterTest() {
    options_.clock = clock_;
    options_.wall_clock = [clock = clock_] {
      return api::Time(
          std::chrono::duration_cast<std::chrono::microseconds>(clock->now().time_since_epoch()));
    };
    options_.seed = 7;
  }

  EventBroadcaster& broadcaster() {
    if (!broadcaster_) broadcaster_ = std::make_unique<EventBroadcaster>(loop_, sink_, options_);
    return *broadcaster_;
  }
  std::shared_ptr<EventRecorder> recorder() {
    if (!recorder_) recorder_ = broadcaster().recorder({.component = "eventTest"});
    return recorder_;
  }
  /// Waits for this many requests and returns the last one.
  FakeSink::Call call(std::size_t number) {
    EXPECT_TRUE(eventually([&] { return sink_->count() >= number; }));
    const auto calls = sink_->calls();
    EXPECT_EQ(calls.size(), number);
    return calls.at(number - 1);
  }
  /// The server does not have the events that were written before.
  void forget_events() {
    sink_->answer([](const FakeSink::Call& made) {
      if (!made.create) throw api::StatusError::not_found("", "events", made.name);
    });
  }
  /// Records an event whose first write fails, and waits until the next attempt is due later.
  void fail_once() {
    sink_->answer([](const FakeSink::Call&) { throw std::runtime_error("fake error"); });
    recorder()->record(make_event());
    call(1);
    ASSERT_TRUE(eventually([&] { return clock_->sleepers() == 1; }));
  }
  double metric(const std::string& name, const std::string& reason = {}) {
    std::vector<metrics::Sample> samples;
    broadcaster().collect(samples);
    for (const metrics::Sample& sample : samples) {
      if (sample.name != name) continue;
      if (reason.empty() || sample.labels.back().second == reason) return sample.value;
    }
    return -1;
  }

  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(2);
  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  const std::shared_ptr<FakeSink> sink_ = std::make_shared<FakeSink>();
  BroadcasterOptions options_;
  std::unique_ptr<EventBroadcaster> broadcaster_;
  std::shared_ptr<EventRecorder> recorder_;
};

/// The fields that the events of both APIs have.
template <class Made>
void expect_common_fields(const Made& made) {
  EXPECT_EQ(made.ns(), "baz");
  EXPECT_THAT(std::string(made.name()), StartsWith("foo."));
  EXPECT_EQ(made.annotations()["a/b"].as_string(), "c");
  EXPECT_EQ(made.related().name(), "second");
  EXPECT_EQ(made.reason(), "Started");
}

/// Events of core/v1.
using CoreEventsTest = EventBroadcasterTest;

TEST_F(CoreEventsTest, AnEventIsCreatedWithAllFields) {
  Event event = make_event();
  event.regarding.field_path = "spec.containers[2]";
  event.related = pod_reference("second");
  event.annotations = {{"a/b", "c"}};
  event.type = EventType::kWarning;
  recorder()->record(event);
  const k8s::core::v1::Event made(call(1).event);
  expect_common_fields(made);
  EXPECT_EQ(made.involved_object().kind(), "Pod");
  EXPECT_EQ(made.involved_object().api_version(), "v1");
  EXPECT_EQ(made.involved_object().namespace_(), "baz");
  EXPECT_EQ(made.involved_object().name(), "foo");
  EXPECT_EQ(made.involved_object().uid(), "bar");
  EXPECT_EQ(made.involved_object().field_path(), "spec.containers[2]");
  EXPECT_EQ(made.type(), "Warning");
  EXPECT_EQ(made.message(), "some verbose message: 1");
  EXPECT_EQ(made.source().component(), "eventTest");
  EXPECT_EQ(made.reporting_component(), "eventTest");
  EXPECT_EQ(made.count(), 1);
  EXPECT_EQ(made.first_timestamp(), made.last_timestamp());
  EXPECT_TRUE(made.first_timestamp().has_value());
}

TEST_F(CoreEventsTest, ARepetitionPatchesTheCount) {
  recorder()->record(make_event());
  const FakeSink::Call first = call(1);
  clock_->advance(1s);
  recorder()->record(make_event());
  const FakeSink::Call second = call(2);
  EXPECT_FALSE(second.create);
  EXPECT_EQ(second.name, first.name);
  const auto patch = api::Object::parse(second.patch);
  EXPECT_EQ(patch["count"].as_int(), 2);
  EXPECT_EQ(patch["message"].as_string(), "some verbose message: 1");
  EXPECT_EQ(patch["lastTimestamp"].as_string(), "1970-02-11T16:00:01Z");
  // An object with another uid is another object.
  Event other = make_event();
  other.regarding.uid = "differentUid";
  recorder()->record(other);
  EXPECT_TRUE(call(3).create);
}

TEST_F(CoreEventsTest, AnEventOfAClusterScopedObjectIsInDefault) {
  Event event = make_event();
  event.regarding.ns.clear();
  recorder()->record(event);
  const k8s::core::v1::Event made(call(1).event);
  EXPECT_EQ(made.ns(), "default");
  EXPECT_EQ(made.involved_object().namespace_(), "");
}

TEST_F(CoreEventsTest, ADeletedEventIsRecreated) {
  recorder()->record(make_event());
  call(1);
  forget_events();
  recorder()->record(make_event());
  const FakeSink::Call again = call(3);
  EXPECT_TRUE(again.create);
  EXPECT_EQ(k8s::core::v1::Event(again.event).count(), 2);
  EXPECT_EQ(again.event.resource_version(), "");
}

TEST_F(CoreEventsTest, ARejectionIsNotRetried) {
  sink_->answer([](const FakeSink::Call& made) {
    throw api::StatusError::forbidden("", "events", made.name, "no");
  });
  recorder()->record(make_event());
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_dropped_total", "refused") == 1; }));
  EXPECT_EQ(sink_->count(), 1U);
}

TEST_F(CoreEventsTest, AnInvalidRequestIsNotRetried) {
  sink_->answer([](const FakeSink::Call&) { throw InvalidArgument("no such path"); });
  recorder()->record(make_event());
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_dropped_total", "refused") == 1; }));
  EXPECT_EQ(sink_->count(), 1U);
}

TEST_F(CoreEventsTest, FailuresAreTriedTwelveTimes) {
  const std::vector<FakeSink::Answer> failures = {
      [](const FakeSink::Call&) {
        throw rest::TransportError(rest::TransportError::Kind::kRefused, "nobody");
      },
      [](const FakeSink::Call&) { throw api::DecodeError("no JSON"); },
      [](const FakeSink::Call&) { throw std::runtime_error("fake error"); },
      [](const FakeSink::Call&) { throw api::StatusError::internal_error("etcd is gone"); },
      [](const FakeSink::Call&) { throw api::StatusError::too_many_requests("slowly", 1); },
  };
  clock_->skip_sleeps_below(1min);
  std::size_t tried = 0;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    sink_->answer(failures[i]);
    recorder()->record(make_event("Started", "message " + std::to_string(i)));
    ASSERT_TRUE(eventually([&] {
      return metric("event_recorder_dropped_total", "retries_exhausted") ==
             static_cast<double>(i + 1);
    }));
    tried += 12;
    EXPECT_EQ(sink_->count(), tried) << i;
    EXPECT_EQ(metric("event_recorder_retries_total"), 11.0 * static_cast<double>(i + 1));
  }
  // The first pause is a random part of ten seconds, so that clients do not retry at the same time.
  const auto slept = clock_->slept();
  ASSERT_GE(slept.size(), 11U);
  EXPECT_LT(slept[0], 10s);
  for (std::size_t i = 1; i < 11; ++i) EXPECT_EQ(slept[i], 10s);
}

TEST_F(CoreEventsTest, ALostResponseDoesNotLoseTheEvent) {
  clock_->skip_sleeps_below(1min);
  std::atomic<int> tries{0};
  sink_->answer([&](const FakeSink::Call& made) {
    if (++tries == 1) throw rest::TransportError(rest::TransportError::Kind::kBroken, "reset");
    throw api::StatusError::already_exists("", "events", made.name);
  });
  recorder()->record(make_event());
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_writes_total") == 1; }));
  EXPECT_EQ(tries, 2);
}

TEST_F(CoreEventsTest, ManyEventsAreAllWrittenDespiteFailures) {
  clock_->skip_sleeps_below(1min);
  constexpr int kEvents = 1000;
  std::map<std::string, int> attempts;  // on the strand
  sink_->answer([&](const FakeSink::Call& made) {
    if (++attempts[made.name] < 5) throw std::runtime_error("fake error");
  });
  std::atomic<int> seen{0};
  options_.on_event = [&](const RecordedEvent&) { ++seen; };
  std::vector<std::jthread> threads;
  threads.reserve(4);
  recorder();
  for (int part = 0; part < 4; ++part) {
    threads.emplace_back([&, part] {
      for (int i = part; i < kEvents; i += 4) {
        Event event = make_event("Reason" + std::to_string(i), std::to_string(i));
        event.regarding.name = "foo-" + std::to_string(i);
        recorder()->record(event);
      }
    });
  }
  threads.clear();
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_EQ(metric("event_recorder_writes_total"), kEvents);
  EXPECT_EQ(sink_->count(), 5U * kEvents);
  EXPECT_EQ(seen, kEvents);
}

TEST_F(CoreEventsTest, SimilarEventsAreCombinedAndSpamIsDropped) {
  for (int i = 0; i < 30; ++i)
    recorder()->record(make_event("Started", "message " + std::to_string(i)));
  ASSERT_TRUE(broadcaster().shutdown(1h));
  const auto calls = sink_->calls();
  ASSERT_EQ(calls.size(), 25U);
  EXPECT_EQ(k8s::core::v1::Event(calls[9].event).message(),
            "(combined from similar events): message 9");
  EXPECT_FALSE(calls[10].create);
  EXPECT_EQ(calls[10].name, calls[9].name);
  EXPECT_EQ(metric("event_recorder_dropped_total", "spam"), 5);
}

TEST_F(CoreEventsTest, TextsAreTruncated) {
  std::string note(1023, 'x');
  note += "\xC3\xA9";
  Event event = make_event(std::string(200, 'r'), note);
  event.action = std::string(200, 'a');
  event.annotations = {{"bytes", "\xFF"}};
  recorder()->record(event);
  const k8s::core::v1::Event made(call(1).event);
  EXPECT_EQ(made.message(), std::string(1023, 'x'));
  EXPECT_EQ(made.reason().size(), 128U);
  EXPECT_EQ(made.action().size(), 128U);
  EXPECT_EQ(made.annotations()["bytes"].as_string(), "\xEF\xBF\xBD");
}

TEST_F(CoreEventsTest, AnEventWithoutAnObjectIsDropped) {
  recorder()->normal(api::Object(), "Started", "nothing");
  recorder()->normal(api::Object::parse(R"({"metadata":{"name":"a"}})"), "Started", "untyped");
  EXPECT_EQ(metric("event_recorder_dropped_total", "invalid"), 2);
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_EQ(sink_->count(), 0U);
}

TEST_F(CoreEventsTest, AFullQueueDropsEventsWithoutBlocking) {
  options_.queue_size = 3;
  sink_->hang();
  recorder()->record(make_event("Reason0"));
  call(1);  // taken from the queue
  for (int i = 1; i < 10; ++i) recorder()->record(make_event("Reason" + std::to_string(i)));
  EXPECT_EQ(metric("event_recorder_dropped_total", "queue_full"), 6);
  EXPECT_EQ(metric("event_recorder_queue_length"), 3);
  EXPECT_FALSE(broadcaster().shutdown(0ms));
  EXPECT_EQ(metric("event_recorder_dropped_total", "shutdown"), 4);
}

TEST_F(CoreEventsTest, AShutdownWritesQueuedEvents) {
  for (int i = 0; i < 20; ++i) recorder()->record(make_event("Reason" + std::to_string(i)));
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_EQ(sink_->count(), 20U);
  // After the shutdown events are dropped, and a second shutdown has no effect.
  recorder()->record(make_event());
  EXPECT_EQ(metric("event_recorder_dropped_total", "shutdown"), 1);
  EXPECT_EQ(sink_->count(), 20U);
  broadcaster().shutdown(1h);
}

TEST_F(CoreEventsTest, AShutdownEndsAtItsDeadline) {
  sink_->hang();
  recorder()->record(make_event());
  recorder()->record(make_event("Stopped"));
  call(1);
  auto ended = std::async(std::launch::async, [&] { return broadcaster().shutdown(5s); });
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 2; }));
  clock_->advance(4s);
  EXPECT_EQ(ended.wait_for(20ms), std::future_status::timeout);
  clock_->advance(1s);
  EXPECT_FALSE(test::get(ended));
  EXPECT_EQ(metric("event_recorder_dropped_total", "shutdown"), 2);
  EXPECT_EQ(sink_->count(), 1U);
}

TEST_F(CoreEventsTest, AShutdownMayHaveNoDeadline) {
  fail_once();
  auto ended = std::async(std::launch::async,
                          [&] { return broadcaster().shutdown(std::chrono::milliseconds::max()); });
  ASSERT_TRUE(eventually([&] { return clock_->sleepers() >= 3; })) << "no deadline";
  sink_->answer([](const FakeSink::Call&) {});
  clock_->advance(1min);
  EXPECT_TRUE(test::get(ended));
  EXPECT_EQ(sink_->count(), 2U);
}

TEST_F(CoreEventsTest, AShutdownEndsTheWaitBetweenTwoAttempts) {
  fail_once();
  EXPECT_FALSE(broadcaster().shutdown(0ms));
  EXPECT_EQ(sink_->count(), 1U);
}

TEST_F(CoreEventsTest, ARecorderMayOutliveTheBroadcaster) {
  const auto kept = recorder();
  broadcaster_.reset();
  kept->record(make_event());
  EXPECT_EQ(sink_->count(), 0U);
}

TEST_F(CoreEventsTest, RecordingAndAShutdownDoNotRace) {
  std::vector<std::jthread> threads;
  threads.reserve(8);
  recorder();
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k) recorder()->record(make_event("Reason" + std::to_string(k)));
    });
  }
  broadcaster().shutdown(1h);
  const auto after = sink_->count();
  threads.clear();
  EXPECT_EQ(sink_->count(), after);
}

TEST_F(CoreEventsTest, NothingRunsAfterTheDestructor) {
  auto alive = std::make_shared<std::atomic<bool>>(true);
  std::atomic<int> late{0};
  options_.on_event = [&, alive](const RecordedEvent&) {
    if (!*alive) ++late;
  };
  for (int i = 0; i < 100; ++i) recorder()->record(make_event("Reason" + std::to_string(i)));
  broadcaster_.reset();
  *alive = false;
  recorder_->record(make_event());
  EXPECT_EQ(late, 0);
}

TEST_F(CoreEventsTest, TwoBroadcastersHaveSeparateMetrics) {
  const auto other_sink = std::make_shared<FakeSink>();
  EventBroadcaster other(loop_, other_sink, options_);
  recorder()->record(make_event());
  recorder()->record(make_event());
  other.recorder({.component = "eventTest"})->record(make_event());
  EXPECT_FALSE(call(2).create);
  EXPECT_TRUE(other.shutdown(1h));
  ASSERT_EQ(other_sink->count(), 1U);
  EXPECT_TRUE(other_sink->calls()[0].create);
}

TEST_F(CoreEventsTest, CallbacksThatThrowDoNotEndTheBroadcaster) {
  options_.on_event = [](const RecordedEvent&) { throw std::runtime_error("no"); };
  recorder()->record(make_event());
  EXPECT_TRUE(call(1).create);
}

TEST_F(CoreEventsTest, ACorrelatorThatThrowsDropsOnlyItsEvent) {
  options_.correlator.spam_key = [](const RecordedEvent& event) -> std::string {
    if (event.reason == "Bad") throw std::runtime_error("no");
    if (event.reason == "Worse") throw 7;
    return event.reason;
  };
  recorder()->record(make_event("Bad"));
  recorder()->record(make_event("Worse"));
  recorder()->record(make_event("Good"));
  EXPECT_EQ(k8s::core::v1::Event(call(1).event).reason(), "Good");
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_EQ(metric("event_recorder_dropped_total", "invalid"), 2);
}

/// A clock whose next sleep or reading may fail.
class FragileClock : public Clock {
 public:
  explicit FragileClock(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}
  TimePoint now() const override {
    if (reading_fails.exchange(false)) throw 7;
    return clock_->now();
  }
  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
    if (sleep_fails.exchange(false)) throw std::runtime_error("no timers");
    return clock_->sleep(duration, std::move(stop));
  }
  mutable std::atomic<bool> reading_fails{false};
  std::atomic<bool> sleep_fails{false};

 private:
  const std::shared_ptr<Clock> clock_;
};

TEST_F(CoreEventsTest, AClockThatThrowsDropsOnlyItsEvent) {
  const auto clock = std::make_shared<FragileClock>(clock_);
  options_.clock = clock;
  sink_->answer([](const FakeSink::Call& made) {
    if (k8s::core::v1::Event(made.event).reason() == "Bad") throw std::runtime_error("no");
  });
  clock->sleep_fails = true;
  recorder()->record(make_event("Bad"));
  recorder()->record(make_event("Good"));
  EXPECT_EQ(k8s::core::v1::Event(call(2).event).reason(), "Good");
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_EQ(metric("event_recorder_dropped_total", "invalid"), 1);
}

TEST_F(CoreEventsTest, EachEventHasItsOwnName) {
  // More events than there are nanoseconds in the microsecond of the clock.
  constexpr std::size_t kEvents = 1100;
  options_.queue_size = kEvents;
  std::set<std::string> names;
  options_.on_event = [&](const RecordedEvent& event) { names.insert(event.name); };
  for (std::size_t i = 0; i < kEvents; ++i) recorder()->record(make_event());
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_EQ(names.size(), kEvents);
  EXPECT_EQ(metric("event_recorder_events_total"), static_cast<double>(kEvents));
}

TEST_F(CoreEventsTest, TheNoteOfACombinedEventIsLimited) {
  for (int i = 0; i < 10; ++i)
    recorder()->record(make_event("Started", std::to_string(i) + std::string(1023, 'x')));
  ASSERT_TRUE(broadcaster().shutdown(1h));
  const auto calls = sink_->calls();
  ASSERT_EQ(calls.size(), 10U);
  const auto note = std::string(k8s::core::v1::Event(calls[9].event).message());
  EXPECT_THAT(note, StartsWith("(combined from similar events): 9xxx"));
  EXPECT_EQ(note.size(), 1024U);
}

TEST_F(CoreEventsTest, AnotherEventOfTheSameNameIsARefusal) {
  sink_->answer([](const FakeSink::Call& made) {
    throw api::StatusError::already_exists("", "events", made.name);
  });
  recorder()->record(make_event());
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_dropped_total", "refused") == 1; }));
  EXPECT_EQ(metric("event_recorder_writes_total"), 0);
}

TEST_F(CoreEventsTest, ADestructorOnTheEventLoopEndsTheWrites) {
  fail_once();
  std::promise<void> gone;
  boost::asio::post(loop_->context(), [&] {
    broadcaster_.reset();
    gone.set_value();
  });
  test::wait_for(gone.get_future());
  EXPECT_TRUE(eventually([&] { return clock_->sleepers() == 0; }));
  EXPECT_EQ(sink_->count(), 1U);
}

TEST_F(CoreEventsTest, RejectsInvalidOptions) {
  options_.queue_size = 0;
  EXPECT_THROW(EventBroadcaster(loop_, sink_, options_), InvalidArgument);
  options_ = BroadcasterOptions();
  options_.attempts = 0;
  EXPECT_THROW(EventBroadcaster(loop_, sink_, options_), InvalidArgument);
  options_ = BroadcasterOptions();
  options_.clock = nullptr;
  EXPECT_THROW(EventBroadcaster(loop_, sink_, options_), InvalidArgument);
}

/// Events of events.k8s.io/v1.
class SeriesEventsTest : public EventBroadcasterTest {
 protected:
  SeriesEventsTest() { options_.api = EventsApi::kEvents; }

  /// Records an event twice: it is created, and then becomes a series.
  void begin_series() {
    recorder()->record(make_event());
    call(1);
    recorder()->record(make_event());
    call(2);
  }
};

TEST_F(SeriesEventsTest, AnEventIsCreatedWithAllFields) {
  Event event = make_event();
  event.regarding.field_path = ".spec.containers[1]";
  event.related = pod_reference("second");
  event.annotations = {{"a/b", "c"}};
  event.action = "started";
  recorder()->record(event);
  const k8s::events::v1::Event made(call(1).event);
  EXPECT_EQ(made.api_version(), "events.k8s.io/v1");
  expect_common_fields(made);
  EXPECT_EQ(made.regarding().name(), "foo");
  EXPECT_EQ(made.regarding().field_path(), ".spec.containers[1]");
  EXPECT_EQ(made.type(), "Normal");
  EXPECT_EQ(made.action(), "started");
  EXPECT_EQ(made.note(), "some verbose message: 1");
  EXPECT_EQ(made.reporting_controller(), "eventTest");
  EXPECT_THAT(std::string(made.reporting_instance()), StartsWith("eventTest-"));
  EXPECT_TRUE(made.event_time().has_value());
  EXPECT_FALSE(made.series());
}

TEST_F(SeriesEventsTest, TheSecondEventPatchesASeries) {
  Event event = make_event();
  event.action = "started";
  recorder()->record(event);
  const FakeSink::Call first = call(1);
  clock_->advance(1s);
  event.note = "another note";  // the note does not distinguish events
  recorder()->record(event);
  const FakeSink::Call second = call(2);
  EXPECT_FALSE(second.create);
  EXPECT_EQ(second.name, first.name);
  const auto patch = api::Object::parse(second.patch);
  EXPECT_EQ(patch["series"]["count"].as_int(), 2);
  EXPECT_EQ(patch["series"]["lastObservedTime"].as_string(), "1970-02-11T16:00:01.000000Z");
  // An event with another action is another event.
  event.action = "stopped";
  recorder()->record(event);
  EXPECT_TRUE(call(3).create);
}

TEST_F(SeriesEventsTest, TheActionDefaultsToTheReason) {
  recorder()->record(make_event());
  EXPECT_EQ(k8s::events::v1::Event(call(1).event).action(), "Started");
}

TEST_F(SeriesEventsTest, AnEndedSeriesIsWrittenOnceMore) {
  begin_series();
  for (int i = 0; i < 5; ++i) recorder()->record(make_event());
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_queue_length") == 0; }));
  ASSERT_TRUE(eventually([&] {
    if (sink_->count() < 3) clock_->advance(1min);
    return sink_->count() >= 3;
  }));
  EXPECT_THAT(call(3).patch, HasSubstr("\"count\":7"));
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_series") == 0; }));
  // The next event starts a new series.
  recorder()->record(make_event());
  EXPECT_TRUE(call(4).create);
}

TEST_F(SeriesEventsTest, ASeriesOfADeletedEventIsCreated) {
  recorder()->record(make_event());
  call(1);
  forget_events();
  recorder()->record(make_event());
  const k8s::events::v1::Event again(call(3).event);
  EXPECT_EQ(again.series().count(), 2);
  EXPECT_TRUE(again.series().last_observed_time().has_value());
}

TEST_F(SeriesEventsTest, ASeriesWhoseEventExistsIsPatched) {
  clock_->skip_sleeps_below(1min);
  recorder()->record(make_event());
  call(1);
  std::atomic<int> number{0};
  sink_->answer([&](const FakeSink::Call& made) {
    const int at = ++number;
    if (at == 1) throw api::StatusError::not_found("", "events", made.name);
    if (at == 2) throw api::StatusError::already_exists("", "events", made.name);
  });
  recorder()->record(make_event());
  const FakeSink::Call last = call(4);
  EXPECT_FALSE(last.create);
}

TEST_F(SeriesEventsTest, AClockThatThrowsDropsOnlyItsEvent) {
  const auto clock = std::make_shared<FragileClock>(clock_);
  options_.clock = clock;
  options_.max_requests = 1;
  sink_->answer([](const FakeSink::Call& made) {
    if (k8s::events::v1::Event(made.event).reason() == "Bad") throw std::runtime_error("no");
  });
  clock->sleep_fails = true;
  recorder()->record(make_event("Bad"));
  call(1);
  clock->reading_fails = true;
  recorder()->record(make_event("Worse"));
  EXPECT_EQ(k8s::events::v1::Event(call(2).event).reason(), "Worse");
  // When the write of an event ends, its series asks for the time.
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_writes_total") == 1; }));
  clock->reading_fails = true;
  recorder()->record(make_event("Good"));
  EXPECT_EQ(k8s::events::v1::Event(call(3).event).reason(), "Good");
  EXPECT_TRUE(broadcaster().shutdown(1h));
}

TEST_F(SeriesEventsTest, EvictedObservationsAreCounted) {
  options_.max_series = 1;
  recorder()->record(make_event());
  call(1);
  recorder()->record(make_event());
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_writes_total") == 2; }));
  for (int i = 0; i < 3; ++i) recorder()->record(make_event());
  recorder()->record(make_event("Another"));
  EXPECT_TRUE(call(3).create);
  EXPECT_EQ(metric("event_recorder_dropped_total", "series_evicted"), 3);
}

TEST_F(SeriesEventsTest, AShutdownWritesTheLastCount) {
  begin_series();
  for (int i = 0; i < 8; ++i) recorder()->record(make_event());
  EXPECT_TRUE(broadcaster().shutdown(1h));
  EXPECT_THAT(call(3).patch, HasSubstr("\"count\":10"));
}

TEST_F(SeriesEventsTest, AHangingWriteDoesNotBlockOtherSeries) {
  sink_->hang();
  for (int i = 0; i < 20; ++i) {
    Event event = make_event();
    event.regarding.name = "foo-" + std::to_string(i);
    recorder()->record(event);
  }
  // The number of concurrent writes is limited by the options.
  ASSERT_TRUE(eventually([&] { return sink_->count() == 8; }));
  ASSERT_TRUE(eventually([&] { return metric("event_recorder_queue_length") == 0; }));
  EXPECT_EQ(sink_->count(), 8U);
  EXPECT_FALSE(broadcaster().shutdown(0ms));
  EXPECT_EQ(metric("event_recorder_dropped_total", "shutdown"), 20);
}

/// With the embedded server.
class ServedEventsTest : public testing::TestWithParam<EventsApi> {
 protected:
  /// The event that is written after the same one was recorded several times, as "count uid: text".
  std::string recorded(int times, const api::Object& about) {
    BroadcasterOptions options;
    options.api = GetParam();
    EventBroadcaster broadcaster(client_, options);
    const auto recorder = broadcaster.recorder({.component = "website"});
    for (int i = 0; i < times; ++i) recorder->normal(about, "Changed", "the colour is blue");
    EXPECT_TRUE(broadcaster.shutdown(30s));
    std::vector<std::string> out;
    if (GetParam() == EventsApi::kCore) {
      for (const auto& event : client_.resource<k8s::core::v1::Event>("default").list().items)
        out.push_back(fmt::format("{} {}: {}", event.count().value_or(0),
                                  event.involved_object().uid(), event.message()));
    } else {
      for (const auto& event : client_.resource<k8s::events::v1::Event>("default").list().items)
        out.push_back(fmt::format("{} {}: {}", event.series().count(), event.regarding().uid(),
                                  event.note()));
    }
    EXPECT_EQ(out.size(), 1U);
    return out.empty() ? "" : out.front();
  }

  const apiserver::Server server_;
  const rest::Client client_{server_.client_config()};
};

TEST_P(ServedEventsTest, AreWrittenAndCounted) {
  const auto maps = client_.resource<k8s::core::v1::ConfigMap>("default");
  const auto map = maps.create(k8s::core::v1::ConfigMap::draft("settings", "default"));
  EXPECT_EQ(recorded(3, map), fmt::format("3 {}: the colour is blue", map.uid()));
}

TEST_P(ServedEventsTest, OfClusterScopedObjectsAreInDefault) {
  const auto ns = client_.resource<k8s::core::v1::Namespace>().get("default");
  EXPECT_EQ(recorded(2, ns), fmt::format("2 {}: the colour is blue", ns.uid()));
}

TEST_P(ServedEventsTest, AreFoundByTheFieldSelector) {
  BroadcasterOptions options;
  options.api = GetParam();
  EventBroadcaster broadcaster(client_, options);
  const auto recorder = broadcaster.recorder({.component = "website"});
  Event event = make_event();
  event.regarding.ns = "default";
  recorder->record(event);
  event.regarding.name = "other";
  recorder->record(event);
  ASSERT_TRUE(broadcaster.shutdown(30s));
  rest::ListOptions list;
  ObjectReference regarding;
  regarding.kind = "Pod";
  regarding.name = "other";
  std::vector<std::string> found;
  if (GetParam() == EventsApi::kCore) {
    list.field_selector = field_selector("v1", regarding);
    for (const auto& item : client_.resource<k8s::core::v1::Event>("default").list(list).items)
      found.emplace_back(item.involved_object().name());
  } else {
    list.field_selector = field_selector("events.k8s.io/v1", regarding);
    for (const auto& item : client_.resource<k8s::events::v1::Event>("default").list(list).items)
      found.emplace_back(item.regarding().name());
  }
  EXPECT_THAT(found, ElementsAre("other"));
}

INSTANTIATE_TEST_SUITE_P(BothApis, ServedEventsTest,
                         testing::Values(EventsApi::kCore, EventsApi::kEvents),
                         [](const auto& given) {
                           return given.param == EventsApi::kCore ? "Core" : "Events";
                         });

}  // namespace
}  // namespace lookout::record
