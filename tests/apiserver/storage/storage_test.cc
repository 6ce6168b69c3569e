// The contract of every storage: the behaviours of k8s.io/apiserver's storage tests. Add new
// backends at the end of this file.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apiserver/storage/revision.h"
#include "lookout/api/fields.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/tested_etcd.h"
#include "tests/apiserver/storage/storage_client.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver::storage {
namespace {

using testing::Values;

struct BackendKind {
  const char* name;
  /// A backend that keeps `history` changes of a resource.
  std::function<std::unique_ptr<Backend>(std::size_t history)> make;
  /// Whether watchers share one history with a limit. Otherwise each has its own watch of an etcd, which
  /// keeps its history until it is compacted.
  bool shares_history = true;
  /// Drops the history before a revision, unless that is automatic.
  std::function<void(Backend& backend, Revision revision)> forget = [](Backend&, Revision) {};
  /// The reason why it is not available; empty if it is.
  std::function<std::string()> missing = [] { return std::string(); };
};

class StorageTest : public testing::TestWithParam<BackendKind> {
 protected:
  /// For tests that need another length of history.
  void remake(std::size_t history) {
    client_.reset();
    backend_ = GetParam().make(history);
    client_ = std::make_unique<StorageClient>(backend_->resource("pods"));
    settle();
  }
  void SetUp() override {
    const std::string missing = GetParam().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    remake(1000);
  }

  /// Waits until all writes are visible everywhere.
  void settle() { ASSERT_TRUE(client_->wait_until_served()); }
  void forget(Revision revision) { GetParam().forget(*backend_, revision); }

  StorageClient& pods() { return *client_; }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<StorageClient> client_;
};

api::Object pod(const std::string& ns, const std::string& name, const std::string& app = "a") {
  return api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":")" + ns +
                            R"(","name":")" + name + R"(","uid":"uid-)" + name +
                            R"(","labels":{"app":")" + app + R"("}}})");
}

api::Object with_app(const api::Object& object, const std::string& app) {
  return pod(std::string(object.ns()), std::string(object.name()), app);
}

/// Changes the app of n1/a to "v0", "v1" and so on.
void change_app(StorageClient& pods, int times) {
  for (int i = 0; i < times; ++i)
    pods.update("n1/a", [&](const api::Object& o) { return with_app(o, "v" + std::to_string(i)); });
}

Predicate app_is(const std::string& app) {
  Predicate predicate;
  predicate.labels = api::labels::parse("app=" + app);
  return predicate;
}

StorageError::Code code_of(const std::function<void()>& operation) {
  const auto error = lookout::test::thrown<StorageError>(operation);
  return error ? error->code() : StorageError::Code{};
}

api::Status status_of(const std::function<void()>& operation) {
  const auto error = lookout::test::thrown<api::StatusError>(operation);
  return error ? error->status() : api::Status{};
}

TEST_P(StorageTest, CreatesAndReadsBack) {
  const api::Object created = pods().create("shop/web", pod("shop", "web"));
  EXPECT_GT(revision_of(created), 0u);
  EXPECT_EQ(created.name(), "web");
  EXPECT_EQ(pods().get("shop/web"), created);
  EXPECT_FALSE(pods().get("shop/db"));
  EXPECT_EQ(revision_of(created), pods().current_revision());
}

TEST_P(StorageTest, RejectsTheCreationOfAnExistingObject) {
  const api::Object created = pods().create("shop/web", pod("shop", "web"));
  EXPECT_EQ(code_of([&] { pods().create("shop/web", pod("shop", "web", "b")); }),
            StorageError::Code::kKeyExists);
  EXPECT_EQ(pods().get("shop/web"), created);
}

TEST_P(StorageTest, RevisionsGrowOverAllResources) {
  StorageClient services(backend_->resource("services/specs"));
  const auto a = revision_of(pods().create("shop/a", pod("shop", "a")));
  const auto b = revision_of(services.create("shop/a", pod("shop", "a")));
  const auto c = revision_of(pods().create("shop/c", pod("shop", "c")));
  EXPECT_LT(a, b);
  EXPECT_LT(b, c);
}

