// From the source to the notifications, with thousands of random schedules, on one thread. The seed
// determines everything that happens, and when.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lookout/testing/fake_clock.h"
#include "lookout/tools/cache/controller.h"
#include "lookout/tools/cache/reflector.h"
#include "tests/support/fake_source.h"
#include "tests/support/model.h"
#include "tests/support/sanitizers.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;

/// Passes everything on to a controller, and records the notifications that handlers must receive:
/// for single changes, exactly these, in this order.
class Ledger : public ReflectorStore {
 public:
  explicit Ledger(Controller& controller) : controller_(controller) {}

  void add(const api::Object& object) override {
    expected_.push_back(entry('+', object));
    controller_.add(object);
  }
  void update(const api::Object& object) override {
    expected_.push_back(entry('+', object));
    controller_.update(object);
  }
  void remove(const api::Object& object) override {
    expected_.push_back(entry('-', object));
    controller_.remove(object);
  }
  void replace(std::vector<api::Object> objects, const std::string& version) override {
    exact_ = false;
    controller_.replace(std::move(objects), version);
  }
  void resync() override {
    exact_ = false;
    controller_.resync();
  }
  std::vector<api::Object> objects() const override { return controller_.objects(); }
  void flush(const std::string& version) override { controller_.flush(version); }
  api::Object prepare(api::Object object) const override {
    return controller_.prepare(std::move(object));
  }

  /// Called with the notifications of each flush. `known`: the keys that handlers know before it.
  void check(const std::vector<Notification>& notifications, std::set<std::string> known) {
    std::vector<std::string> told;
    for (const auto& n : notifications)
      told.push_back(entry(n.type == Notification::Type::kDelete ? '-' : '+', n.object));
    // A deletion of an unknown object is not delivered.
    std::vector<std::string> expected;
    for (const auto& text : expected_) {
      const std::string key = text.substr(1, text.find('@') - 1);
      if (text[0] == '+') {
        known.insert(key);
      } else if (known.erase(key) == 0) {
        continue;
      }
      expected.push_back(text);
    }
    if (exact_) {
      EXPECT_EQ(told, expected);
      if (told.size() > 1) ++batches;
    }
    expected_.clear();
    exact_ = true;
  }

  static inline std::size_t batches = 0;  // checked batches of several changes

 private:
  static std::string entry(char what, const api::Object& object) {
    return what + object.key() + "@" + std::string(object.resource_version());
  }

  Controller& controller_;
  std::vector<std::string> expected_;
  bool exact_ = true;
};

void run(unsigned seed) {
  test::Fate fate(seed);
  boost::asio::io_context context;
  const auto clock = std::make_shared<test::FakeClock>();
  const auto source = std::make_shared<test::FakeSource>();
  test::Told told;
  bool synced_told = false;
  std::optional<Ledger> ledger;

  Indexer store({{std::string(kNamespaceIndex), index_by_namespace}});
  const TransformFunc transform = [](const api::Object& object) { return object; };
  Controller controller(store, fate.once_in(2) ? transform : TransformFunc{},
                        [&](const std::vector<Notification>& notifications) {
                          ledger->check(notifications, told.keys());
                          for (const auto& n : notifications) {
                            // Only additions of the first list are initial.
                            EXPECT_EQ(n.initial,
                                      !synced_told && n.type == Notification::Type::kAdd);
                            if (n.type == Notification::Type::kAdd) told.add(n.object);
                            if (n.type == Notification::Type::kUpdate)
                              told.update(n.before, n.object);
                            if (n.type == Notification::Type::kDelete) {
                              EXPECT_TRUE(told.knows(n.before));
                              told.remove(n.object);
                            }
                          }
                          synced_told = controller.has_synced();
                          EXPECT_EQ(told.size(), store.size());
                        });
  ledger.emplace(controller);
  ReflectorOptions options;
  options.clock = clock;
  options.watch_error_handler = [](std::string_view, const std::exception&) {};
  options.resync_period = fate.once_in(2) ? 1h : 0h;
  options.page_size = fate.once_in(3) ? 3 : 0;
  options.use_watch_list = !fate.once_in(4);
  if (fate.once_in(2)) {  // back-off takes no time
    options.backoff.max = 4s;
    clock->skip_sleeps_below(9s);
  }
  const auto reflector = Reflector::create(source, *ledger, options);
  std::stop_source stop;
  bool done = false;
  for (auto i = fate.below(10); i > 0; --i) source->put("ns0/" + std::to_string(i));
  boost::asio::co_spawn(boost::asio::make_strand(context), reflector->run(stop.get_token()),
                        [&](std::exception_ptr) { done = true; });

  const auto settle = [&] {
    context.restart();
    context.poll();
  };
  for (auto steps = 10 + fate.below(60); steps > 0; --steps) {
    fate.strike(*source);
    switch (fate.below(4)) {
      case 0:
        settle();
        break;
      case 1:  // run a few tasks
        context.restart();
        for (auto n = fate.below(8); n > 0; --n) context.poll_one();
        break;
      case 2:
        clock->advance(std::chrono::seconds(fate.below(4000)));
        break;
      default:
        break;
    }
  }

  // After the faults, the store equals the source.
  source->resume();
  for (int i = 0; i < 50; ++i) {
    settle();
    clock->advance(1min);
  }
  settle();
  EXPECT_TRUE(controller.has_synced());
  const auto expected = source->contents();
  const Snapshot now = store.snapshot();
  EXPECT_EQ(now.size(), expected.size());
  EXPECT_EQ(told.size(), expected.size());
  for (const auto& [key, object] : expected) {
    EXPECT_EQ(now.get_by_key(key), object) << key;
    EXPECT_TRUE(told.knows(object)) << key;
  }
  EXPECT_EQ(
      now.by_index(kNamespaceIndex, "ns0").size() + now.by_index(kNamespaceIndex, "ns1").size(),
      expected.size());
  stop.request_stop();
  settle();
  EXPECT_TRUE(done);
}

TEST(PipelineModelTest, TheStoreEqualsTheSourceAndNotificationsAreConsistent) {
  test::Seeds::each(test::kSanitized ? 500 : 5000, run);
  testing::Test::RecordProperty("batches", std::to_string(Ledger::batches));
  if (std::getenv("LOOKOUT_SEED") == nullptr) {
    EXPECT_GT(Ledger::batches, 100u);
  }
}

}  // namespace
}  // namespace lookout::cache
