// Behaviour of the etcd store beyond the contract of every storage.
#include "apiserver/storage/etcd3/store.h"

#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <functional>

#include "apiserver/grpc/channel.h"
#include "apiserver/storage/etcd3/compactor.h"
#include "lookout/api/status.h"
#include "tests/apiserver/grpc/grpc_server.h"
#include "tests/apiserver/storage/etcd3/etcd_answers.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/apiserver/storage/etcd3/tested_etcd.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

class EtcdStoreTest : public testing::TestWithParam<test::TestedEtcd> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    pods_ = store();
  }
  std::unique_ptr<EtcdStore> store(TransformerPtr transformer = identity_transformer(),
                                   std::chrono::seconds ttl = {}) {
    return std::make_unique<EtcdStore>(options_for(test::reach_shared(GetParam())), prefix_,
                                       std::move(transformer), ttl);
  }
  EtcdStore& pods() { return *pods_; }
  KeyValue raw(const std::string& key) {
    return pods().etcd().range(prefix_ + "/pods/" + key).kvs.at(0);
  }

  const std::string prefix_ = test::unique_etcd_prefix();
  std::unique_ptr<EtcdStore> pods_;
};

std::string failure_of(const std::function<void()>& operation) {
  try {
    operation();
  } catch (const std::exception& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// A store's watch uses the object of the store's write instead of decoding the event.
TEST_P(EtcdStoreTest, WatchesReuseWrittenObjects) {
  constexpr int kWrites = 50;
  WatchOptions options;
  options.start = WatchOptions::Start::kNow;
  auto watch = pods()->watch("", options);
  for (int i = 0; i < kWrites; ++i) {
    const std::string name = "p" + std::to_string(i);
    const api::Object written = pods()->create("n/" + name, pod(name));
    const std::vector<Event> told = watch->take_events(1);
    EXPECT_EQ(told[0].object, written);
    EXPECT_EQ(told[0].object.name().data(), written.name().data());
  }
  const auto other = store();
  const api::Object foreign = (*other)->create("n/other", pod("other"));
  EXPECT_EQ(watch->take_events(1)[0].object, foreign);
}

TEST_P(EtcdStoreTest, StoresObjectsLikeAnApiServer) {
  const api::Object created = pods()->create("n/web", pod("web"));
  const KeyValue stored = raw("n/web");
  EXPECT_EQ(stored.mod_revision, revision_of(created));
  EXPECT_EQ(stored.lease, 0);
  EXPECT_EQ(stored.value,
            R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"n",)"
            R"("uid":"uid-web","labels":{"app":"a"},"annotations":{"note":""}}})"
            "\n");
}

TEST_P(EtcdStoreTest, ReadsObjectsOfAnApiServer) {
  const Revision revision = pods().etcd().put(
      prefix_ + "/pods/n/x",
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"n","creationTimestamp":null},"spec":{"new":1}})"
      "\n");
  const api::Object read = pods()->get("n/x");
  EXPECT_EQ(read.name(), "x");
  EXPECT_EQ(revision_of(read), revision);
  EXPECT_EQ(read["spec"]["new"].as_int(), 1);
}

TEST_P(EtcdStoreTest, AResourceReadsOnlyItsOwnKeys) {
  pods()->create("n/a", pod("a"));
  pods().etcd().put(prefix_ + "/podsecurity/n/b", "{}");
  pods().etcd().put(prefix_ + "/pods", "{}");
  EXPECT_THAT(pods()->list("").objects, SizeIs(1));
}

TEST_P(EtcdStoreTest, KeysOutsideOfThePrefixAreRejected) {
  for (const char* key : {"", "/", "a/", "a//b", "../secrets/n/x", "n/..", ".", "n/./x"})
    EXPECT_THROW(pods()->get(key), InvalidArgument) << key;
}