TEST_P(StorageTest, UpdatesByCompareAndSwap) {
  const api::Object created = pods().create("shop/web", pod("shop", "web"));
  int calls = 0;
  const api::Object updated = pods().update("shop/web", [&](const api::Object& present) {
    // A concurrent write wins the first time.
    if (++calls == 1)
      pods().update("shop/web", [](const api::Object& o) { return with_app(o, "theirs"); });
    return with_app(present, std::string(present.labels()["app"].as_string()) + "+ours");
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(updated.labels()["app"].as_string(), "theirs+ours");
  EXPECT_EQ(revision_of(updated), revision_of(created) + 2);
}

TEST_P(StorageTest, DoesNotWriteWithoutAChange) {
  const api::Object created = pods().create("shop/web", pod("shop", "web"));
  EXPECT_EQ(pods().update("shop/web", [](const api::Object& present) { return present; }), created);
  EXPECT_EQ(pods().current_revision(), revision_of(created));
}

TEST_P(StorageTest, UpdateOfAnAbsentObject) {
  const auto take = [](const api::Object& present) {
    EXPECT_FALSE(present);
    return pod("shop", "web");
  };
  EXPECT_EQ(code_of([&] { pods().update("shop/web", take); }), StorageError::Code::kKeyNotFound);
  const api::Object made = pods().update("shop/web", take, true);
  EXPECT_EQ(made.name(), "web");
  EXPECT_EQ(pods().get("shop/web"), made);
}

TEST_P(StorageTest, AnUpdateThatThrowsChangesNothing) {
  const api::Object created = pods().create("shop/web", pod("shop", "web"));
  EXPECT_THROW(
      pods().update("shop/web",
                    [](const api::Object&) -> api::Object { throw InvalidArgument("no"); }),
      InvalidArgument);
  EXPECT_EQ(pods().get("shop/web"), created);
}

TEST_P(StorageTest, ChecksPreconditions) {
  const api::Object created = pods().create("shop/web", pod("shop", "web"));
  const auto same = [](const api::Object& present) { return with_app(present, "b"); };
  Preconditions other_uid;
  other_uid.uid = "another";
  EXPECT_EQ(code_of([&] { pods().update("shop/web", same, false, other_uid); }),
            StorageError::Code::kInvalidObject);
  EXPECT_EQ(code_of([&] { pods().remove("shop/web", other_uid); }),
            StorageError::Code::kInvalidObject);
  Preconditions other_version;
  other_version.resource_version = "1";
  EXPECT_EQ(code_of([&] { pods().remove("shop/web", other_version); }),
            StorageError::Code::kInvalidObject);
  EXPECT_EQ(pods().get("shop/web"), created);

  Preconditions right;
  right.uid = "uid-web";
  right.resource_version = std::string(created.resource_version());
  pods().remove("shop/web", right);
  EXPECT_FALSE(pods().get("shop/web"));
}

TEST_P(StorageTest, ADeletionReturnsTheLastStateWithItsOwnRevision) {
  const api::Object created = pods().create("shop/web", pod("shop", "web", "z"));
  const api::Object last = pods().remove("shop/web");
  EXPECT_EQ(last.labels()["app"].as_string(), "z");
  EXPECT_GT(revision_of(last), revision_of(created));
  EXPECT_EQ(revision_of(last), pods().current_revision());
  EXPECT_EQ(code_of([&] { pods().remove("shop/web"); }), StorageError::Code::kKeyNotFound);
}

TEST_P(StorageTest, ValidationMayPreventADeletion) {
  pods().create("shop/web", pod("shop", "web"));
  EXPECT_THROW(
      pods().remove("shop/web", {}, [](const api::Object&) { throw InvalidArgument("no"); }),
      InvalidArgument);
  EXPECT_TRUE(pods().get("shop/web"));
}

TEST_P(StorageTest, ConcurrentUpdatesAreAllApplied) {
  pods().create("shop/web", pod("shop", "web", "0"));
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&] {
      StorageClient client(backend_->resource("pods"));
      for (int i = 0; i < 50; ++i) {
        client.update("shop/web", [](const api::Object& present) {
          const int n = std::stoi(std::string(present.labels()["app"].as_string()));
          return with_app(present, std::to_string(n + 1));
        });
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(lookout::test::held(pods().get("shop/web")).labels()["app"].as_string(), "200");
}

std::vector<std::string> keys_of(const StorageClient::Page& page) {
  std::vector<std::string> keys;
  for (const auto& object : page.objects) keys.push_back(object.key());
  return keys;
}

using Keys = std::vector<std::string>;

TEST_P(StorageTest, ListsInTheOrderOfKeys) {
  for (const char* name : {"c", "a", "b"})
    pods().create(std::string("n1/") + name, pod("n1", name));
  // '-' sorts before '/': the order is that of whole keys, as in etcd.
  pods().create("n1-x/a", pod("n1-x", "a"));
  pods().create("n2/a", pod("n2", "a"));
  EXPECT_EQ(keys_of(pods().list("")), (Keys{"n1-x/a", "n1/a", "n1/b", "n1/c", "n2/a"}));
  EXPECT_EQ(keys_of(pods().list("n1/")), (Keys{"n1/a", "n1/b", "n1/c"}));
  EXPECT_EQ(keys_of(pods().list("n3/")), Keys{});
  EXPECT_EQ(pods().list("").revision, pods().current_revision());
}

TEST_P(StorageTest, ListsOneKey) {
  pods().create("n1/a", pod("n1", "a"));
  pods().create("n1/ab", pod("n1", "ab"));
  EXPECT_EQ(keys_of(pods().list("n1/a", {}, false)), Keys{"n1/a"});
  EXPECT_EQ(keys_of(pods().list("n1/b", {}, false)), Keys{});
  ListOptions options;
  options.predicate = app_is("other");
  EXPECT_EQ(keys_of(pods().list("n1/a", options, false)), Keys{});
}

TEST_P(StorageTest, ListsSelectedObjects) {
  pods().create("n1/a", pod("n1", "a", "x"));
  pods().create("n1/b", pod("n1", "b", "y"));
  pods().create("n1/c", pod("n1", "c", "x"));
  ListOptions options;
  options.predicate = app_is("x");
  EXPECT_EQ(keys_of(pods().list("n1/", options)), (Keys{"n1/a", "n1/c"}));
}

TEST_P(StorageTest, PagesShowOneRevision) {
  for (int i = 0; i < 7; ++i) {
    const std::string name = "p" + std::to_string(i);
    pods().create("n1/" + name, pod("n1", name, "before"));
  }
  ListOptions options;
  options.limit = 3;
  auto page = pods().list("n1/", options);
  const Revision moment = page.revision;
  EXPECT_EQ(keys_of(page), (Keys{"n1/p0", "n1/p1", "n1/p2"}));
  EXPECT_EQ(page.remaining, 4);

  // Changes of all kinds, before and after the continue token's position.
  pods().remove("n1/p0");
  pods().remove("n1/p4");
  pods().update("n1/p5", [](const api::Object& o) { return with_app(o, "after"); });
  pods().create("n1/p3a", pod("n1", "p3a"));
  pods().create("n1/p9", pod("n1", "p9"));
  pods().remove("n1/p9");
  pods().create("n1/p9", pod("n1", "p9"));

  options.match = VersionMatch::kExact;
  options.revision = moment;
  options.start_key = page.continue_key;
  page = pods().list("n1/", options);
  EXPECT_EQ(keys_of(page), (Keys{"n1/p3", "n1/p4", "n1/p5"}));
  EXPECT_EQ(page.objects[2].labels()["app"].as_string(), "before");
  EXPECT_EQ(page.remaining, 1);
  EXPECT_EQ(page.revision, moment);

  options.start_key = page.continue_key;
  page = pods().list("n1/", options);
  EXPECT_EQ(keys_of(page), Keys{"n1/p6"});
  EXPECT_EQ(page.continue_key, "");
  EXPECT_FALSE(page.remaining);
}

TEST_P(StorageTest, APageOfSelectedObjectsDoesNotCountTheRest) {
  for (const char* name : {"a", "b", "c", "d"})
    pods().create(std::string("n1/") + name, pod("n1", name));
  ListOptions options;
  options.limit = 2;
  options.predicate = app_is("a");
  const auto page = pods().list("n1/", options);
  EXPECT_EQ(keys_of(page), (Keys{"n1/a", "n1/b"}));
  EXPECT_NE(page.continue_key, "");
  EXPECT_FALSE(page.remaining);
}

TEST_P(StorageTest, OldRevisionsExpire) {
  remake(3);
  const auto first = pods().create("n1/a", pod("n1", "a"));
  change_app(pods(), 4);
  settle();  // a lagging cache still has the first state
  forget(pods().current_revision() - 1);
  ListOptions options;
  options.match = VersionMatch::kExact;
  options.revision = revision_of(first);
  const auto status = status_of([&] { pods().list("", options); });
  EXPECT_EQ(status.code, 410);
  EXPECT_EQ(status.reason, "Expired");
  EXPECT_EQ(status.message, "The resourceVersion for the provided list is too old.");
  // A revision that is still available.
  options.revision = pods().current_revision() - 1;
  EXPECT_EQ(pods().list("", options).objects.at(0).labels()["app"].as_string(), "v2");
}

TEST_P(StorageTest, FutureRevisionsAreAwaitedForATime) {
  pods().create("n1/a", pod("n1", "a"));
  ListOptions options;
  options.match = VersionMatch::kNotOlderThan;
  options.revision = pods().current_revision() + 1;
  const auto status = status_of([&] { pods().list("", options); });
  EXPECT_EQ(status.code, 504);
  EXPECT_EQ(status.reason, "Timeout");
  EXPECT_EQ(status.retry_after_seconds, 1);
  EXPECT_EQ(status_of([&] { pods().get("n1/a", options.revision); }).code, 504);

  std::thread writer([&] {
    StorageClient client(backend_->resource("pods"));
    client.create("n1/b", pod("n1", "b"));
  });
  EXPECT_EQ(pods().list("", options).objects.size(), 2u);
  writer.join();
}

// --- watches

using Told = std::vector<std::string>;

/// The error of a watch that fails immediately.
std::optional<api::Status> only_error(const std::vector<Event>& events) {
  EXPECT_EQ(describe(events), Told{"ERROR"});
  return events.empty() ? std::nullopt : api::Status::from(events[0].object);
}

TEST_P(StorageTest, AWatchFromARevisionSeesEveryLaterChange) {
  const auto first = pods().create("n1/a", pod("n1", "a"));
  pods().create("n1/b", pod("n1", "b"));
  const WatchOptions options = from_revision(revision_of(first));
  auto watch = pods().watch("", options);
  EXPECT_EQ(watch->take(1), Told{"ADDED n1/b"});
  pods().update("n1/a", [](const api::Object& o) { return with_app(o, "x"); });
  const auto last = pods().remove("n1/b");
  const auto events = watch->take_events(2);
  EXPECT_EQ(describe(events), (Told{"MODIFIED n1/a", "DELETED n1/b"}));
  EXPECT_EQ(events[1].object, last);
  EXPECT_EQ(events[1].revision, revision_of(last));
}

TEST_P(StorageTest, AWatchFromTheStateDeliversExistingObjectsFirst) {
  pods().create("n1/b", pod("n1", "b"));
  pods().create("n1/a", pod("n1", "a"));
  auto watch = pods().watch("", {});
  pods().create("n1/c", pod("n1", "c"));
  EXPECT_EQ(watch->take(3), (Told{"ADDED n1/a", "ADDED n1/b", "ADDED n1/c"}));
}

TEST_P(StorageTest, AWatchFromNowDeliversNoExistingObjects) {
  pods().create("n1/a", pod("n1", "a"));
  WatchOptions options;
  options.start = WatchOptions::Start::kNow;
  auto watch = pods().watch("", options);
  pods().create("n1/b", pod("n1", "b"));
  EXPECT_EQ(watch->take(1), Told{"ADDED n1/b"});
}

TEST_P(StorageTest, ABookmarkEndsTheInitialEvents) {
  pods().create("n1/a", pod("n1", "a"));
  WatchOptions options;
  options.initial_events_end = true;
  auto watch = pods().watch("", options);
  const auto events = watch->take_events(2);
  EXPECT_EQ(describe(events), (Told{"ADDED n1/a", "BOOKMARK"}));
  EXPECT_TRUE(events[1].initial_events_end);
  EXPECT_EQ(events[1].revision, pods().current_revision());
}

TEST_P(StorageTest, AWatchOfAPrefixIsLimitedToIt) {
  auto watch = pods().watch("n1/", {});
  pods().create("n1b/x", pod("n1b", "x"));
  pods().create("n1/a", pod("n1", "a"));
  pods().create("n2/a", pod("n2", "a"));
  pods().remove("n1/a");
  EXPECT_EQ(watch->take(2), (Told{"ADDED n1/a", "DELETED n1/a"}));
}

TEST_P(StorageTest, AWatchOfAKeyIsLimitedToIt) {
  pods().create("n1/ab", pod("n1", "ab"));
  pods().create("n1/a", pod("n1", "a"));
  auto watch = pods().watch("n1/a", {}, false);
  pods().create("n1/abc", pod("n1", "abc"));
  pods().remove("n1/a");
  EXPECT_EQ(watch->take(2), (Told{"ADDED n1/a", "DELETED n1/a"}));
}

TEST_P(StorageTest, EnteringASelectionIsAnAdditionAndLeavingADeletion) {
  pods().create("n1/in", pod("n1", "in", "x"));
  pods().create("n1/out", pod("n1", "out", "y"));
  WatchOptions options;
  options.predicate = app_is("x");
  auto watch = pods().watch("", options);
  const auto leave = [](const api::Object& o) { return with_app(o, "y"); };
  const auto enter = [](const api::Object& o) { return with_app(o, "x"); };
  const auto left = pods().update("n1/in", leave);
  pods().update("n1/out", enter);
  pods().update("n1/out", [](const api::Object& o) {
    // Within the selection.
    rapidjson::Document document = o.to_document();
    document.AddMember("spec", rapidjson::Value(rapidjson::kObjectType), document.GetAllocator());
    return api::Object::from(document);
  });
  pods().remove("n1/in");  // outside of the selection: no event
  pods().remove("n1/out");
  const auto events = watch->take_events(5);
  EXPECT_EQ(describe(events), (Told{"ADDED n1/in", "DELETED n1/in", "ADDED n1/out",
                                    "MODIFIED n1/out", "DELETED n1/out"}));
  // The last state in the selection, with the revision at which it left.
  EXPECT_EQ(events[1].object.labels()["app"].as_string(), "x");
  EXPECT_EQ(events[1].object.resource_version(), left.resource_version());
}

TEST_P(StorageTest, AModificationHasThePreviousStateOnRequest) {
  WatchOptions options;
  options.with_previous = true;
  auto watch = pods().watch("", options);
  pods().create("n1/a", pod("n1", "a", "x"));
  pods().update("n1/a", [](const api::Object& o) { return with_app(o, "y"); });
  const auto events = watch->take_events(2);
  ASSERT_EQ(describe(events), (Told{"ADDED n1/a", "MODIFIED n1/a"}));
  EXPECT_EQ(events[1].object.labels()["app"].as_string(), "y");
  ASSERT_NE(events[1].change, nullptr);
  ASSERT_TRUE(events[1].change->previous());
  EXPECT_EQ(events[1].change->previous().labels()["app"].as_string(), "x");
}

TEST_P(StorageTest, FieldSelectorsUseTheGivenReader) {
  Predicate predicate;
  FieldRequirement requirement;
  requirement.read = [](const api::Object& o, std::string&) {
    return o["spec"]["nodeName"].as_string();
  };
  requirement.value = "n";
  requirement.equal = false;
  predicate.fields.push_back(requirement);
  EXPECT_TRUE(predicate.matches(pod("a", "b")));
  EXPECT_FALSE(predicate.matches(api::Object::parse(R"({"spec":{"nodeName":"n"}})")));
  predicate.fields[0].equal = true;
  EXPECT_TRUE(predicate.matches(api::Object::parse(R"({"spec":{"nodeName":"n"}})")));
  predicate.labels = api::labels::parse("app");
  EXPECT_FALSE(predicate.matches(api::Object::parse(R"({"spec":{"nodeName":"n"}})")));
}

TEST_P(StorageTest, AWatchFromTooFarBackGetsOneErrorAndEnds) {
  remake(3);
  const auto first = pods().create("n1/a", pod("n1", "a"));
  change_app(pods(), 5);
  settle();
  forget(pods().current_revision() - 1);
  const WatchOptions options = from_revision(revision_of(first));
  auto watch = pods().watch("", options);
  const auto status = only_error(watch->take_until_the_end());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 410);
  EXPECT_EQ(status->reason, "Expired");
  if (!GetParam().shares_history) {
    EXPECT_EQ(status->message, "The resourceVersion for the provided watch is too old.");
    return;
  }
  // Names the requested revision and where a watch could start.
  EXPECT_EQ(status->message, "too old resource version: " + std::to_string(revision_of(first)) +
                                 " (" + std::to_string(pods().current_revision() - 3) + ")");
}

/// Without a cache each watch is a separate etcd watch, which waits for slow readers and decodes
/// separately.
class SharedHistoryTest : public StorageTest {};

TEST_P(SharedHistoryTest, AWatcherThatFallsBehindGetsAnError) {
  remake(10);
  auto watch = pods().watch("", {});
  std::atomic<int> stuck{0};
  watch->on_stuck([&] { ++stuck; });
  pods().create("n1/a", pod("n1", "a"));
  EXPECT_EQ(watch->take(1), Told{"ADDED n1/a"});
  change_app(pods(), 5);
  settle();
  EXPECT_EQ(stuck, 0);
  change_app(pods(), 20);
  EXPECT_TRUE(test::eventually([&] { return stuck == 1; }));
  EXPECT_EQ(describe(watch->take_until_the_end()), Told{"ERROR"});
}

TEST_P(StorageTest, AWaitingWatcherNeverFallsBehind) {
  remake(10);
  WatchOptions options;
  options.predicate = app_is("rare");
  auto watch = pods().watch("", options);
  EXPECT_TRUE(watch->poll().empty());
  pods().create("n1/a", pod("n1", "a"));
  change_app(pods(), 50);
  pods().create("n1/b", pod("n1", "b", "rare"));
  EXPECT_EQ(watch->take(1), Told{"ADDED n1/b"});
}

TEST_P(StorageTest, ARequestedBookmarkFollowsEarlierEvents) {
  auto watch = pods().watch("n1/", {});
  pods().create("n1/a", pod("n1", "a"));
  pods().create("n2/a", pod("n2", "a"));
  settle();
  const auto added = watch->take_events(1);
  watch->request_bookmark();
  const auto bookmark = watch->take_events(1);
  EXPECT_EQ(describe(added), Told{"ADDED n1/a"});
  EXPECT_EQ(describe(bookmark), Told{"BOOKMARK"});
  // Without a shared history, it has only its own events.
  EXPECT_GE(bookmark[0].revision, added[0].revision);
  EXPECT_LE(bookmark[0].revision, pods().current_revision());
  if (GetParam().shares_history) {
    EXPECT_EQ(bookmark[0].revision, pods().current_revision());
  }
  EXPECT_FALSE(bookmark[0].initial_events_end);
}

TEST_P(SharedHistoryTest, AListOfTheNewestStateAdvancesTheCache) {
  auto watch = pods().watch("", {});
  StorageClient others(backend_->resource("others"));
  const Revision written = revision_of(others.create("n1/x", pod("n1", "x")));
  EXPECT_GE(pods().list("").revision, written);
  // The list has verified that there were no changes, so no further request is needed.
  watch->request_bookmark();
  EXPECT_GE(watch->take_events(1).at(0).revision, written);
}

TEST_P(StorageTest, AWatchFromTheFutureSkipsEarlierChanges) {
  pods().create("n1/a", pod("n1", "a"));
  const WatchOptions options = from_revision(pods().current_revision() + 2);
  auto watch = pods().watch("", options);
  watch->request_bookmark();
  EXPECT_TRUE(watch->poll().empty());  // no bookmark with a lower revision
  for (const char* name : {"b", "c", "d"})
    pods().create(std::string("n1/") + name, pod("n1", name));
  // The requested bookmark may arrive as soon as its revision does not decrease.
  auto events = watch->take_events(1);
  if (!events.empty() && events[0].type == api::EventType::kBookmark) {
    EXPECT_GE(events[0].revision, options.revision);
    events = watch->take_events(1);
  }
  EXPECT_EQ(describe(events), Told{"ADDED n1/d"});
}

TEST_P(StorageTest, AWatchFromAnUnreachedFutureGetsOneErrorAndEnds) {
  const auto last = pods().create("n1/a", pod("n1", "a"));
  const WatchOptions options = from_revision(pods().current_revision() + 1000);
  auto watch = pods().watch("", options);
  const auto status = only_error(watch->take_until_the_end());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 504);
  EXPECT_EQ(status->reason, "Timeout");
  EXPECT_TRUE(api::is_too_large_resource_version(api::StatusError(*status))) << status->message;
  EXPECT_TRUE(status->message.starts_with(
      "Timeout: Too large resource version: " + std::to_string(options.revision) + ", current: "))
      << status->message;
}

// With etcd, the newest revision may be that of another resource, unknown to the cache.
TEST_P(StorageTest, ARevisionOfAnotherResourceIsNotInTheFuture) {
  pods().create("n1/a", pod("n1", "a"));
  StorageClient others(backend_->resource("others"));
  const WatchOptions options = from_revision(revision_of(others.create("n1/x", pod("n1", "x"))));
  auto watch = pods().watch("", options);
  EXPECT_TRUE(watch->poll().empty());
  // Longer than the wait for future revisions: then the next poll decides.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_TRUE(watch->poll().empty());
  pods().create("n1/b", pod("n1", "b"));
  EXPECT_EQ(watch->take(1), Told{"ADDED n1/b"});
}

// A requested bookmark follows the existing objects, even if some of them were delivered already.
TEST_P(StorageTest, ABookmarkDoesNotPrecedeExistingObjects) {
  for (int i = 0; i < 300; ++i)
    pods().create("n1/" + std::to_string(i), pod("n1", std::to_string(i)));
  settle();
  auto watch = pods().watch("", {});
  std::size_t added = 0;
  const bool all = test::eventually([&] {
    watch->request_bookmark();
    for (const Event& event : watch->poll()) {
      // A watch that resumes from here would miss the rest.
      if (event.type == api::EventType::kBookmark) {
        EXPECT_EQ(added, 300u);
      }
      if (event.type == api::EventType::kAdded) ++added;
    }
    return added == 300 || testing::Test::HasFailure();
  });
  EXPECT_TRUE(all);
}

TEST_P(StorageTest, ACancelledWatchEndsWithoutAnError) {
  auto watch = pods().watch("", {});
  EXPECT_TRUE(watch->poll().empty());
  std::thread canceller([&] { watch->cancel(); });
  EXPECT_TRUE(watch->take_until_the_end().empty());
  canceller.join();
}

TEST_P(StorageTest, ClosingTheBackendEndsItsWatches) {
  auto watch = pods().watch("", {});
  EXPECT_TRUE(watch->poll().empty());
  backend_->close();
  EXPECT_TRUE(watch->take_until_the_end().empty());
  EXPECT_TRUE(pods().watch("", {})->take_until_the_end().empty());
}

TEST_P(SharedHistoryTest, EventsAreEncodedOnce) {
  auto one = pods().watch("", {});
  auto two = pods().watch("", {});
  pods().create("n1/a", pod("n1", "a"));
  const auto first = one->take_events(1).at(0);
  const auto second = two->take_events(1).at(0);
  ASSERT_NE(first.change, nullptr);
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::string("bytes");
  };
  const auto a = first.change->encoding(api::EventType::kAdded, "json", make);
  EXPECT_EQ(second.change->encoding(api::EventType::kAdded, "json", make), a);
  EXPECT_EQ(made, 1);
  second.change->encoding(api::EventType::kAdded, "other", make);
  EXPECT_EQ(made, 2);
  second.change->encoding(api::EventType::kModified, "json", make);
  EXPECT_EQ(made, 3);
}

