// How much of the past is kept.
#include "apiserver/storage/history.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "apiserver/storage/memory/table.h"

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
  // The latest one stays, however large it is.
  history.add(change(12, 1000000));
  EXPECT_EQ(known(history), Revisions{12});
  EXPECT_EQ(history.start(), 11u);
  // And room is there again when it has gone.
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
  // Also where nothing happens; but for the latest one.
  history.trim(begin + seconds(1000));
  EXPECT_EQ(known(history), Revisions{6});
  EXPECT_EQ(history.start(), 5u);
}

TEST(HistoryTest, AResetForgetsWhatWasTakenUp) {
  History history({.bytes = 100000}, 1);
  for (int round = 0; round < 3; ++round) {
    const Revision begin = 10u * static_cast<Revision>(round + 1);
    history.reset(begin);
    for (Revision i = 1; i < 4; ++i) history.add(change(begin + i, 30000));
    EXPECT_EQ(known(history).size(), 3u);
  }
}

TEST(TableTest, AVerifiedRevisionCountsForTheHistoryThatItWasVerifiedIn) {
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