TEST_P(EtcdStoreTest, UnreadableValuesAreNamed) {
  pods()->create("n/a", pod("a"));
  pods().etcd().put(prefix_ + "/pods/n/bad", "{\"kind\":");
  pods().etcd().put(prefix_ + "/pods/n/proto", std::string("k8s\0\n\x0c", 6));
  EXPECT_TRUE(pods()->get("n/a"));
  EXPECT_THAT(failure_of([&] { pods()->get("n/bad"); }), HasSubstr(prefix_ + "/pods/n/bad"));
  EXPECT_THAT(failure_of([&] { pods()->get("n/proto"); }), HasSubstr("it is protobuf"));
  EXPECT_THAT(failure_of([&] { pods()->list(""); }), HasSubstr(prefix_ + "/pods/n/bad"));
  EXPECT_THAT(failure_of([&] {
                pods()->update("n/bad", [](const api::Object& present) { return present; });
              }),
              HasSubstr("unable to decode key"));
}

/// Lists of several pages, with changes between them.
class ListTest : public EtcdStoreTest {
 protected:
  static constexpr std::size_t kCount = 700;

  void SetUp() override {
    EtcdStoreTest::SetUp();
    if (IsSkipped()) return;
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::string name = "p" + std::to_string(1000 + i);
      pods().etcd().put(prefix_ + "/pods/n/" + name,
                        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")" + name +
                            R"(","namespace":"n"}})");
    }
  }

  /// A list, with a function that runs before each page but the first, and before a stream.
  StorageClient::Page list(const std::function<void()>& before_next_page,
                           ListOptions options = {}) {
    const test::GrpcServer between([&](test::GrpcCall& call) {
      const std::string request = call.message().value_or("");
      if (call.path().starts_with("/etcdserverpb.KV/Range") &&
          !test::bytes_of(request, 2).empty()) {
        const bool first = test::bytes_of(request, 1) == prefix_ + "/pods/n/";
        if (first) ++begun_;
        if (!first) before_next_page();
      }
      pass_on(call, request);
    });
    EtcdStore seen(options_for({between.url()}), prefix_);
    return seen->list("n/", std::move(options));
  }

  /// Forwards the request to etcd, and returns the response.
  static void pass_on(test::GrpcCall& call, const std::string& request) {
    EventLoop loop(1);
    const auto channel = std::make_shared<grpc::Channel>(
        loop.context(), grpc::Server{.url = test::shared_etcd().endpoint()});
    const auto ask = [&]() -> Awaitable<void> {
      const auto executor = co_await boost::asio::this_coro::executor;
      grpc::CallRequest asked;
      asked.path = call.path();
      asked.message = request;
      const auto asking = channel->start(std::move(asked), executor);
      for (;;) {
        const std::string piece = co_await asking->read();
        if (piece.empty()) break;
        call.send_raw(piece);
      }
      call.end(asking->status().code, asking->status().message);
    };
    loop.run(ask());
    channel->shutdown();
  }

  void forget_the_past() {
    pods()->create("n/q" + std::to_string(++forgotten_), pod("q"));
    auto& etcd = pods().etcd();
    etcd.run(etcd->compact(pods()->current_revision()));
  }

  std::atomic<int> begun_{0};
  std::atomic<int> forgotten_{0};
};

TEST_P(ListTest, OfManyPagesShowsOneRevision) {
  std::atomic<int> times{0};
  const auto shown = list([&] {
    if (times++ > 0) return;
    pods()->update("n/p1650", [](const api::Object&) { return pod("other"); });
    pods()->create("n/p1650a", pod("p1650a"));
  });
  EXPECT_GT(times, 0);
  ASSERT_THAT(shown.objects, SizeIs(kCount));
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(shown.objects[i].name(), "p" + std::to_string(1000 + i));
}

TEST_P(ListTest, RestartsIfItsRevisionIsCompacted) {
  std::atomic<int> times{0};
  const auto shown = list([&] {
    if (times++ == 0) forget_the_past();
  });
  EXPECT_THAT(shown.objects, SizeIs(kCount + 1));
  EXPECT_EQ(shown.revision, pods()->current_revision());
  EXPECT_EQ(begun_, 2);
}

TEST_P(ListTest, IsRejectedIfCompactedRepeatedly) {
  try {
    list([&] { forget_the_past(); });
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_resource_expired(e));
  }
  EXPECT_EQ(begun_, 5);
}

TEST_P(ListTest, OfAnExactRevisionExpiresIfCompacted) {
  ListOptions options;
  options.match = VersionMatch::kExact;
  options.revision = pods()->current_revision();
  try {
    list([&] { forget_the_past(); }, options);
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_resource_expired(e));
    EXPECT_EQ(e.status().message, "The resourceVersion for the provided list is too old.");
  }
  EXPECT_EQ(begun_, 1);
}