TEST_P(StorageTest, WatchersReceiveChangesOfManyWritersInOrder) {
  constexpr int kWriters = 4;
  constexpr int kEach = 200;
  std::vector<std::unique_ptr<WatchReader>> watches;
  for (int i = 0; i < 8; ++i) watches.push_back(pods().watch("", {}));
  std::vector<std::jthread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      StorageClient client(backend_->resource("pods"));
      const std::string name = "w" + std::to_string(w);
      client.create("n1/" + name, pod("n1", name));
      for (int i = 1; i < kEach; ++i)
        client.update("n1/" + name,
                      [&](const api::Object& o) { return with_app(o, "v" + std::to_string(i)); });
    });
  }
  for (auto& watch : watches) {
    Revision before = 0;
    // (Each call has a time limit, which is too short for everything on a slow machine.)
    for (int i = 0; i < kWriters; ++i) {
      const auto events = watch->take_events(kEach);
      ASSERT_EQ(events.size(), kEach);
      for (const Event& event : events) {
        if (before != 0) {
          ASSERT_EQ(event.revision, before + 1);
        }
        ASSERT_EQ(event.object.resource_version(), std::to_string(event.revision));
        before = event.revision;
      }
    }
  }
}

std::unique_ptr<Backend> memory_backend(std::size_t history) {
  MemoryOptions options;
  options.history = history;
  options.future_wait = std::chrono::milliseconds(300);
  return std::make_unique<MemoryBackend>(options);
}

