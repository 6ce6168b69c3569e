// The documented behaviour of the etcd watcher, with a real etcd and with a scripted one.
#include "apiserver/storage/etcd3/watcher.h"

#include <atomic>
#include <mutex>
#include <tuple>

#include "apiserver/storage/etcd3/block_logger.h"
#include "lookout/api/status.h"
#include "tests/apiserver/grpc/grpc_server.h"
#include "tests/apiserver/storage/etcd3/etcd_answers.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/apiserver/storage/etcd3/tested_etcd.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using test::eventually;
using test::GrpcCall;

api::Status status_of(const Event& event) {
  EXPECT_EQ(event.type, api::EventType::kError);
  return api::Status::from(event.object).value_or(api::Status{});
}

// --- with a real etcd, and with the model of one

class WatcherFixture : public testing::Test {
 protected:
  virtual test::TestedEtcd tested() const = 0;
  void SetUp() override {
    const std::string missing = tested().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    pods_ = std::make_unique<EtcdStore>(options_for(test::reach_shared(tested())), prefix_);
  }
  EtcdStore& pods() { return *pods_; }
  std::string whole(const std::string& key) const { return prefix_ + "/pods/" + key; }
  /// A watch that receives only the deletion of this value, which is not an object.
  auto watch_deletion(const std::string& key, std::string value) {
    pods().etcd().put(whole(key), std::move(value));
    auto watch = pods()->watch("", from_revision(pods()->current_revision()));
    auto& etcd = pods().etcd();
    etcd.run(etcd->remove(whole(key)));
    return watch;
  }

  const std::string prefix_ = test::unique_etcd_prefix();
  std::unique_ptr<EtcdStore> pods_;
};

