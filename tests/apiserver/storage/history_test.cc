// The limits of the history.
#include "apiserver/storage/history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apiserver/storage/memory/table.h"
#include "tests/support/eventually.h"

namespace lookout::apiserver::storage {
namespace {

using std::chrono::seconds;

api::Object object(std::size_t bytes) {
  return api::Object::parse(R"({"metadata":{"name":"a"},"data":")" + std::string(bytes, 'x') +
                            "\"}");
}

ChangePtr change(Revision revision, std::size_t bytes = 10) {
  return std::make_shared<const Change>(revision, api::EventType::kModified, "a", object(10),
                                        object(bytes));
}

std::vector<Revision> known(const History& history) {
  std::vector<ChangePtr> changes;
  history.read(history.start(), 1000, changes);
  std::vector<Revision> out;
  for (const ChangePtr& one : changes) out.push_back(one->revision());
  return out;
}

using Revisions = std::vector<Revision>;

TEST(HistoryTest, IsBoundedByCount) {
  History history({.count = 3}, 1);
  for (Revision revision = 2; revision < 8; ++revision) history.add(change(revision));
  EXPECT_EQ(known(history), (Revisions{5, 6, 7}));
  EXPECT_EQ(history.start(), 4u);
}

TEST(HistoryTest, IsBoundedByBytes) {
  History history({.bytes = 100000}, 1);
  for (Revision revision = 2; revision < 12; ++revision) history.add(change(revision, 30000));
  EXPECT_EQ(known(history), (Revisions{9, 10, 11}));
  EXPECT_EQ(history.start(), 8u);
  // The latest change stays, regardless of its size.
  history.add(change(12, 1000000));
  EXPECT_EQ(known(history), Revisions{12});
  EXPECT_EQ(history.start(), 11u);
  // There is space again after it is dropped.
  for (Revision revision = 13; revision < 16; ++revision) history.add(change(revision, 30000));
  EXPECT_EQ(known(history), (Revisions{13, 14, 15}));
}

TEST(HistoryTest, IsBoundedByAge) {
  const History::TimePoint begin;
  History history({.age = seconds(60)}, 1);
  for (Revision revision = 2; revision < 6; ++revision)
    history.add(change(revision), begin + seconds(10 * revision));
  EXPECT_EQ(known(history).size(), 4u);
  history.add(change(6), begin + seconds(95));
  EXPECT_EQ(known(history), (Revisions{4, 5, 6}));
  EXPECT_EQ(history.start(), 3u);
  // The same without new changes, except for the latest one.
  history.trim(begin + seconds(1000));
  EXPECT_EQ(known(history), Revisions{6});
  EXPECT_EQ(history.start(), 5u);
}

TEST(HistoryTest, AResetDropsPendingChanges) {
  History history({.bytes = 100000}, 1);
  for (int round = 0; round < 3; ++round) {
    const Revision begin = 10u * static_cast<Revision>(round + 1);
    history.reset(begin);
    for (Revision i = 1; i < 4; ++i) history.add(change(begin + i, 30000));
    EXPECT_EQ(known(history).size(), 3u);
  }
}

TEST(HistoryTest, NeverReturnsAPartOfARevision) {
  History history({.count = 3}, 1);
  history.add(change(2));
  for (int i = 0; i < 5; ++i) history.add(change(3));
  EXPECT_EQ(history.start(), 3u);
  EXPECT_EQ(known(history), Revisions{});
  history.add(change(4));
  EXPECT_EQ(known(history), Revisions{4});
}

/// A watcher of a table that counts its rings.
class TestWatcher {
 public:
  TestWatcher(memory::Table& table, std::string scope) : table_(table) {
    watcher_.scope = std::move(scope);
    watcher_.cursor = table.current_revision();
    watcher_.ring = [this] {
      ++rings;
      if (on_ring) on_ring();
    };
    watcher_.stuck = [this] { ++stuck; };
    table_.add(watcher_);
  }
  ~TestWatcher() { table_.remove(watcher_); }
  TestWatcher(const TestWatcher&) = delete;
  TestWatcher& operator=(const TestWatcher&) = delete;

  memory::Table::Reading read() {
    Revision caught_up = 0;
    return table_.read(watcher_, 100, changes, caught_up);
  }

  std::vector<ChangePtr> changes;
  std::atomic<int> rings{0};
  std::atomic<int> stuck{0};
  std::function<void()> on_ring;