std::unique_ptr<Backend> etcd_backend(const test::TestedEtcd& etcd, std::size_t history,
                                      bool watch_cache) {
  EtcdOptions options = test::reach_shared(etcd);
  options.prefix = test::unique_etcd_prefix();
  options.watch_cache = watch_cache;
  options.history = history;
  options.future_wait = std::chrono::milliseconds(300);
  return std::make_unique<EtcdBackend>(std::move(options));
}

void compact(Backend& backend, Revision revision) {
  TestThread thread;
  thread.run(dynamic_cast<EtcdBackend&>(backend).compact(revision));
}

BackendKind etcd_kind(const char* name, const test::TestedEtcd& etcd, bool watch_cache) {
  return {name, [=](std::size_t history) { return etcd_backend(etcd, history, watch_cache); },
          watch_cache, compact, [=] { return etcd.missing(); }};
}

const BackendKind kMemory{"memory", memory_backend};
const BackendKind kEtcd = etcd_kind("etcd", test::kRealEtcd, true);
const BackendKind kEtcdWithoutCache = etcd_kind("etcd_without_cache", test::kRealEtcd, false);
// The simulator's etcd must behave like the real one.
const BackendKind kModel34 = etcd_kind("model_of_etcd_3_4", test::kModel34, true);
const BackendKind kModel35 = etcd_kind("model_of_etcd_3_5", test::kModel35, true);
const BackendKind kModelWithoutCache =
    etcd_kind("model_of_etcd_without_cache", test::kModel35, false);