class WatcherTest : public WatcherFixture, public testing::WithParamInterface<test::TestedEtcd> {
  test::TestedEtcd tested() const override { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Etcds, WatcherTest, testing::ValuesIn(test::kAllEtcds),
                         [](const auto& test) { return std::string(test.param.name); });

struct Transition {
  const char* name;
  const char* before;  // empty: absent
  const char* after;
  const char* event;  // in a watch of app=x; empty: none
};
void PrintTo(const Transition& transition, std::ostream* out) { *out << transition.name; }

class TransitionTest
    : public WatcherFixture,
      public testing::WithParamInterface<std::tuple<test::TestedEtcd, Transition>> {
  test::TestedEtcd tested() const override { return std::get<0>(GetParam()); }
};

TEST_P(TransitionTest, DependsOnOldAndNewMembership) {
  const Transition& t = std::get<1>(GetParam());
  if (*t.before != '\0') pods()->create("n/a", pod("a", t.before));
  WatchOptions options = from_revision(pods()->current_revision());
  options.predicate = app_is("x");
  auto watch = pods()->watch("", options);
  api::Object last;
  if (*t.after == '\0') {
    last = pods()->remove("n/a");
  } else if (*t.before == '\0') {
    last = pods()->create("n/a", pod("a", t.after));
  } else {
    last = pods()->update("n/a", [&](const api::Object&) { return pod("a", t.after, "changed"); });
  }
  // The next event shows that nothing else arrives.
  pods()->create("n/z", pod("z", "x"));
  std::vector<std::string> expected;
  if (*t.event != '\0') expected.push_back(std::string(t.event) + " n/a");
  expected.push_back("ADDED n/z");
  const auto events = watch->take_events(expected.size());
  ASSERT_EQ(describe(events), expected);
  if (*t.event == '\0') return;
  EXPECT_EQ(events[0].revision, revision_of(last));
  EXPECT_EQ(events[0].object.resource_version(), last.resource_version());
  const bool old_state = events[0].type == api::EventType::kDeleted;
  EXPECT_EQ(events[0].object.labels()["app"].as_string(), old_state ? t.before : t.after);
}

INSTANTIATE_TEST_SUITE_P(
    Watcher, TransitionTest,
    testing::Combine(testing::ValuesIn(test::kAllEtcds),
                     testing::Values(Transition{"CreatedInside", "", "x", "ADDED"},
                                     Transition{"CreatedOutside", "", "y", ""},
                                     Transition{"ChangedInside", "x", "x", "MODIFIED"},
                                     Transition{"Left", "x", "y", "DELETED"},
                                     Transition{"Entered", "y", "x", "ADDED"},
                                     Transition{"ChangedOutside", "y", "y", ""},
                                     Transition{"DeletedInside", "x", "", "DELETED"},
                                     Transition{"DeletedOutside", "y", "", ""})),
    [](const auto& test) {
      return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name;
    });

TEST_P(WatcherTest, ProgressNotificationsBecomeBookmarks) {
  const Revision start = pods()->current_revision();
  TestThread thread;
  const auto open = [&]() -> Awaitable<std::unique_ptr<Watch>> {
    const auto reader = co_await boost::asio::this_coro::executor;
    co_return pods().store().watch_all(start, pods().etcd()->lineage(), reader);
  };
  auto watch = thread.run(open());
  // A change that the watch does not receive.
  const Revision other = pods().etcd().put(prefix_ + "/other", "x");
  std::vector<Event> events;
  Revision told = 0;
  while (told < other) {
    ASSERT_TRUE(thread.run(watch->next(events, Watch::TimePoint::max())));
    for (const Event& event : events) {
      ASSERT_EQ(event.type, api::EventType::kBookmark);
      told = event.revision;
    }
  }
  const auto let_go = [&]() -> Awaitable<void> {
    watch.reset();
    co_return;
  };
  thread.run(let_go());
}

TEST_P(WatcherTest, BookmarksAreSentOnRequest) {
  auto watch = pods()->watch("", from_revision(pods()->current_revision()));
  const Revision other = pods().etcd().put(prefix_ + "/other", "x");
  EXPECT_TRUE(eventually([&] {
    watch->request_bookmark();
    const auto events = watch->poll();
    return !events.empty() && events[0].type == api::EventType::kBookmark &&
           events[0].revision >= other;
  }));
}

TEST_P(WatcherTest, AWatchOfACompactedRevisionGetsOneErrorAndEnds) {
  pods()->create("n/a", pod("a"));
  const Revision start = pods()->current_revision();
  for (int i = 0; i < 3; ++i)
    pods()->update("n/a", [&](const api::Object&) { return pod("a", std::to_string(i)); });
  auto& etcd = pods().etcd();
  etcd.run(etcd->compact(pods()->current_revision()));
  const auto events = pods()->watch("", from_revision(start))->take_until_the_end();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(status_of(events[0]).code, 410);
  EXPECT_EQ(status_of(events[0]).reason, "Expired");
}

// etcd rejects a watch from before a compacted revision. A watch from that revision on is accepted,
// but the values before it are lost, and in versions up to 3.4.33 and 3.5.15 the deletions as well.
TEST_P(WatcherTest, ChangesCompactedRightAfterTheStartAreNotLost) {
  for (const bool deleted : {true, false}) {
    const std::string key = deleted ? "n/a" : "n/b";
    pods()->create(key, pod(key.substr(2)));
    const Revision start = pods()->current_revision();
    if (deleted) {
      pods()->remove(key);
    } else {
      pods()->update(key, [](const api::Object&) { return pod("b", "changed"); });
    }
    auto& etcd = pods().etcd();
    etcd.run(etcd->compact(start + 1));
    pods()->create(key + "-later", pod("later"));
    const auto events = pods()->watch("", from_revision(start))->take_until_the_end();
    ASSERT_THAT(events, SizeIs(1)) << key;
    EXPECT_EQ(status_of(events[0]).code, 410) << key;
  }
}

TEST_P(WatcherTest, ACompactionDoesNotAffectACurrentWatch) {
  auto watch = pods()->watch("", {});
  pods()->create("n/a", pod("a"));
  EXPECT_EQ(watch->take(1).at(0), "ADDED n/a");
  auto& etcd = pods().etcd();
  etcd.run(etcd->compact(pods()->current_revision()));
  pods()->remove("n/a");
  EXPECT_EQ(watch->take(1).at(0), "DELETED n/a");
}

TEST_P(WatcherTest, AnUnreadableValueEndsTheWatchAndIsNamed) {
  auto watch = pods()->watch("", from_revision(pods()->current_revision()));
  pods()->create("n/a", pod("a"));
  pods().etcd().put(whole("n/bad"), "nonsense");
  pods()->create("n/b", pod("b"));
  const auto events = watch->take_until_the_end();
  ASSERT_THAT(describe(events), ElementsAre("ADDED n/a", "ERROR"));
  EXPECT_EQ(status_of(events[1]).code, 500);
  EXPECT_EQ(status_of(events[1]).reason, "InternalError");
  EXPECT_THAT(status_of(events[1]).message, HasSubstr(whole("n/bad")));
}

TEST_P(WatcherTest, ADeletionOfAnUnreadableValueIsReported) {
  auto watch = watch_deletion("n/bad", "nonsense");
  const auto events = watch->take_until_the_end();
  ASSERT_THAT(describe(events), ElementsAre("ERROR"));
  EXPECT_EQ(status_of(events[0]).reason, "StorageReadError");
  EXPECT_THAT(status_of(events[0]).message, HasSubstr("saw a DELETED event"));
  EXPECT_THAT(status_of(events[0]).message, HasSubstr(whole("n/bad")));
}

TEST_P(WatcherTest, ADeletionOfAnEmptyValueIsReported) {
  auto watch = watch_deletion("n/empty", "");
  EXPECT_EQ(watch->take(1).at(0), "ERROR");
}

TEST_P(WatcherTest, PreviousValuesAreDecodedOnlyIfNeeded) {
  pods().etcd().put(whole("n/a"), "nonsense");
  const Revision start = pods()->current_revision();
  const std::string good = json_codec()->encode(pod("a", "x"));
  pods().etcd().put(whole("n/a"), good);
  EXPECT_EQ(pods()->watch("", from_revision(start))->take(1).at(0), "MODIFIED n/a");
  WatchOptions selecting = from_revision(start);
  selecting.predicate = app_is("x");
  EXPECT_EQ(pods()->watch("", selecting)->take(1).at(0), "ERROR");
}

TEST_P(WatcherTest, TheStateIsOrderedByKeyAndPrecedesChanges) {
  for (const char* name : {"c", "a", "b"}) pods()->create(std::string("n/") + name, pod(name));
  WatchOptions options;
  options.initial_events_end = true;
  auto watch = pods()->watch("n/", options);
  pods()->remove("n/b");
  const auto events = watch->take_events(5);
  EXPECT_THAT(describe(events),
              ElementsAre("ADDED n/a", "ADDED n/b", "ADDED n/c", "BOOKMARK", "DELETED n/b"));
  EXPECT_LT(events[3].revision, events[4].revision);
}

TEST_P(WatcherTest, AStateOfTheFutureIsRejected) {
  WatchOptions options;
  options.revision = pods()->current_revision() + 100;
  try {
    pods()->watch("", options);
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_too_large_resource_version(e));
  }
}