TEST_P(ListTest, OfAnUnreadableValueIsAnError) {
  pods().etcd().put(prefix_ + "/pods/n/p1690", "garbage");
  TestThread thread;
  ListOptions options;
  EXPECT_THROW(thread.run(pods().store().list("n/", true, options)), StorageError);
}

TEST_P(EtcdStoreTest, APageOfRareObjectsIsFound) {
  for (int i = 0; i < 60; ++i) {
    const std::string name = "p" + std::to_string(100 + i);
    pods()->create("n/" + name, pod(name, i == 50 ? "rare" : "a"));
  }
  ListOptions options;
  options.limit = 1;
  options.predicate = app_is("rare");
  auto page = pods()->list("n/", options);
  ASSERT_THAT(page.objects, SizeIs(1));
  EXPECT_EQ(page.objects[0].name(), "p150");
  EXPECT_FALSE(page.remaining);
  options.match = VersionMatch::kExact;
  options.revision = page.revision;
  options.start_key = page.continue_key;
  page = pods()->list("n/", options);
  EXPECT_THAT(page.objects, SizeIs(0));
  EXPECT_EQ(page.continue_key, "");
}

TEST_P(EtcdStoreTest, APageOfACompactedRevisionIsExpired) {
  for (const char* name : {"a", "b", "c"}) pods()->create(std::string("n/") + name, pod(name));
  ListOptions options;
  options.limit = 1;
  const auto page = pods()->list("n/", options);
  pods()->create("n/d", pod("d"));
  auto& etcd = pods().etcd();
  etcd.run(etcd->compact(pods()->current_revision()));
  options.match = VersionMatch::kExact;
  options.revision = page.revision;
  options.start_key = page.continue_key;
  try {
    pods()->list("n/", options);
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_resource_expired(e));
    EXPECT_EQ(e.status().message, "The resourceVersion for the provided list is too old.");
  }
}

// --- starting from a cached state

class SuggestionTest : public EtcdStoreTest {
 protected:
  void SetUp() override {
    EtcdStoreTest::SetUp();
    if (IsSkipped()) return;
    stale_ = pods()->create("n/a", pod("a", "old"));
    fresh_ = pods()->update("n/a", [](const api::Object&) { return pod("a", "new"); });
  }
  api::Object update(const api::Object& cached, Interface::Update change,
                     Preconditions preconditions = {}) {
    TestThread thread;
    return thread.run(pods().store().update_from(cached, "n/a", false, std::move(preconditions),
                                                 std::move(change)));
  }
  api::Object remove(const api::Object& cached, Preconditions preconditions = {},
                     Interface::Validate validate = {}) {
    TestThread thread;
    return thread.run(
        pods().store().remove_from(cached, "n/a", std::move(preconditions), std::move(validate)));
  }

  api::Object stale_;
  api::Object fresh_;
};

std::string app(const api::Object& object) {
  return std::string(object.labels()["app"].as_string());
}

TEST_P(SuggestionTest, AnUpdateOfAStaleStateRetriesWithTheFreshOne) {
  std::vector<std::string> seen;
  const api::Object updated = update(stale_, [&](const api::Object& present) {
    seen.push_back(app(present));
    return pod("a", app(present) + "+");
  });
  EXPECT_THAT(seen, ElementsAre("old", "new"));
  EXPECT_EQ(app(updated), "new+");
}

TEST_P(SuggestionTest, AnUpdateOfTheCurrentStateMakesOneRequest) {
  int calls = 0;
  update(fresh_, [&](const api::Object&) {
    ++calls;
    return pod("a", "next");
  });
  EXPECT_EQ(calls, 1);
}

TEST_P(SuggestionTest, ARejectionOfAStaleStateIsRetried) {
  const auto no_old = [](const api::Object& present) {
    if (app(present) == "old") throw InvalidArgument("old");
    return pod("a", "next");
  };
  EXPECT_EQ(app(update(stale_, no_old)), "next");
  const auto never = [](const api::Object&) -> api::Object { throw InvalidArgument("never"); };
  EXPECT_THROW(update(stale_, never), InvalidArgument);
}

