// The cache's requests to etcd, counted by a fake etcd.
#include "apiserver/storage/cacher/cacher.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "tests/apiserver/grpc/grpc_server.h"
#include "tests/apiserver/storage/etcd3/etcd_answers.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/support/eventually.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using test::eventually;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// An etcd with 30 pods in the namespace "m" and one in "n", with continual writes to another resource.
class BusyEtcd {
 public:
  explicit BusyEtcd(std::string version = "3.4.23")
      : version_(std::move(version)), server_([this](test::GrpcCall& call) { serve(call); }) {
    for (int i = 0; i < 30; ++i) add("m", "a" + std::to_string(i));
    add("n", "b");
  }

  std::string url() const { return server_.url(); }
  /// Ranges that read the whole resource, although they return little.
  int scans() const { return scans_; }
  int probes() const { return probes_; }
  int watches() const { return watches_; }
  /// Lists of more than one object.
  int lists() const { return lists_; }
  int progress_requests() const { return progress_requests_; }
  /// True: progress requests are answered, by a version that supports them.
  void tell_progress(bool tell) { tells_progress_ = tell; }
  /// Requests change nothing after this call; only change_something_else() does.
  void be_quiet() { busy_ = false; }
  void change_something_else() { ++revision_; }
  int revision() const { return revision_; }
  /// Progress requests get the responses of a lagging member.
  void stay_behind_at(int revision) { progress_ = revision; }
  /// This many of the next requests for its version fail.
  void refuse_status(int times) { refused_status_ = times; }
  /// Ranges of changes since a revision fail, as in kine.
  void know_no_filters() { knows_filters_ = false; }
  /// This many of the next watches are rejected.
  void reject_watches(int times) { rejected_watches_ = times; }
  /// Whether lists succeed.
  void answer_lists(bool answer) { answers_lists_ = answer; }
  /// Reads of one key are rejected.
  void forbid_gets() { forbids_gets_ = true; }
  /// Continues at this revision. After a restore, it is lower than before.
  void continue_at(int revision) { revision_ = revision; }
  /// Whether transactions, which succeed, wait for their responses.
  void hold_writes(bool hold) { holds_writes_ = hold; }
  int writes() const { return writes_; }

 private:
  void add(const std::string& ns, const std::string& name) {
    const api::Object object =
        api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":")" + ns +
                           R"(","name":")" + name + "\"}}");
    last_ = test::key_value("/p/pods/" + ns + "/" + name, json_codec()->encode(object), 5, 5);
    all_.message(2, last_);
    ++count_;
  }
  void serve(test::GrpcCall& call) {
    const std::string request = call.message().value_or("");
    if (busy_) ++revision_;
    test::Proto answer = test::answer(static_cast<std::uint64_t>(revision_.load()), kCluster);
    if (call.path() == "/etcdserverpb.Watch/Watch") return watch(call, answer);
    if (call.path() == "/etcdserverpb.KV/Txn") {
      ++writes_;
      eventually([&] { return !holds_writes_; });
      return static_cast<void>(call.send(answer.number(2, 1).text()));
    }
    if (call.path() == "/etcdserverpb.Maintenance/Status") {
      if (refused_status_-- > 0) return call.end(EtcdError::kUnavailable, "busy");
      return static_cast<void>(call.send(answer.bytes(2, version_).text()));
    }
    const bool many = !test::bytes_of(request, 2).empty();
    if (test::number_of(request, 9) != 0) ++probes_;
    if (many && !answers_lists_) return call.end(EtcdError::kInternal, "out of order");
    if (!many && forbids_gets_)
      return call.end(EtcdError::kPermissionDenied, "etcdserver: permission denied");
    if (test::number_of(request, 10) != 0) {
      ++scans_;
      if (!knows_filters_)
        return call.end(EtcdError::kUnimplemented, "minModRevision is not implemented by kine");
      answer.number(4, count_);
    } else if (test::bytes_of(request, 1) == "/p/pods/n/") {
      answer.message(2, last_).number(4, 1);
    } else if (many) {
      ++lists_;
      answer.append(all_.text()).number(4, count_);
    }
    call.send(answer.text());
  }

  void watch(test::GrpcCall& call, test::Proto& created) {
    ++watches_;
    if (rejected_watches_-- > 0) {
      call.send(test::canceled("etcdserver: permission denied", 0, true).text());
      return call.wait_for_end();
    }
    call.send(created.number(3, 1).text());
    while (const auto more = call.message()) {
      if (!test::field_of(*more, 3)) continue;
      ++progress_requests_;
      if (!tells_progress_) continue;
      // Without a watch ID: for all watches of the stream.
      const int behind = progress_;
      const auto at = static_cast<std::uint64_t>(behind != 0 ? behind : revision_.load());
      call.send(test::answer(at).number(2, ~std::uint64_t{0}).text());
    }
  }

  static constexpr std::uint64_t kCluster = 7;

  const std::string version_;
  test::Proto all_;
  test::Proto last_;
  std::uint64_t count_ = 0;
  std::atomic<int> refused_status_{0};
  std::atomic<int> rejected_watches_{0};
  std::atomic<int> lists_{0};
  std::atomic<bool> answers_lists_{true};
  std::atomic<bool> forbids_gets_{false};
  std::atomic<bool> holds_writes_{false};
  std::atomic<int> writes_{0};
  std::atomic<bool> knows_filters_{true};
  std::atomic<bool> tells_progress_{true};
  std::atomic<int> progress_requests_{0};
  std::atomic<bool> busy_{true};
  std::atomic<int> progress_{0};
  std::atomic<int> revision_{10};
  std::atomic<int> scans_{0};
  std::atomic<int> probes_{0};
  std::atomic<int> watches_{0};
  test::GrpcServer server_;
};