TEST_P(WatcherTest, ALargeObjectArrivesComplete) {
  auto watch = pods()->watch("", {});
  const std::string note(1000000, 'x');
  const api::Object created = pods()->create("n/a", pod("a", "x", note));
  EXPECT_EQ(watch->take_events(1).at(0).object, created);
}

// --- with a scripted etcd

/// Each watch runs a script, in order.
class ScriptedEtcd {
 public:
  using Script = std::function<void(GrpcCall&)>;
  struct Request {
    std::uint64_t start = 0;
    std::string has_leader = {};
  };

  /// Watches are created at revision `created`: 100 is beyond the revisions of all watches.
  explicit ScriptedEtcd(std::vector<Script> scripts, std::uint64_t created = 100)
      : scripts_(std::move(scripts)),
        created_(created),
        server_([this](GrpcCall& call) { serve(call); }) {}

  std::string url() const { return server_.url(); }
  test::GrpcServer& server() { return server_; }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve(GrpcCall& call) {
    if (call.path() != "/etcdserverpb.Watch/Watch")
      return static_cast<void>(call.send(test::answer(4).text()));
    std::size_t index = 0;
    const std::string message = call.message().value_or("");
    {
      const std::lock_guard lock(mutex_);
      index = requests_.size();
      requests_.push_back({test::start_of(message), call.header("hasleader")});
    }
    call.send(test::created(created_).text());
    if (index < scripts_.size()) scripts_[index](call);
    call.wait_for_end();
  }

  const std::vector<Script> scripts_;
  const std::uint64_t created_;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  test::GrpcServer server_;
};

test::Proto event_of(const std::string& name, std::uint64_t revision) {
  return test::put_event(test::key_value("/p/pods/n/" + name,
                                         json_codec()->encode(pod(name, std::to_string(revision))),
                                         revision, revision));
}

std::string message(std::uint64_t revision, const std::vector<test::Proto>& events,
                    bool fragment = false) {
  test::Proto out = test::answer(revision);
  if (fragment) out.number(7, 1);
  for (const test::Proto& event : events) out.message(11, event);
  return out.text();
}

