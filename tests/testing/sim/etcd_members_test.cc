// Members of the simulated etcd that lag, hang or are cut off from the others; and the client,
// which fails over to another member.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/testing/sim/world.h"
#include "testing/sim/world_impl.h"
#include "tests/apiserver/storage/etcd3/writing_and_following.h"
#include "tests/apiserver/storage/storage_client.h"

namespace lookout::sim {
namespace {

using namespace std::chrono_literals;
using namespace apiserver::storage;

class EtcdMembersTest : public testing::Test {
 protected:
  EtcdModel& etcd() { return *world_.impl().etcd(); }

  /// A storage with these members as endpoints, the first one first.
  EtcdOptions reach(const std::vector<std::size_t>& members) {
    EtcdOptions out;
    for (const std::size_t i : members) out.endpoints.push_back(etcd().endpoints().at(i));
    out.network = etcd().shared_from_this();
    out.prefix = "/members";
    out.watch_cache = false;
    out.compaction_interval = 0ms;
    return out;
  }
  /// The duration of a call.
  template <class F>
  Time time_of(F f) {
    const Time before = world_.now();
    f();
    return world_.now() - before;
  }
  Revision write(const std::string& name) {
    return revision_of(writer_.create("n/" + name, pod(name, 1)));
  }

  /// The client's pings get no response for 9.5 s; then the client changes to another member.
  void expect_given_up(const std::function<void()>& fault) {
    EtcdBackend storage(reach({0, 1, 2}));
    StorageClient reader(storage.resource("pods"));
    const Follower follower(storage.resource("pods"));
    world_.sleep(1s);
    fault();
    const Revision revision = write("first");
    const Time time = time_of([&] { EXPECT_TRUE(reader.get("n/first")); });
    EXPECT_GE(time, 9s);
    EXPECT_LT(time, 10s);
    world_.sleep(1s);
    EXPECT_EQ(follower.seen(), revision);
    EXPECT_EQ(follower.spans().size(), 1u) << "the watch goes on, it does not begin again";
  }

  World world_{1, {.etcd = true}};
  EtcdBackend prompt_{reach({1})};
  StorageClient writer_{prompt_.resource("pods")};
};

TEST_F(EtcdMembersTest, ALaggingMemberServesOldEventsToWatches) {
  EtcdBackend late(reach({0}));
  const Follower follower(late.resource("pods"));
  world_.sleep(1s);
  etcd().delay(0, 3s, 1min);
  const Revision first = write("first");
  const Revision second = write("second");
  EXPECT_LT(first, second);
  world_.sleep(2s);
  EXPECT_LT(follower.seen(), first);
  world_.sleep(2s);
  EXPECT_EQ(follower.seen(), second);
  // At the end of the minute the member catches up.
  world_.sleep(54s);
  const Revision third = write("third");
  world_.sleep(2500ms);
  EXPECT_EQ(follower.seen(), third);
  EXPECT_EQ(follower.wrong(), "");
}

TEST_F(EtcdMembersTest, ReadsWaitForALaggingMember) {
  EtcdBackend late(reach({0}));
  StorageClient reader(late.resource("pods"));
  etcd().delay(0, 3s, 1min);
  write("first");
  const Time time = time_of([&] { EXPECT_TRUE(reader.get("n/first")); });
  EXPECT_GE(time, 2900ms);
  EXPECT_LT(time, 4s);
}

TEST_F(EtcdMembersTest, WritesReturnWhenALaggingMemberHasThem) {
  EtcdBackend late(reach({0}));
  StorageClient other(late.resource("pods"));
  etcd().delay(0, 3s, 1min);
  EXPECT_GE(time_of([&] { other.create("n/a", pod("a", 1)); }), 3s);
  etcd().delay(0, 30s, 1min);
  // etcd's error after 7 s. The write has happened nevertheless.
  try {
    other.create("n/b", pod("b", 1));
    FAIL() << "answered before it could be";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("request timed out"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(writer_.get("n/b"));
}

TEST_F(EtcdMembersTest, ALaggingMemberCompactsLate) {
  EtcdBackend late(reach({0}));
  StorageClient reader(late.resource("pods"));
  const Revision first = write("first");
  const Follower follower(late.resource("pods"));
  world_.sleep(1s);
  etcd().delay(0, 4s, 1min);
  const Revision second = write("second");
  world_.sleep(1s);
  etcd().compact(second);
  EXPECT_EQ(etcd().compacted(), second);
  world_.sleep(8s);
  EXPECT_EQ(follower.seen(), second) << "it had heard of the second before the compaction";
  EXPECT_EQ(follower.spans().size(), 1u);
  EXPECT_LT(first, second);
}

TEST_F(EtcdMembersTest, ASilentConnectionIsClosed) {
  expect_given_up([this] { etcd().freeze(0, 5min, false); });
}

TEST_F(EtcdMembersTest, AConnectionToARestartedMachineIsClosed) {
  // The machine restarts at once.
  expect_given_up([this] { etcd().freeze(0, 100ms, true); });
}

TEST_F(EtcdMembersTest, AMemberThatPausesBrieflyKeepsItsConnection) {
  EtcdBackend storage(reach({0}));
  StorageClient reader(storage.resource("pods"));
  const Follower follower(storage.resource("pods"));
  world_.sleep(1s);
  etcd().freeze(0, 5s, false);
  const Revision revision = write("first");
  world_.sleep(1s);
  const Time time = time_of([&] { EXPECT_TRUE(reader.get("n/first")); });
  EXPECT_GE(time, 3900ms);
  EXPECT_LT(time, 5s);
  world_.sleep(1s);
  EXPECT_EQ(follower.seen(), revision);
}

TEST_F(EtcdMembersTest, AConnectAttemptWithoutResponseTimesOut) {
  etcd().freeze(0, 5min, false);
  write("first");
  EtcdBackend storage(reach({0, 2}));
  StorageClient reader(storage.resource("pods"));
  const Time time = time_of([&] { EXPECT_TRUE(reader.get("n/first")); });
  EXPECT_GE(time, 3s);
  EXPECT_LT(time, 4s);
  EXPECT_LT(time_of([&] { reader.create("n/second", pod("second", 1)); }), 1s);
}

TEST_F(EtcdMembersTest, AMemberWithoutALeaderIsAbandoned) {
  EtcdBackend storage(reach({0, 2}));
  StorageClient reader(storage.resource("pods"));
  const Follower follower(storage.resource("pods"));
  world_.sleep(1s);
  etcd().cut_off(0, 5min);
  const Revision revision = write("first");
  // Within 2 s the member notices that it has no leader, and reports it.
  world_.sleep(3s);
  EXPECT_EQ(follower.seen(), revision);
  EXPECT_LT(time_of([&] { EXPECT_TRUE(reader.get("n/first")); }), 1s);
}

TEST_F(EtcdMembersTest, AMajorityElectsALeader) {
  etcd().cut_off(0, 20s);
  EXPECT_LT(time_of([&] { write("first"); }), 1s);
  etcd().cut_off(2, 5s);
  const Time time = time_of([&] { write("second"); });
  EXPECT_GE(time, 4900ms);
  EXPECT_LT(time, 6s);
}

}  // namespace
}  // namespace lookout::sim