INSTANTIATE_TEST_SUITE_P(Backends, StorageTest,
                         Values(kMemory, kEtcd, kEtcdWithoutCache, kModel34, kModel35,
                                kModelWithoutCache),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Backends, SharedHistoryTest, Values(kMemory, kEtcd, kModel34, kModel35),
                         [](const auto& test) { return test.param.name; });

TEST(MemoryStorage, ObjectsWithATimeToLiveExpire) {
  MemoryBackend backend;
  StorageClient events(backend.resource("events", std::chrono::hours(1)));
  events.create("n1/old", pod("n1", "old"));
  events.create("n1/renewed", pod("n1", "renewed"));
  auto watch = events.watch("", {});
  EXPECT_EQ(watch->take(2).size(), 2u);
  const auto now = std::chrono::steady_clock::now();
  backend.expire(now + std::chrono::minutes(59));
  EXPECT_TRUE(events.get("n1/old"));
  backend.expire(now + std::chrono::minutes(61));
  EXPECT_FALSE(events.get("n1/old"));
  EXPECT_EQ(watch->take(2), (Told{"DELETED n1/old", "DELETED n1/renewed"}));
}

TEST(MemoryStorage, AChangeRenewsTheTimeToLive) {
  MemoryBackend backend;
  StorageClient events(backend.resource("events", std::chrono::seconds(3600)));
  events.create("n1/a", pod("n1", "a"));
  const auto created = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() <= created) continue;
  events.update("n1/a", [](const api::Object& o) { return with_app(o, "b"); });
  backend.expire(created + std::chrono::seconds(3600));
  EXPECT_TRUE(events.get("n1/a"));
}

}  // namespace
}  // namespace lookout::apiserver::storage