TEST(ScriptedWatcherTest, ABrokenConnectionContinuesAfterTheLastEvent) {
  ScriptedEtcd etcd({[](GrpcCall& c) {
                       c.send(message(6, {event_of("a", 5), event_of("b", 6)}));
                       // The next message is truncated.
                       const std::string cut = grpc::framed(message(7, {event_of("c", 7)}));
                       c.send_raw(cut.substr(0, cut.size() / 2));
                       c.reset_connection();
                     },
                     [](GrpcCall& c) {
                       c.send(message(8, {event_of("c", 7), event_of("d", 8)}));
                       c.end();
                     },
                     [](GrpcCall& c) { c.send(message(9, {event_of("e", 9)})); }});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  auto watch = pods->watch("", from_revision(4));
  EXPECT_THAT(watch->take(5),
              ElementsAre("ADDED n/a", "ADDED n/b", "ADDED n/c", "ADDED n/d", "ADDED n/e"));
  const auto requests = etcd.requests();
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_EQ(requests[0].start, 5u);
  EXPECT_EQ(requests[1].start, 7u);
  EXPECT_EQ(requests[2].start, 9u);
  for (const auto& request : requests) EXPECT_EQ(request.has_leader, "true");
}

TEST(ScriptedWatcherTest, APartialRevisionIsCompletedWithoutRepetition) {
  const std::vector<test::Proto> all = {event_of("a", 7), event_of("b", 7), event_of("c", 7)};
  ScriptedEtcd etcd({[&](GrpcCall& c) {
                       c.send(message(7, {all[0], all[1]}, true));
                       c.reset(grpc::Http2Error::kInternal);
                     },
                     [&](GrpcCall& c) {
                       c.send(message(7, all));
                       c.send(message(8, {event_of("d", 8)}));
                     }});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  auto watch = pods->watch("", from_revision(4));
  const auto events = watch->take_events(4);
  EXPECT_THAT(describe(events), ElementsAre("ADDED n/a", "ADDED n/b", "ADDED n/c", "ADDED n/d"));
  EXPECT_TRUE(events[0].revision_continues);
  EXPECT_TRUE(events[1].revision_continues);
  EXPECT_FALSE(events[2].revision_continues);
  EXPECT_EQ(etcd.requests().at(1).start, 5u);
}

TEST(ScriptedWatcherTest, AFragmentedResponseIsOneRevision) {
  ScriptedEtcd etcd({[](GrpcCall& c) {
    c.send(message(7, {event_of("a", 7)}, true));
    c.send(message(7, {event_of("b", 7)}, false));
  }});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  const auto events = pods->watch("", from_revision(4))->take_events(2);
  EXPECT_TRUE(events.at(0).revision_continues);
  EXPECT_FALSE(events.at(1).revision_continues);
}

/// A way in which etcd ends a watch.
using Ending = std::function<void(GrpcCall&)>;
Ending says(test::Proto message) {
  return [text = message.text()](GrpcCall& call) { call.send(text); };
}
Ending ends(int code, std::string message) {
  return [code, message](GrpcCall& call) { call.end(code, message); };
}

/// An etcd whose watches accept only the latest token, after `good` tokens have been issued.
class EtcdWithUsers {
 public:
  EtcdWithUsers(int good, Ending refusal)
      : good_(good), refusal_(std::move(refusal)), server_([this](GrpcCall& call) {
          if (call.path() == "/etcdserverpb.Auth/Authenticate") {
            call.send(test::Proto().bytes(2, "t" + std::to_string(++tokens_)).text());
          } else if (call.path() == "/etcdserverpb.Watch/Watch") {
            watch(call);
          } else {
            call.send(test::answer(4).text());
          }
        }) {}

  EtcdOptions options() const {
    EtcdOptions out = options_of_user({server_.url()}, "ann", "secret");
    out.watch_cache = false;
    out.prefix = "/p";
    return out;
  }
  int tokens() const { return tokens_; }

 private:
  void watch(GrpcCall& call) {
    const int token = std::stoi(call.header("token").substr(1));
    const std::uint64_t revision = test::start_of(call.message().value_or(""));
    if (token < good_) {
      refusal_(call);
    } else {
      call.send(test::created(100).text());
      call.send(message(revision, {event_of("pod" + std::to_string(revision), revision)}));
      // The next watch needs another token.
      ++good_;
      refusal_(call);
    }
    call.wait_for_end();
  }

  std::atomic<int> good_;
  std::atomic<int> tokens_{0};
  const Ending refusal_;
  test::GrpcServer server_;
};