TEST_P(SuggestionTest, PreconditionsApplyToTheFreshState) {
  Preconditions right;
  right.resource_version = std::string(fresh_.resource_version());
  EXPECT_EQ(app(update(
                stale_, [](const api::Object&) { return pod("a", "next"); }, right)),
            "next");
  EXPECT_THROW(update(
                   stale_, [](const api::Object&) { return pod("a"); }, right),
               StorageError);
}

TEST_P(SuggestionTest, AnUnchangedStaleStateIsRefreshed) {
  // Compared with the stale state, the update would look like no change.
  const api::Object updated = update(stale_, [&](const api::Object&) { return pod("a", "old"); });
  EXPECT_EQ(app(updated), "old");
  EXPECT_GT(revision_of(updated), revision_of(fresh_));
}

TEST_P(SuggestionTest, AnUpdateOfADeletedObjectIsNotFound) {
  pods()->remove("n/a");
  EXPECT_THAT(failure_of([&] { update(fresh_, [](const api::Object&) { return pod("a"); }); }),
              HasSubstr("key not found"));
  EXPECT_THAT(failure_of([&] { remove(fresh_); }), HasSubstr("key not found"));
}

TEST_P(SuggestionTest, ADeletionOfAStaleStateDeletesTheFreshOne) {
  const api::Object last = remove(stale_);
  EXPECT_EQ(app(last), "new");
  EXPECT_GT(revision_of(last), revision_of(fresh_));
  EXPECT_FALSE(pods()->get("n/a"));
}

TEST_P(SuggestionTest, ADeletionIsValidatedWithTheFreshState) {
  std::vector<std::string> seen;
  const auto no_old = [&](const api::Object& present) {
    seen.push_back(app(present));
    if (app(present) == "old") throw InvalidArgument("old");
  };
  remove(stale_, {}, no_old);
  EXPECT_THAT(seen, ElementsAre("old", "new"));
}

TEST_P(SuggestionTest, ADeletionThatTheFreshStateForbidsIsRejected) {
  const auto only_old = [](const api::Object& present) {
    if (app(present) != "old") throw InvalidArgument("not old");
  };
  EXPECT_THROW(remove(stale_, {}, only_old), InvalidArgument);
  EXPECT_TRUE(pods()->get("n/a"));
  Preconditions stale;
  stale.resource_version = std::string(stale_.resource_version());
  EXPECT_THROW(remove(stale_, stale), StorageError);
}

// --- time to live

TEST_P(EtcdStoreTest, ObjectsWithATimeToLiveShareALease) {
  const auto events = store(identity_transformer(), std::chrono::hours(1));
  (*events)->create("n/a", pod("a"));
  (*events)->create("n/b", pod("b"));
  const std::int64_t lease = raw("n/a").lease;
  EXPECT_NE(lease, 0);
  EXPECT_EQ(raw("n/b").lease, lease);
  auto& etcd = pods().etcd();
  const auto left = etcd.run(etcd->keep_alive(lease));
  EXPECT_EQ(left, std::chrono::hours(1) + std::chrono::seconds(60)) << "a minute more, to share";
  // A change renews the time, or at least keeps it.
  (*events)->update("n/a", [](const api::Object&) { return pod("a", "b"); });
  EXPECT_NE(raw("n/a").lease, 0);
}

TEST_P(EtcdStoreTest, ObjectsThatExpireTogetherAreAllReported) {
  const auto events = store(identity_transformer(), std::chrono::hours(1));
  for (const char* name : {"a", "b", "c"}) (*events)->create(std::string("n/") + name, pod(name));
  WatchOptions options;
  options.start = WatchOptions::Start::kNow;
  auto watch = (*events)->watch("", options);
  auto& etcd = pods().etcd();
  etcd.run(etcd->revoke_lease(raw("n/a").lease));
  const auto told = watch->take_events(3);
  EXPECT_THAT(describe(told), ElementsAre("DELETED n/a", "DELETED n/b", "DELETED n/c"));
  EXPECT_EQ(told[0].revision, told[2].revision);
  EXPECT_TRUE(told[0].revision_continues);
  EXPECT_FALSE(told[2].revision_continues);
}

// --- encryption