class CacherTest : public testing::Test {
 protected:
  explicit CacherTest(std::string version = "3.4.23") : etcd_(std::move(version)) {}

  void cache(std::chrono::milliseconds silence, cacher::Options options = {}) {
    options.silence = silence;
    options.future_wait = std::chrono::milliseconds(300);
    cacher_ =
        std::make_unique<cacher::Cacher>(client_.get(), store_for(client_, "/p/pods"), options);
    pods_ = std::make_unique<StorageClient>(*cacher_);
  }

  BusyEtcd etcd_;
  EtcdClient client_{options_for({etcd_.url()})};
  std::unique_ptr<cacher::Cacher> cacher_;
  std::unique_ptr<StorageClient> pods_;
};

TEST_F(CacherTest, ASilentWatchRarelyCausesAFullRead) {
  cache(std::chrono::milliseconds(10));
  EXPECT_TRUE(eventually([&] { return etcd_.probes() >= 40; }));
  const int scans = etcd_.scans();
  EXPECT_GE(scans, 2) << "but it is one";
  EXPECT_GE(etcd_.probes(), 5 * scans);
  EXPECT_EQ(etcd_.watches(), 1) << "and it goes on";
}

TEST_F(CacherTest, TheNewestStateOfASmallPartIsReadFromEtcd) {
  cache(std::chrono::hours(1));
  ASSERT_TRUE(pods_->wait_until_served());
  const int before = etcd_.scans();
  EXPECT_EQ(pods_->list("n/").objects.size(), 1u);
  EXPECT_EQ(etcd_.scans(), before);
  ListOptions one;
  one.limit = 1;
  pods_->list("", one);
  EXPECT_EQ(etcd_.scans(), before);
  // For most of the resource, a query for changes is cheaper.
  EXPECT_EQ(pods_->list("m/").objects.size(), 30u);
  EXPECT_EQ(pods_->list("").objects.size(), 31u);
  EXPECT_EQ(etcd_.scans(), before + 2);
}

TEST_F(CacherTest, WithoutChangeInformationReadsFromEtcd) {
  etcd_.know_no_filters();
  cache(std::chrono::hours(1));
  ASSERT_TRUE(pods_->wait_until_served());
  EXPECT_EQ(pods_->list("").objects.size(), 31u);
  EXPECT_GT(etcd_.scans(), 0);
}

TEST_F(CacherTest, AWatchThatIsRejectedForAShortTimeGoesOn) {
  etcd_.reject_watches(3);
  cache(std::chrono::hours(1));
  ASSERT_TRUE(eventually([&] { return etcd_.watches() >= 4; }));
  EXPECT_EQ(etcd_.lists(), 1);
}

TEST_F(CacherTest, AWatchThatIsRejectedForALongTimeCausesARelist) {
  etcd_.reject_watches(3);
  cacher::Options options;
  options.rejection_patience = std::chrono::milliseconds(0);
  cache(std::chrono::hours(1), options);
  ASSERT_TRUE(eventually([&] { return etcd_.watches() >= 4; }));
  EXPECT_EQ(etcd_.lists(), 4);
}