struct Refusal {
  const char* name;
  Ending how;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class RefusedTokenTest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedTokenTest, IsRenewedAndTheWatchContinues) {
  EtcdWithUsers etcd(2, GetParam().how);
  EtcdBackend backend(etcd.options());
  StorageClient pods(backend.resource("pods"));
  auto watch = pods.watch("", from_revision(4));
  EXPECT_THAT(watch->take(3), ElementsAre("ADDED n/pod5", "ADDED n/pod6", "ADDED n/pod7"));
}

INSTANTIATE_TEST_SUITE_P(
    Watcher, RefusedTokenTest,
    testing::Values(
        Refusal{"Canceled", says(test::canceled("rpc error: code = Unauthenticated desc = "
                                                "etcdserver: invalid auth token",
                                                0, true))},
        Refusal{"OldAuthRevision", says(test::canceled("rpc error: code = InvalidArgument desc = "
                                                       "etcdserver: revision of auth store is old",
                                                       0, true))},
        Refusal{"PermissionDeniedAsOlderOnesSay",
                says(test::canceled("rpc error: code = PermissionDenied desc = "
                                    "etcdserver: permission denied",
                                    0, true))},
        Refusal{"Error", ends(EtcdError::kUnauthenticated, "etcdserver: invalid auth token")}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ScriptedWatcherTest, ALearnerOrAChangeOfUsersDoesNotEndTheWatch) {
  ScriptedEtcd etcd(
      {ends(EtcdError::kFailedPrecondition, "etcdserver: rpc not supported for learner"),
       says(test::canceled("rpc error: code = InvalidArgument desc = etcdserver: "
                           "revision of auth store is old",
                           0, true)),
       [](GrpcCall& c) { c.send(message(5, {event_of("a", 5)})); }});
  // The user of a certificate, which has no token.
  EtcdStore pods(options_for({etcd.url()}), "/p");
  EXPECT_THAT(pods->watch("", from_revision(4))->take(1), ElementsAre("ADDED n/a"));
}

TEST(ScriptedWatcherTest, ATokenThatIsAlwaysRejectedEndsTheWatch) {
  for (const bool bad : {true, false}) {
    EtcdWithUsers etcd(1000,
                       bad ? ends(EtcdError::kUnauthenticated, "etcdserver: invalid auth token")
                           : ends(EtcdError::kPermissionDenied, "etcdserver: permission denied"));
    EtcdBackend backend(etcd.options());
    StorageClient pods(backend.resource("pods"));
    const auto events = pods.watch("", from_revision(4))->take_until_the_end();
    ASSERT_THAT(describe(events), ElementsAre("ERROR"));
    EXPECT_EQ(etcd.tokens(), bad ? 6 : 2);
  }
}

struct End {
  const char* name;
  Ending how;
  int code;
  const char* message;
};
void PrintTo(const End& end, std::ostream* out) { *out << end.name; }

class EndingTest : public testing::TestWithParam<End> {};

TEST_P(EndingTest, IsOneErrorAfterEarlierEvents) {
  ScriptedEtcd etcd({[](GrpcCall& c) {
    c.send(message(5, {event_of("a", 5)}));
    GetParam().how(c);
    c.send(message(6, {event_of("b", 6)}));
  }});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  const auto events = pods->watch("", from_revision(4))->take_until_the_end();
  ASSERT_THAT(describe(events), ElementsAre("ADDED n/a", "ERROR"));
  EXPECT_EQ(status_of(events[1]).code, GetParam().code);
  EXPECT_THAT(status_of(events[1]).message, HasSubstr(GetParam().message));
  EXPECT_TRUE(eventually([&] { return etcd.server().open_calls() == 0; }));
  EXPECT_THAT(etcd.requests(), SizeIs(1)) << "and it does not try again";
}

INSTANTIATE_TEST_SUITE_P(
    Watcher, EndingTest,
    testing::Values(
        End{"NoLeader", ends(EtcdError::kUnavailable, "etcdserver: no leader"), 500,
            "etcdserver: no leader"},
        End{"Compacted", says(test::canceled("", 9)), 410,
            "The resourceVersion for the provided watch is too old."},
        End{"Canceled", says(test::canceled("permission denied")), 500, "permission denied"},
        End{"NoPreviousValue",
            says(test::answer(6).message(11, test::put_event(test::key_value("/p/pods/n/c", "{}", 6,
                                                                             1)))),
            500, "PrevKv=nil (key=\"/p/pods/n/c\", modRevision=6, type=PUT)"},
        End{"CompactedAsAStatus",
            ends(EtcdError::kOutOfRange, "etcdserver: mvcc: required revision has been compacted"),
            410, "The resourceVersion for the provided watch is too old."},
        End{"NoMessage", [](GrpcCall& call) { call.send_raw("<html>"); }, 500,
            "did not answer as an etcd does"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ScriptedWatcherTest, AnEventOlderThanAProgressNotificationEndsTheWatch) {
  ScriptedEtcd etcd({[](GrpcCall& c) {
    c.send(message(6, {event_of("a", 6)}));
    c.send(message(8, {}));
    c.send(message(7, {event_of("b", 7)}));
  }});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  const auto events = pods->watch("", from_revision(4))->take_until_the_end();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(describe(events).front(), "ADDED n/a");
  ASSERT_EQ(events.back().type, api::EventType::kError);
  const auto status = api::Status::from(events.back().object);
  EXPECT_EQ(status->code, 410);
  EXPECT_EQ(status->message, "too old resource version: etcd reported its progress too early");
}

TEST(ScriptedWatcherTest, AnEtcdWithoutRevisionsInHeadersIsAccepted) {
  // Like kine: no cluster ID, no revision in the first response, and old ones in others.
  ScriptedEtcd etcd({[](GrpcCall& c) { c.send(message(105, {event_of("a", 105)})); }}, 0);
  EtcdStore pods(options_for({etcd.url()}), "/p");
  EXPECT_EQ(pods->watch("", from_revision(104))->take(1).at(0), "ADDED n/a");
}

TEST(ScriptedWatcherTest, AnUnreadWatchHasBackPressureAndDoesNotBlockOthers) {
  std::atomic<GrpcCall*> slow{nullptr};
  ScriptedEtcd etcd({[&](GrpcCall& c) {
                       slow = &c;
                       const std::string name(200, 'x');
                       for (std::uint64_t i = 5;; ++i) {
                         if (!c.send(message(i, {event_of(name + std::to_string(i), i)}))) break;
                       }
                     },
                     [](GrpcCall& c) { c.send(message(5, {event_of("a", 5)})); }});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  {
    auto watch = pods->watch("", from_revision(4));
    watch->take(1);
    EXPECT_TRUE(eventually([&] { return slow != nullptr && slow.load()->stalled(); }));
    // Two queues of 100, and the window of the stream.
    EXPECT_LT(slow.load()->written(), 4u << 20);
    // Other streams on the same connection are not affected.
    EXPECT_EQ(pods->watch("", from_revision(4))->take(1).at(0), "ADDED n/a");
    EXPECT_EQ(etcd.server().connections(), 1);
    // The delayed events and later ones arrive in order.
    const std::uint64_t held_back = slow.load()->written();
    std::int64_t revision = 5;
    while (slow.load()->written() < 2 * held_back) {
      const auto events = watch->take_events(500);
      ASSERT_THAT(events, SizeIs(500));
      for (const auto& event : events) ASSERT_EQ(event.revision, ++revision);
    }
  }
  EXPECT_TRUE(eventually([&] { return etcd.server().open_calls() == 0; }))
      << "a watch that is let go of leaves no stream";
}

TEST(ScriptedWatcherTest, CancellingEndsItWithoutAnError) {
  ScriptedEtcd etcd({});
  EtcdStore pods(options_for({etcd.url()}), "/p");
  auto watch = pods->watch("", from_revision(4));
  EXPECT_TRUE(eventually([&] { return !etcd.requests().empty(); }));
  watch->cancel();
  EXPECT_THAT(watch->take_until_the_end(), SizeIs(0));
  EXPECT_TRUE(eventually([&] { return etcd.server().open_calls() == 0; }));
}

// --- reports of slow watchers

TEST(BlockLoggerTest, LogsLongWaitsAtIntervals) {
  static std::vector<std::string> lines;
  lines.clear();
  const auto start = BlockLogger::Clock::time_point();
  BlockLogger logger("it is slow", "/registry/pods", start,
                     [](const std::string& line) { lines.push_back(line); });
  using std::chrono::milliseconds;
  logger.record_wait(milliseconds(90), start + milliseconds(1000));
  logger.record_wait(milliseconds(20), start + milliseconds(4999));
  EXPECT_THAT(lines, SizeIs(0));
  logger.record_wait(milliseconds(0), start + milliseconds(5000));
  EXPECT_THAT(lines, ElementsAre("/registry/pods: it is slow: waited 110 ms for 3 events within "
                                 "5000 ms"));
  // Short waits are not logged.
  logger.record_wait(milliseconds(100), start + milliseconds(10000));
  EXPECT_THAT(lines, SizeIs(1));
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
