// Informers with handlers that are added and removed, with random schedules on real threads.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string>

#include "lookout/base/pinned.h"
#include "tests/informer/informer_fixture.h"
#include "tests/support/model.h"
#include "tests/support/sanitizers.h"

namespace lookout::informer {
namespace {

using lookout::test::Fate;
using lookout::test::Told;

/// A handler that checks its notifications.
class Witness : public base::Pinned {
 public:
  Witness(SharedIndexInformer& informer, std::string only_on_node, bool dawdles,
          HandlerOptions options)
      : only_on_node_(std::move(only_on_node)), dawdles_(dawdles), coalesces_(options.coalesce) {
    EventHandler<api::Object> handler;
    if (!only_on_node_.empty())
      handler.filter = [this](const api::Object& object) { return wants(object); };
    handler.on_add = [this](const api::Object& object, Origin origin) {
      called([&] { told_.add(object, origin == Origin::kInitialList); });
    };
    handler.on_update = [this](const api::Object& before, const api::Object& after) {
      called([&] { told_.update(before, after); });
    };
    handler.on_delete = [this](const api::Object& last) { called([&] { told_.remove(last); }); };
    handler.on_synced = [this] { called([&] { EXPECT_EQ(++synced_, 1); }); };
    registration_ = informer.add_handler(std::move(handler), options);
  }
  ~Witness() {
    if (dawdles_) registration_.drain();  // otherwise the removal drops queued notifications
    registration_.remove();
    removed_ = true;
  }

  void expect_to_know(const std::map<std::string, api::Object>& objects) {
    EXPECT_TRUE(registration_.wait_for_sync());
    EXPECT_EQ(registration_.exceptions(), 0u);
    const auto knows_all = [&] {
      std::size_t wanted = 0;
      for (const auto& [key, object] : objects) {
        if (!wants(object)) continue;
        if (!told_.knows(object)) return false;
        ++wanted;
      }
      return told_.size() == wanted;
    };
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 60s, knows_all));
    EXPECT_EQ(synced_, 1);
  }
  /// For schedules with one list and one watch.
  void expect_the_order_of_events() const {
    const std::lock_guard lock(mutex_);
    // (An object that starts or stops to match a filter is delivered with its previous state;
    // coalesced notifications have no order.)
    EXPECT_TRUE(told_.in_order() || !only_on_node_.empty() || coalesces_);
  }

 private:
  bool wants(const api::Object& object) const {
    return only_on_node_.empty() || object["spec"]["nodeName"].as_string() == only_on_node_;
  }
  template <class Check>
  void called(Check check) {
    EXPECT_FALSE(removed_) << "called after its removal";
    if (dawdles_) std::this_thread::yield();
    const std::lock_guard lock(mutex_);
    check();
    changed_.notify_all();
  }

  const std::string only_on_node_;
  const bool dawdles_;
  const bool coalesces_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Told told_;       // guarded by mutex_
  int synced_ = 0;  // guarded by mutex_
  std::atomic<bool> removed_{false};
  HandlerRegistration registration_;
};

class InformerModelTest : public test::InformerTest {
 protected:
  void run(unsigned seed) {
    Fate fate(seed);
    const auto source = std::make_shared<test::FakeSource>();
    options_.reflector.resync_period = fate.once_in(2) ? 1h : 0h;
    options_.reflector.use_watch_list = !fate.once_in(4);
    options_.reflector.watch_error_handler = [](std::string_view, const std::exception&) {};
    SharedIndexInformer informer(source, options_, loop_, pool_);
    std::list<Witness> witnesses;
    const auto add_witness = [&] {
      HandlerOptions options;
      if (fate.once_in(2)) options.resync_period = fate.once_in(2) ? 0h : 2h;
      options.coalesce = fate.once_in(2);
      witnesses.emplace_back(informer, fate.once_in(2) ? "n1" : "", fate.once_in(2), options);
    };
    for (auto i = fate.below(10); i > 0; --i) source->put("ns0/" + std::to_string(i));
    if (fate.once_in(2)) add_witness();
    if (fate.once_in(2)) informer.start();
    for (auto steps = 20 + fate.below(40); steps > 0; --steps) {
      fate.strike(*source);
      switch (fate.below(12)) {
        case 0:
          if (witnesses.size() < 6) add_witness();
          break;
        case 1:
          if (!witnesses.empty()) witnesses.pop_front();
          break;
        case 2:
          clock_->advance(1h);
          break;
        case 3:
          informer.start();
          break;
        case 4:
        case 5:
          std::this_thread::yield();
          break;
        case 6:
          EXPECT_TRUE(!informer.has_synced() || informer.wait_for_sync());
          break;
        default:
          break;
      }
    }
    add_witness();
    informer.start();
    source->resume();
    ASSERT_TRUE(informer.wait_for_sync());
    add_witness();
    source->put("ns0/last", {{}, "n1", {}});
    ASSERT_TRUE(source->wait_until_watched());

    const auto expected = source->contents();
    const cache::Snapshot now = informer.store().snapshot();
    EXPECT_EQ(now.size(), expected.size());
    for (const auto& [key, object] : expected) EXPECT_EQ(now.get_by_key(key), object) << key;
    for (auto& witness : witnesses) witness.expect_to_know(expected);
    const auto& stats = informer.stats();
    if (stats.lists == 1) {
      ++in_one_go_;
      for (auto& witness : witnesses) witness.expect_the_order_of_events();
    }
    if (fate.once_in(2)) informer.shutdown();
  }

  unsigned in_one_go_ = 0;  // schedules that show the order of events
};

TEST_F(InformerModelTest, EveryHandlerReceivesConsistentNotifications) {
  lookout::test::Seeds::each(lookout::test::kSanitized ? 500 : 3000,
                             [this](unsigned seed) { run(seed); });
  RecordProperty("in_one_go", std::to_string(in_one_go_));
  if (std::getenv("LOOKOUT_SEED") == nullptr) {
    EXPECT_GT(in_one_go_, 5u);
  }
}

}  // namespace
}  // namespace lookout::informer