TEST_F(CacherTest, AWatchFromTheFutureEndsWithTheErrorOfItsQuestion) {
  cache(std::chrono::hours(1));
  ASSERT_TRUE(pods_->wait_until_served());
  etcd_.be_quiet();
  etcd_.forbid_gets();
  auto watch = pods_->watch("", from_revision(static_cast<Revision>(etcd_.revision()) + 1000));
  const auto events = watch->take_until_the_end();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, api::EventType::kError);
  EXPECT_EQ(events[0].object["code"].as_int(), 500);
  EXPECT_THAT(events[0].object["message"].as_string(), HasSubstr("permission denied"));
}

TEST_F(CacherTest, AWriteOfAnEarlierHistoryDelaysNoList) {
  constexpr int kBefore = 1000;
  constexpr int kRestored = 500;
  cache(std::chrono::hours(1));
  ASSERT_TRUE(pods_->wait_until_served());
  etcd_.be_quiet();
  etcd_.continue_at(kBefore);
  client_.range("/x");
  etcd_.hold_writes(true);
  std::jthread writer([&] { StorageClient(*cacher_).create("n/new", pod("new")); });
  ASSERT_TRUE(eventually([&] { return etcd_.writes() == 1; }));
  etcd_.continue_at(kRestored);
  const int before = etcd_.lists();
  client_.range("/x");
  EXPECT_TRUE(eventually([&] { return etcd_.lists() > before; }));
  EXPECT_TRUE(pods_->wait_until_served());
  etcd_.hold_writes(false);
  writer.join();
  const int lists = etcd_.lists();
  ListOptions any;
  any.match = VersionMatch::kNotOlderThan;
  EXPECT_EQ(pods_->list("", any).objects.size(), 31u);
  EXPECT_EQ(etcd_.lists(), lists) << "it does not come from the cache";
}

/// With an etcd that supports progress requests.
class ProgressTest : public CacherTest {
 protected:
  ProgressTest() : CacherTest("3.5.16") {}

  /// The watch was created, so progress may be requested.
  void be_ready() {
    ASSERT_TRUE(pods_->wait_until_served());
    ASSERT_TRUE(eventually([&] {
      pods_->list("");
      return etcd_.progress_requests() > 0;
    }));
  }
};

TEST_F(ProgressTest, TheNewestStateComesFromTheCacheAfterProgress) {
  cache(std::chrono::hours(1));
  be_ready();
  const int before = etcd_.scans();
  for (int i = 1; i <= 20; ++i) {
    const int asked = etcd_.progress_requests();
    EXPECT_EQ(pods_->list("").objects.size(), 31u);
    EXPECT_EQ(pods_->list("n/").objects.size(), 1u) << "even a little part of it";
    EXPECT_GE(etcd_.progress_requests(), asked + 2) << "each has asked";
  }
  EXPECT_EQ(etcd_.scans(), before) << "etcd need not look at what there is";
}

TEST_F(ProgressTest, AListOfAnIdleResourceMakesOneProgressRequest) {
  cacher::Options options;
  options.progress_patience = std::chrono::hours(1);  // late responses do not cause another one
  cache(std::chrono::hours(1), options);
  be_ready();
  etcd_.be_quiet();
  pods_->list("");
  for (const bool known : {false, true, false, true}) {
    const int asked = etcd_.progress_requests();
    etcd_.change_something_else();
    if (known) client_.range("/x");
    EXPECT_EQ(pods_->list("").objects.size(), 31u);
    EXPECT_EQ(etcd_.progress_requests(), asked + 1) << known;
    EXPECT_EQ(pods_->list("").revision, static_cast<Revision>(etcd_.revision()));
    EXPECT_EQ(etcd_.progress_requests(), asked + 1) << "nothing has changed since";
  }
}

// Otherwise etcd would read everything for each list, for the lifetime of the watch.
TEST_F(ProgressTest, AFailedVersionRequestIsRetried) {
  etcd_.refuse_status(2);
  cache(std::chrono::hours(1));
  be_ready();
  EXPECT_EQ(etcd_.watches(), 3);
}

TEST_F(ProgressTest, ALaggingMemberIsAskedWithPauses) {
  cache(std::chrono::hours(1));
  be_ready();
  etcd_.be_quiet();
  pods_->list("");
  etcd_.stay_behind_at(etcd_.revision());
  const int asked = etcd_.progress_requests();
  etcd_.change_something_else();
  EXPECT_EQ(pods_->list("").objects.size(), 31u) << "from etcd, after 300 ms";
  // After 0, 20, 60, 140 and 300 ms; and once more after a late response.
  EXPECT_LE(etcd_.progress_requests(), asked + 8);
}