TEST_P(EtcdStoreTest, StaleValuesAreRewrittenWithoutAChange) {
  const auto old = store(aes_gcm_encryption({{"old", std::string(32, 'o')}}, true));
  const api::Object created = (*old)->create("n/a", pod("a"));
  EXPECT_THAT(raw("n/a").value, StartsWith("k8s:enc:aesgcm:v1:old:"));
  EXPECT_THAT(raw("n/a").value, Not(HasSubstr("uid-a")));
  const auto rotated = store(
      aes_gcm_encryption({{"new", std::string(32, 'n')}, {"old", std::string(32, 'o')}}, true));
  EXPECT_EQ((*rotated)->get("n/a"), created);
  const auto same = [](const api::Object& present) { return present; };
  const api::Object rewritten = (*rotated)->update("n/a", same);
  EXPECT_GT(revision_of(rewritten), revision_of(created));
  EXPECT_THAT(raw("n/a").value, StartsWith("k8s:enc:aesgcm:v1:new:"));
  EXPECT_EQ((*rotated)->update("n/a", same), rewritten) << "once";
}

TEST_P(EtcdStoreTest, AValueMovedToAnotherKeyIsNotRead) {
  const auto encrypted = store(aes_gcm_encryption({{"k", std::string(32, 'k')}}, false));
  (*encrypted)->create("n/a", pod("a"));
  pods().etcd().put(prefix_ + "/pods/n/b", raw("n/a").value);
  EXPECT_THAT(failure_of([&] { (*encrypted)->get("n/b"); }),
              HasSubstr("unable to transform key \"" + prefix_ + "/pods/n/b\""));
}

// --- change detection

TEST_P(EtcdStoreTest, DetectsThatNothingHasChanged) {
  TestThread thread;
  const auto unchanged = [&](Revision revision, std::size_t count) {
    return thread.run(pods().store().unchanged_since(revision, count));
  };
  pods()->create("n/a", pod("a"));
  pods()->create("n/b", pod("b"));
  const Revision then = pods()->current_revision();
  pods().etcd().put(prefix_ + "/other", "x");
  EXPECT_EQ(unchanged(then, 2), pods()->current_revision());
  pods()->update("n/a", [](const api::Object&) { return pod("a", "b"); });
  EXPECT_FALSE(unchanged(then, 2));
  const Revision later = pods()->current_revision();
  pods()->remove("n/a");
  EXPECT_FALSE(unchanged(later, 2)) << "one is missing";
  pods()->create("n/c", pod("c"));
  EXPECT_FALSE(unchanged(later, 2)) << "as many, but not the same";
}

// --- compaction

TEST_P(EtcdStoreTest, OneOfManyCompactorsCompacts) {
  // Needs its own cluster, as the key is shared.
  const test::OwnEtcd own(GetParam());
  EtcdClient etcd(options_for(own.reach()));
  CompactorState one;
  CompactorState two;
  EXPECT_EQ(etcd.run(compact_once(etcd.get(), one)), 0u) << "the first time nobody knows";
  EXPECT_EQ(etcd.run(compact_once(etcd.get(), two)), 0u) << "not its turn";
  const Revision old = one.revision;
  for (int i = 0; i < 5; ++i) etcd.put("/a", "x");
  // The first one to run does the next compaction, and the other one does not.
  EXPECT_EQ(etcd.run(compact_once(etcd.get(), one)), old);
  EXPECT_EQ(etcd.run(compact_once(etcd.get(), two)), 0u);
  RangeRequest past;
  past.key = "/a";
  past.revision = old - 1;
  EXPECT_THROW(etcd.run(etcd->range(past)), EtcdError);
  past.revision = old;
  EXPECT_NO_THROW(etcd.run(etcd->range(past)));
  // If the first one has ended, the other one takes over.
  etcd.put("/a", "y");
  EXPECT_GT(etcd.run(compact_once(etcd.get(), two)), old);
}

const auto kName = [](const auto& test) { return std::string(test.param.name); };

INSTANTIATE_TEST_SUITE_P(Etcds, EtcdStoreTest, testing::ValuesIn(test::kAllEtcds), kName);
INSTANTIATE_TEST_SUITE_P(Etcds, SuggestionTest, testing::ValuesIn(test::kAllEtcds), kName);
// A proxy between the store and etcd.
INSTANTIATE_TEST_SUITE_P(Etcds, ListTest, testing::Values(test::kRealEtcd), kName);

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