 private:
  memory::Table& table_;
  memory::Watcher watcher_;
};

memory::Table::Change put(const std::string& key) { return {key, object(10)}; }

using Reading = memory::Table::Reading;

TEST(TableTest, ARevisionLargerThanTheHistoryIsNotLostSilently) {
  memory::Table table("/p", std::make_shared<std::atomic<Revision>>(0), {.count = 2}, seconds(0));
  table.replace({}, 10);
  TestWatcher concerned(table, "large/");
  // The dropped changes of the revision are unknown.
  TestWatcher other(table, "other/");
  TestWatcher busy(table, "large/");
  for (TestWatcher* watcher : {&concerned, &other}) EXPECT_EQ(watcher->read(), Reading::kNothing);
  table.apply({put("large/a"), put("large/b"), put("large/c")}, 11);
  EXPECT_EQ(concerned.rings, 1);
  EXPECT_EQ(other.rings, 1);
  EXPECT_EQ(busy.stuck, 1);
  TestWatcher late(table, "other/");
  EXPECT_EQ(late.read(), Reading::kNothing);
  table.apply({put("other/x")}, 12);
  for (TestWatcher* watcher : {&concerned, &other, &busy})
    EXPECT_EQ(watcher->read(), Reading::kExpired);
  // Later watches continue.
  EXPECT_EQ(late.rings, 1);
  EXPECT_EQ(late.read(), Reading::kChanges);
  ASSERT_EQ(late.changes.size(), 1u);
  EXPECT_EQ(late.changes[0]->revision(), 12u);
}

// etcd's leases end, and its transactions change, many keys in one revision.
TEST(TableTest, AllChangesOfARevisionAreDelivered) {
  memory::Table table("/p", std::make_shared<std::atomic<Revision>>(0), {}, seconds(0));
  table.replace({}, 10);
  TestWatcher first(table, "a/");
  TestWatcher last(table, "c/");
  TestWatcher other(table, "d/");
  for (TestWatcher* watcher : {&first, &last, &other})
    EXPECT_EQ(watcher->read(), Reading::kNothing);
  table.apply({put("b/x")}, 11);
  table.apply({put("a/x"), put("b/y"), put("c/x")}, 12);
  for (TestWatcher* watcher : {&first, &last}) {
    EXPECT_EQ(watcher->rings, 1);
    EXPECT_EQ(watcher->read(), Reading::kChanges);
    EXPECT_EQ(watcher->changes.size(), 3u);
  }
  EXPECT_EQ(other.rings, 0);
  EXPECT_EQ(other.read(), Reading::kNothing);
}

TEST(TableTest, ChangesDroppedBeforeDispatchAreNotLostSilently) {
  memory::Table table("/p", std::make_shared<std::atomic<Revision>>(0), {.count = 1}, seconds(0));
  TestWatcher waiting(table, "b");
  TestWatcher ringing(table, "a");
  EXPECT_EQ(waiting.read(), Reading::kNothing);
  EXPECT_EQ(ringing.read(), Reading::kNothing);
  std::vector<std::jthread> writers;
  // While the first change is dispatched, others occur; the history has the last of them.
  ringing.on_ring = [&] {
    for (Revision revision = 2; revision < 4; ++revision) {
      writers.emplace_back(
          [&table, revision] { table.commit(revision == 2 ? "b" : "c", nullptr, object(10)); });
      EXPECT_TRUE(test::eventually([&] { return table.current_revision() == revision; }));
    }
  };
  table.commit("a", nullptr, object(10));
  writers.clear();
  EXPECT_EQ(table.history_start(), 2u);
  EXPECT_EQ(waiting.rings, 1);
  EXPECT_EQ(waiting.read(), Reading::kExpired);
}

TEST(TableTest, AVerifiedRevisionAppliesOnlyToItsHistory) {
  memory::Table table("/p", std::make_shared<std::atomic<Revision>>(0), {}, seconds(0));
  table.replace({}, 10);
  const auto moment = table.now();
  table.advance(15, moment.epoch);
  EXPECT_EQ(table.current_revision(), 15u);
  table.advance(12, moment.epoch);
  EXPECT_EQ(table.current_revision(), 15u);
  table.restart({}, 3);
  table.advance(20, moment.epoch);
  EXPECT_EQ(table.current_revision(), 3u);
}

}  // namespace
}  // namespace lookout::apiserver::storage