TEST_F(ProgressTest, ASilentWatchIsProbedAndReplaced) {
  cache(std::chrono::milliseconds(10));
  EXPECT_TRUE(eventually([&] { return etcd_.progress_requests() >= 5; }));
  EXPECT_EQ(etcd_.watches(), 1);
  EXPECT_EQ(etcd_.scans(), 0);
  etcd_.tell_progress(false);
  EXPECT_TRUE(eventually([&] { return etcd_.watches() >= 2; }));
}

TEST(ProgressVersionTest, SendsProgressAfterEvents) {
  for (const char* sound : {"3.4.31", "3.4.40", "3.5.13", "3.5.16", "3.6.0", "3.6.0-rc.1", "4.0.0"})
    EXPECT_TRUE(has_sound_progress(sound)) << sound;
  for (const char* other :
       {"3.4.23", "3.4.30", "3.3.99", "3.5.0", "3.5.12", "2.9.9", "", "3", "3.5", "x.y.z", "3.5.x"})
    EXPECT_FALSE(has_sound_progress(other)) << other;
}

TEST_F(CacherTest, WithoutAStateListsAndWatchesAreRejected) {
  etcd_.answer_lists(false);
  cache(std::chrono::hours(1));
  const auto refused = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const api::StatusError& e) {
      return api::is_too_many_requests(e) && api::suggests_client_delay(e);
    }
    return false;
  };
  ListOptions some;
  some.limit = 10;
  some.predicate = app_is("a");
  WatchOptions state;
  state.start = WatchOptions::Start::kState;
  EXPECT_TRUE(refused([&] { pods_->list(""); }));
  EXPECT_TRUE(refused([&] { pods_->list("m/", some); }));
  EXPECT_TRUE(refused([&] { pods_->watch("", state); }));
  EXPECT_TRUE(refused([&] { pods_->watch("", {}); }));
  EXPECT_FALSE(pods_->get("m/c")) << "objects come from etcd";
  etcd_.answer_lists(true);
  EXPECT_TRUE(eventually([&] { return !refused([&] { pods_->list(""); }); }));
}

/// A cache of a real etcd with unreadable values from other writers.
class UnreadableTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
    EtcdOptions options = options_for(test::shared_etcd().endpoints());
    options.prefix = prefix_;
    options.compaction_interval = {};
    backend_ = std::make_unique<EtcdBackend>(options);
    etcd_ = std::make_unique<EtcdClient>(options);
    open();
    // A watch can start at any revision from here on.
    ASSERT_TRUE(eventually([&] { return listed("").empty(); })) << listed("");
  }
  void TearDown() override {
    watches_.clear();
    pods_.reset();
  }
  void open() { pods_ = std::make_unique<StorageClient>(backend_->resource("pods", {}, "pods")); }
  Revision put(const std::string& key, const std::string& value) {
    return etcd_->put(prefix_ + "/pods/" + key, value);
  }
  Revision put_pod(const std::string& key) {
    return put(key, json_codec()->encode(pod(key.substr(key.find('/') + 1))));
  }
  void remove(const std::string& key) {
    test::shared_etcd().etcdctl({"del", prefix_ + "/pods/" + key});
  }
  WatchReader& watch(const std::string& key, Revision revision) {
    return *watches_.emplace_back(pods_->watch(key, from_revision(revision)));
  }
  /// The list, or the error message.
  std::string listed(const std::string& key, ListOptions options = {}) {
    std::string out;
    try {
      for (const api::Object& object : pods_->list(key, std::move(options)).objects)
        out += (out.empty() ? "" : " ") + std::string(object.name());
    } catch (const Error& e) {
      return e.what();
    }
    return out;
  }
  static ListOptions at(Revision revision) {
    ListOptions options;
    options.match = VersionMatch::kExact;
    options.revision = revision;
    return options;
  }
  /// The message of the only event, an error.
  static std::string last_words(WatchReader& watch) {
    const std::vector<Event> events = watch.take_until_the_end();
    if (events.size() != 1 || events[0].type != api::EventType::kError) return "no single error";
    return api::Status::from(events[0].object)->message;
  }

  const std::string prefix_ = test::unique_etcd_prefix();
  const std::string bad_ = prefix_ + "/pods/n/bad";
  std::unique_ptr<EtcdBackend> backend_;
  std::unique_ptr<EtcdClient> etcd_;
  std::unique_ptr<StorageClient> pods_;
  std::vector<std::unique_ptr<WatchReader>> watches_;
};

TEST_F(UnreadableTest, OtherObjectsAreServed) {
  const Revision begin = put_pod("n/a");
  put_pod("m/b");
  EXPECT_EQ(listed(""), "b a");
  WatchReader& here = watch("n/", begin);
  WatchReader& elsewhere = watch("m/", begin);
  // (All values name the namespace "n".)
  EXPECT_THAT(elsewhere.take(1), ElementsAre("ADDED n/b"));
  put("n/bad", "{\"secret");

  EXPECT_THAT(last_words(here), AllOf(HasSubstr(bad_), Not(HasSubstr("secret"))));
  EXPECT_THAT(listed(""), HasSubstr(bad_));
  EXPECT_THAT(listed("n/"), AllOf(HasSubstr(bad_), Not(HasSubstr("secret"))));
  EXPECT_EQ(listed("m/"), "b");
  EXPECT_TRUE(pods_->get("n/a", begin));
  EXPECT_THROW(pods_->get("n/bad", begin), StorageError);
  EXPECT_THROW(pods_->remove("n/bad"), StorageError);

  const Revision later = put_pod("m/c");
  EXPECT_THAT(elsewhere.take(1), ElementsAre("ADDED n/c"));
  WatchReader& again = watch("n/", later);
  put_pod("n/d");
  EXPECT_THAT(again.take(1), ElementsAre("ADDED n/d"));
  // Readable again.
  put_pod("n/bad");
  EXPECT_THAT(again.take(1), ElementsAre("ADDED n/bad"));
  EXPECT_EQ(listed("n/"), "a bad d");
  EXPECT_THAT(listed("n/", at(later)), HasSubstr(bad_)) << "then it was not";
}

TEST_F(UnreadableTest, AnInvalidObjectIsUnreadable) {
  put_pod("n/a");
  EXPECT_EQ(listed("n/"), "a");
  for (const char* value :
       {"{}", R"({"kind":"Pod"})", R"({"kind":"Pod","metadata":5})",
        R"({"kind":"Pod","metadata":{"name":5}})", R"({"metadata":{"name":"bad"}})"}) {
    put("n/bad", value);
    EXPECT_THAT(listed("n/"), HasSubstr(bad_)) << value;
    EXPECT_THROW(pods_->get("n/bad"), StorageError) << value;
  }
  put_pod("n/bad");
  EXPECT_EQ(listed("n/"), "a bad");
  // The form that kube-apiserver writes.
  put("n/range", R"({"kind":"RangeAllocation","apiVersion":"v1","metadata":{},"range":"1-2"})");
  EXPECT_TRUE(pods_->get("n/range"));
}

TEST_F(UnreadableTest, UnreadableObjectsAreNotReportedAsDeleted) {
  const Revision begin = put_pod("n/bad");
  EXPECT_EQ(listed(""), "bad");
  WatchReader& first = watch("n/", begin);
  const Revision bad = put("n/bad", "nonsense");
  EXPECT_THAT(last_words(first), HasSubstr(bad_));
  EXPECT_EQ(listed("", at(begin)), "bad") << "as it was";
  WatchReader& second = watch("n/", bad);
  put("n/bad", "other nonsense");
  EXPECT_THAT(listed(""), HasSubstr(bad_));
  EXPECT_THAT(second.poll(), IsEmpty()) << "nothing new";
  remove("n/bad");
  EXPECT_THAT(last_words(second), HasSubstr(bad_)) << "without a last state";
  EXPECT_EQ(listed(""), "");
  EXPECT_FALSE(pods_->get("n/bad"));
  EXPECT_THAT(listed("", at(bad)), HasSubstr(bad_));
}

TEST_F(UnreadableTest, AppliesToTheInitialState) {
  put("q/a", "nonsense");
  put_pod("q/b");
  backend_.reset();
  EtcdOptions options = options_for(test::shared_etcd().endpoints());
  options.prefix = prefix_;
  backend_ = std::make_unique<EtcdBackend>(options);
  open();
  EXPECT_THAT(listed("q/"), HasSubstr(prefix_ + "/pods/q/a"));
  EXPECT_EQ(listed("r/"), "");
  EXPECT_TRUE(pods_->get("q/b", 1));
  WatchOptions state;
  state.start = WatchOptions::Start::kState;
  EXPECT_THROW(pods_->watch("q/", state), api::StatusError);
  EXPECT_NO_THROW(pods_->watch("r/", state));
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
