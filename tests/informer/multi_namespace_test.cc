// One informer for a set of namespaces that changes while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/pinned.h"
#include "lookout/informer/multi_namespace_informer.h"
#include "lookout/k8s/core/v1.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/objects.h"

namespace lookout::informer {
namespace {

using namespace std::chrono_literals;
using k8s::core::v1::Pod;
using lookout::test::eventually;
using lookout::test::FakeSource;
using lookout::test::Gate;
using test::Recorder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

api::StatusError forbidden() { return api::StatusError::forbidden("", "pods", "", "not yours"); }
rest::TransportError refused(const std::string& message) {
  return {rest::TransportError::Kind::kRefused, message};
}

/// Records the warnings that begin with a text, during its lifetime.
class WarningLines : public base::Pinned {
 public:
  explicit WarningLines(std::string beginning)
      : sink_(std::make_shared<Sink>(std::move(beginning))) {
    spdlog::default_logger()->sinks().push_back(sink_);
  }
  ~WarningLines() { spdlog::default_logger()->sinks().pop_back(); }

  std::vector<std::string> lines() const { return sink_->lines(); }

 private:
  class Sink : public spdlog::sinks::base_sink<std::mutex> {
   public:
    explicit Sink(std::string beginning) : beginning_(std::move(beginning)) {}
    std::vector<std::string> lines() {
      const std::lock_guard lock(mutex_);
      return lines_;
    }

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      const std::string_view line(message.payload.data(), message.payload.size());
      if (message.level >= spdlog::level::warn && line.starts_with(beginning_))
        lines_.emplace_back(line);
    }
    void flush_() override {}

    const std::string beginning_;
    std::vector<std::string> lines_;  // guarded by mutex_
  };

  const std::shared_ptr<Sink> sink_;
};

/// A source whose watches call a function when they are stopped.
class StopCaller : public cache::ListerWatcher {
 public:
  StopCaller(std::shared_ptr<FakeSource> source, std::function<void()> on_stop)
      : source_(std::move(source)), on_stop_(std::move(on_stop)) {}

  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override {
    return source_->list(std::move(on_item), std::move(options), std::move(stop));
  }
  Awaitable<std::unique_ptr<cache::Watcher>> watch(rest::ListOptions options,
                                                   std::stop_token stop) override {
    callback_.emplace(stop, on_stop_);
    return source_->watch(std::move(options), std::move(stop));
  }

 private:
  const std::shared_ptr<FakeSource> source_;
  const std::function<void()> on_stop_;
  std::optional<std::stop_callback<std::function<void()>>> callback_;
};

class MultiNamespaceTest : public test::InformerTest {
 protected:
  /// The source of this namespace.
  FakeSource& ns(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto& source = sources_[name];
    if (!source) source = std::make_shared<FakeSource>();
    return *source;
  }
  /// The namespace's next watch list fails, and the list after it.
  template <class E>
  void fail_next(const std::string& name, const E& error) {
    ns(name).fail_watch(error);
    ns(name).fail_list(error);
  }

  MultiNamespaceInformer<Pod> make(std::set<std::string> namespaces) {
    cache::ReflectorOptions each = options_.reflector;
    if (!each.watch_error_handler && !logs_)
      each.watch_error_handler = [](std::string_view, const std::exception&) {};
    source_of_all_ = std::make_shared<cache::MultiNamespaceSource>(
        [this](const std::string& name) -> std::shared_ptr<cache::ListerWatcher> {
          ns(name);
          const std::lock_guard lock(mutex_);
          return sources_.at(name);
        },
        api::GroupVersionKind{"", "v1", "Pod"}, each, loop_, std::move(namespaces));
    shared_ = std::make_shared<SharedIndexInformer>(source_of_all_, options_, loop_, pool_);
    return {SharedInformer<Pod>(shared_, api::Resource(Pod::kResource)), source_of_all_};
  }
  void TearDown() override {
    if (shared_) shared_->shutdown();
  }

  /// Starts it with a handler, which has received the initial state.
  HandlerRegistration start(const MultiNamespaceInformer<Pod>& pods) {
    auto handler = pods.untyped_informer().add_handler(recorder_.handler());
    pods.start();
    EXPECT_TRUE(handler.wait_for_sync());
    return handler;
  }

  std::set<std::string> known() const {
    std::set<std::string> out;
    for (const auto& object : shared_->store().snapshot().objects()) out.insert(object.key());
    return out;
  }
  bool knows(const std::set<std::string>& keys) {
    return eventually([&] { return known() == keys; });
  }
  /// Waits until only "bank" is missing, because of this failure.
  static bool only_bank_fails(const MultiNamespaceInformer<Pod>& pods, const std::string& why) {
    const std::map<std::string, std::string> expected{{"bank", why}};
    return eventually([&] { return pods.unsynced() == expected; });
  }
  /// It has not synced, but does at the next attempts, and then holds "bank/y".
  void expect_later_sync(const MultiNamespaceInformer<Pod>& pods) {
    EXPECT_FALSE(pods.has_synced());
    EXPECT_TRUE(eventually([&] {
      clock_->advance(60s);
      return pods.has_synced();
    }));
    EXPECT_TRUE(knows({"bank/y"}));
  }

  /// Runs an informer of "bank" whose source cannot be made.
  template <class Make>
  void expect_failure(Make make_source, const std::string& message) {
    const auto source = std::make_shared<cache::MultiNamespaceSource>(
        make_source, api::GroupVersionKind{"", "v1", "Pod"}, options_.reflector, loop_,
        std::set<std::string>{"bank"});
    options_.reflector.watch_error_handler = [](std::string_view, const std::exception&) {};
    shared_ = std::make_shared<SharedIndexInformer>(source, options_, loop_, pool_);
    shared_->start();
    ASSERT_TRUE(eventually([&] { return shared_->last_failure().has_value(); }));
    EXPECT_EQ(shared_->last_failure()->message, message);
  }

  double informer_live() const {
    std::vector<metrics::Sample> samples;
    shared_->collect(samples);
    const auto live = std::find_if(samples.begin(), samples.end(),
                                   [](const auto& one) { return one.name == "informer_live"; });
    return live == samples.end() ? -1 : live->value;
  }

  bool logs_ = false;  // whether failures of namespaces are logged
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<FakeSource>> sources_;  // guarded by mutex_
  std::shared_ptr<cache::MultiNamespaceSource> source_of_all_;
  std::shared_ptr<SharedIndexInformer> shared_;
  Recorder recorder_;
};

TEST_F(MultiNamespaceTest, HoldsTheObjectsOfItsNamespaces) {
  ns("shop").put("shop/x");
  ns("bank").put("bank/y");
  ns("farm").put("farm/z");
  const auto pods = make({"shop", "bank"});
  const auto by_node = pods.add_index("node", [](const Pod& p) { return p.spec().node_name(); });
  const auto handler = start(pods);
  ASSERT_TRUE(pods.wait_for_sync());
  EXPECT_THAT(recorder_.events(), UnorderedElementsAre("+shop/x@101i", "+bank/y@101i"));
  EXPECT_TRUE(pods.lister().ns("shop").find("x"));
  EXPECT_FALSE(pods.lister().ns("farm").find("z"));
  EXPECT_THAT(pods.unsynced(), IsEmpty());

  ns("bank").put("bank/y", {{}, "n1"});
  ns("bank").put("bank/w", {{}, "n1"});
  ns("shop").remove("shop/x");
  EXPECT_TRUE(knows({"bank/w", "bank/y"}));
  EXPECT_EQ(by_node.count("n1"), 2u);
  EXPECT_THAT(recorder_.wait(5),
              testing::IsSupersetOf({"~bank/y@101>102", "+bank/w@103", "-shop/x@102"}));
}

TEST_F(MultiNamespaceTest, HasTheVersionThatAllNamespacesHaveReached) {
  clock_->skip_sleeps_below(0s);
  const auto reaches = [&](const std::string& version) {
    EXPECT_TRUE(eventually([&] { return shared_->last_sync_resource_version() == version; }))
        << shared_->last_sync_resource_version() << ", not " << version;
  };
  for (int i = 0; i < 3; ++i) ns("shop").put("shop/x");
  ns("bank").put("bank/y");
  fail_next("farm", forbidden());
  const auto pods = make({"shop", "bank", "farm"});
  const auto handler = start(pods);
  reaches("101");
  for (int i = 0; i < 5; ++i) ns("bank").put("bank/y");
  EXPECT_EQ(recorder_.wait(7).back(), "~bank/y@105>106");
  reaches("103");
  EXPECT_EQ(shared_->store().resource_version(), "103");
  ns("shop").put("shop/z");
  reaches("104");
  ns("bank").bookmark();
  ns("shop").remove("shop/z");
  reaches("105");
  // The deletions of a removed namespace have old versions.
  pods.set_namespaces({"bank"});
  EXPECT_TRUE(knows({"bank/y"}));
  reaches("107");
  // A namespace without objects.
  pods.set_namespaces({"bank", "mall"});
  EXPECT_TRUE(eventually([&] { return pods.unsynced().empty(); }));
  reaches("100");
  pods.set_namespaces({"bank"});
  reaches("107");
}

TEST_F(MultiNamespaceTest, ANamespaceThatIsAddedIsListed) {
  ns("shop").put("shop/x");
  ns("bank").put("bank/y");
  const auto pods = make({"shop"});
  const auto handler = start(pods);
  pods.set_namespaces({"shop", "bank"});
  EXPECT_THAT(recorder_.wait(2), ElementsAre("+shop/x@101i", "+bank/y@101"));
  ns("bank").put("bank/z");
  EXPECT_THAT(recorder_.wait_for("+bank/z@102").back(), "+bank/z@102");
  EXPECT_EQ(pods.namespaces(), (std::set<std::string>{"shop", "bank"}));
}

TEST_F(MultiNamespaceTest, ObjectsOfARemovedNamespaceAreDeleted) {
  ns("shop").put("shop/x");
  ns("bank").put("bank/y");
  const auto pods = make({"shop", "bank"});
  const auto handler = start(pods);
  pods.set_namespaces({"shop"});
  EXPECT_THAT(recorder_.wait_for("-bank/y@101").back(), "-bank/y@101");
  EXPECT_TRUE(knows({"shop/x"}));
  ns("bank").put("bank/z");
  ns("shop").put("shop/w");
  EXPECT_THAT(recorder_.wait_for("+shop/w@102").back(), "+shop/w@102");
  EXPECT_TRUE(knows({"shop/x", "shop/w"}));

  // A second time.
  pods.set_namespaces({"bank"});
  EXPECT_TRUE(knows({"bank/y", "bank/z"}));
}

TEST_F(MultiNamespaceTest, AForbiddenNamespaceDoesNotAffectOthers) {
  ns("shop").put("shop/x");
  ns("bank").put("bank/y");
  // The watch list fails, then the list.
  for (int i = 0; i < 2; ++i) fail_next("bank", forbidden());
  ns("bank").pause();
  const auto pods = make({"shop", "bank"});
  const auto handler = pods.untyped_informer().add_handler(recorder_.handler());
  pods.start();
  ASSERT_TRUE(ns("bank").wait_until_held_up());
  EXPECT_FALSE(pods.has_synced()) << "nobody knows yet";
  ns("bank").resume();
  ASSERT_TRUE(handler.wait_for_sync());
  ns("shop").put("shop/z");
  EXPECT_TRUE(eventually([&] { return known().contains("shop/z"); }));
  // Once access is granted, the namespace is listed without further calls.
  EXPECT_TRUE(knows({"shop/x", "shop/z", "bank/y"}));
  EXPECT_TRUE(eventually([&] { return pods.unsynced().empty(); }));
}

TEST_F(MultiNamespaceTest, NamesMissingNamespacesAndTheirErrors) {
  clock_->skip_sleeps_below(0s);  // no second attempt
  fail_next("bank", forbidden());
  const auto pods = make({"shop", "bank"});
  EXPECT_THAT(pods.unsynced(), ElementsAre(Pair("bank", ""), Pair("shop", "")));
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  EXPECT_THAT(pods.unsynced(), ElementsAre(Pair("bank", HasSubstr("not yours"))));
}

TEST_F(MultiNamespaceTest, IsNotSyncedWhileANamespaceIsUnreachable) {
  clock_->skip_sleeps_below(0s);  // no second attempt before the clock moves
  ns("bank").put("bank/y");
  fail_next("bank", refused("no"));
  const auto pods = make({"shop", "bank"});
  pods.start();
  ASSERT_TRUE(only_bank_fails(pods, "no"));
  expect_later_sync(pods);
}

// A rejected token or a proxy's error page is no statement about the namespace.
TEST_F(MultiNamespaceTest, IsNotSyncedWhenAForbiddenNamespaceIsUnreachable) {
  clock_->skip_sleeps_below(0s);  // an attempt each time the clock moves
  fail_next("bank", forbidden());
  for (int i = 0; i < 10; ++i) {
    fail_next("bank", refused("later"));
  }
  for (int i = 0; i < 2; ++i) ns("shop").fail_watch(refused("no"));
  const auto pods = make({"shop", "bank"});
  pods.start();
  const auto all_failed = [&](std::uint64_t errors) {
    return eventually([&] { return shared_->stats().errors >= errors; });
  };
  ASSERT_TRUE(all_failed(2));
  clock_->advance(60s);
  ASSERT_TRUE(all_failed(4));
  clock_->advance(60s);
  ASSERT_TRUE(only_bank_fails(pods, "later"));
  clock_->advance(60s);
  ASSERT_TRUE(all_failed(6));
  EXPECT_FALSE(pods.has_synced());
}

TEST_F(MultiNamespaceTest, IsNotSyncedWhileANamespaceIsUnreadable) {
  clock_->skip_sleeps_below(0s);  // no second attempt before the clock moves
  ns("bank").put("bank/y");
  fail_next("bank", api::StatusError::unauthorized("the token has expired"));
  for (int i = 0; i < 10; ++i) {
    fail_next("bank", api::StatusError::not_found("", "pods", ""));
  }
  const auto pods = make({"shop", "bank"});
  pods.start();
  const auto failed = [&](const char* why) {
    return pods.unsynced()["bank"].find(why) != std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return failed("expired"); }));
  EXPECT_FALSE(pods.has_synced());
  ASSERT_TRUE(eventually([&] {
    clock_->advance(1s);
    return failed("not found");
  }));
  expect_later_sync(pods);
}

TEST_F(MultiNamespaceTest, AMissedDeletionIsATombstone) {
  ns("shop").put("shop/x");
  ns("shop").put("shop/y");
  const auto pods = make({"shop", "bank"});
  const auto handler = start(pods);
  auto& shop = ns("shop");
  shop.pause();
  shop.break_connections();
  ASSERT_TRUE(shop.wait_until_held_up());
  shop.remove("shop/x");
  shop.forget();
  shop.resume();
  EXPECT_THAT(recorder_.wait(3).back(), "-shop/x@101?");
  EXPECT_TRUE(knows({"shop/y"}));
}

TEST_F(MultiNamespaceTest, MayHaveNoNamespaces) {
  const auto pods = make({});
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  ns("shop").put("shop/x");
  pods.set_namespaces({"shop"});
  EXPECT_TRUE(knows({"shop/x"}));
  pods.set_namespaces({});
  EXPECT_TRUE(knows({}));
}

TEST_F(MultiNamespaceTest, RejectsAnEmptyNamespace) {
  const auto pods = make({"shop"});
  EXPECT_THROW(pods.set_namespaces({"shop", ""}), InvalidArgument);
  EXPECT_EQ(pods.namespaces(), std::set<std::string>{"shop"});
  EXPECT_THROW(make({""}), InvalidArgument);
  EXPECT_THROW(MultiNamespaceInformer<Pod>().set_namespaces({}), InvalidArgument);
}

TEST_F(MultiNamespaceTest, AfterAShutdownNoErrorIsReported) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> gone{false};
    std::atomic<int> reported{0};
    options_.reflector.watch_error_handler = [&](std::string_view, const std::exception&) {
      EXPECT_FALSE(gone);
      ++reported;
    };
    for (const auto* name : {"shop", "bank", "farm"}) {
      for (int i = 0; i < 200; ++i) {
        fail_next(name, forbidden());
      }
    }
    const auto pods = make({"shop", "bank", "farm"});
    pods.start();
    EXPECT_TRUE(eventually([&] { return reported > round; }));
    shared_->shutdown();
    gone = true;
    pods.set_namespaces({"shop", "sea"});
    const std::lock_guard lock(mutex_);
    sources_.clear();
  }
}

/// The stop arrives while the informer applies a batch and an error handler runs.
TEST_F(MultiNamespaceTest, AShutdownWaitsForErrorHandlers) {
  for (const bool at_first : {true, false}) {
    SCOPED_TRACE(at_first);
    Gate reporting;
    Gate go_on;
    Gate applying;
    Gate apply;
    std::atomic<int> reported{0};
    options_.reflector.watch_error_handler = [&](std::string_view, const std::exception&) {
      reporting.open();
      EXPECT_TRUE(go_on.wait());
      ++reported;
    };
    options_.transform = [&](const api::Object& object) {
      applying.open();
      EXPECT_TRUE(apply.wait());
      return object;
    };
    fail_next("bank", forbidden());
    if (at_first) ns("shop").put("shop/x");
    const auto pods = make({"shop", "bank"});
    pods.start();
    EXPECT_TRUE(reporting.wait());
    if (!at_first) {
      EXPECT_TRUE(pods.wait_for_sync());
      ns("shop").put("shop/x");
    }
    EXPECT_TRUE(applying.wait());
    shared_->stop();
    apply.open();
    auto ended = lookout::test::start([&] { shared_->shutdown(); });
    // (Without the wait, it would almost always have returned by then.)
    EXPECT_EQ(ended.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(reported, 0);
    go_on.open();
    lookout::test::get(ended);
    EXPECT_EQ(reported, 1);
    const std::lock_guard lock(mutex_);
    sources_.clear();
  }
}

TEST_F(MultiNamespaceTest, AFactoryFunctionThatThrowsOnceIsRetried) {
  std::atomic<int> made{0};
  ns("bank").put("bank/y");
  ns("shop").put("shop/x");
  const auto source = std::make_shared<cache::MultiNamespaceSource>(
      [&](const std::string& name) -> std::shared_ptr<cache::ListerWatcher> {
        if (name == "shop" && ++made == 1) throw std::runtime_error("not now");
        const std::lock_guard lock(mutex_);
        return sources_.at(name);
      },
      api::GroupVersionKind{"", "v1", "Pod"}, options_.reflector, loop_,
      std::set<std::string>{"bank", "shop"});
  std::atomic<int> reported{0};
  options_.reflector.watch_error_handler = [&](std::string_view, const std::exception&) {
    ++reported;
  };
  shared_ = std::make_shared<SharedIndexInformer>(source, options_, loop_, pool_);
  shared_->start();
  ASSERT_TRUE(shared_->wait_for_sync());
  EXPECT_GE(reported, 1);
  EXPECT_TRUE(knows({"bank/y", "shop/x"})) << "nothing is lost of what was listed before";
}

TEST_F(MultiNamespaceTest, TheErrorOfAFactoryFunctionIsReported) {
  expect_failure(
      [](const std::string& name) -> std::shared_ptr<cache::ListerWatcher> {
        throw InvalidArgument("no source for " + name);
      },
      "no source for bank");
}

TEST_F(MultiNamespaceTest, AFactoryFunctionMayNotReturnNull) {
  expect_failure([](const std::string&) { return nullptr; }, "a reflector needs a source");
}

TEST_F(MultiNamespaceTest, AStopOfANamespaceMayCallTheSource) {
  ns("bank").put("bank/y");
  ns("shop").put("shop/x");
  std::atomic<int> stops{0};
  cache::MultiNamespaceSource* all = nullptr;
  const auto source = std::make_shared<cache::MultiNamespaceSource>(
      [&](const std::string& name) -> std::shared_ptr<cache::ListerWatcher> {
        const std::lock_guard lock(mutex_);
        return std::make_shared<StopCaller>(sources_.at(name), [&] {
          all->unsynced();
          ++stops;
        });
      },
      api::GroupVersionKind{"", "v1", "Pod"}, options_.reflector, loop_,
      std::set<std::string>{"bank", "shop"});
  all = source.get();
  shared_ = std::make_shared<SharedIndexInformer>(source, options_, loop_, pool_);
  shared_->start();
  ASSERT_TRUE(shared_->wait_for_sync());
  auto removed = std::async(std::launch::async, [&] { source->set_namespaces({"bank"}); });
  lookout::test::wait_for(removed);
  EXPECT_EQ(stops, 1);
  EXPECT_TRUE(knows({"bank/y"}));
  auto ended = std::async(std::launch::async, [&] { shared_->shutdown(); });
  lookout::test::wait_for(ended);
  EXPECT_EQ(stops, 2);
}

/// A shutdown must not wait for a reflector that an exception has ended.
TEST_F(MultiNamespaceTest, AShutdownEndsAfterAClockHasThrown) {
  cache::ReflectorOptions each = options_.reflector;
  each.clock = std::make_shared<test::BrokenClock>();
  each.watch_error_handler = [](std::string_view, const std::exception&) {};
  fail_next("shop", refused("no server"));
  ns("bank").put("bank/y");
  const auto source = std::make_shared<cache::MultiNamespaceSource>(
      [this](const std::string& name) -> std::shared_ptr<cache::ListerWatcher> {
        const std::lock_guard lock(mutex_);
        return sources_.at(name);
      },
      api::GroupVersionKind{"", "v1", "Pod"}, each, loop_, std::set<std::string>{"bank", "shop"});
  shared_ = std::make_shared<SharedIndexInformer>(source, options_, loop_, pool_);
  shared_->start();
  ASSERT_TRUE(eventually([&] { return !source->unsynced()["shop"].empty(); }));
  auto ended = std::async(std::launch::async, [&] { shared_->shutdown(); });
  lookout::test::wait_for(ended);
}

TEST_F(MultiNamespaceTest, AFailedNamespaceDoesNotAffectOthers) {
  ns("bank").put("bank/y");
  ns("farm").put("farm/z");
  ns("shop").put("shop/x");
  std::atomic<bool> fails{true};
  const auto source = std::make_shared<cache::MultiNamespaceSource>(
      [&](const std::string& name) -> std::shared_ptr<cache::ListerWatcher> {
        if (name == "farm" && fails) throw std::runtime_error("not now");
        const std::lock_guard lock(mutex_);
        return sources_.at(name);
      },
      api::GroupVersionKind{"", "v1", "Pod"}, options_.reflector, loop_,
      std::set<std::string>{"bank"});
  shared_ = std::make_shared<SharedIndexInformer>(source, options_, loop_, pool_);
  shared_->start();
  ASSERT_TRUE(shared_->wait_for_sync());
  const std::set<std::string> all{"bank", "farm", "shop"};
  EXPECT_THROW(source->set_namespaces(all), std::runtime_error);
  EXPECT_TRUE(knows({"bank/y", "shop/x"}));
  EXPECT_THAT(source->unsynced(), ElementsAre(Pair("farm", "")));
  EXPECT_FALSE(shared_->live_since());
  fails = false;
  source->set_namespaces(all);
  EXPECT_TRUE(knows({"bank/y", "farm/z", "shop/x"}));
}

TEST_F(MultiNamespaceTest, IsSyncedWithoutAnUnreachableNamespaceThatIsRemoved) {
  clock_->skip_sleeps_below(0s);  // no second attempt
  ns("shop").put("shop/x");
  fail_next("bank", refused("no"));
  const auto pods = make({"shop", "bank"});
  pods.start();
  ASSERT_TRUE(only_bank_fails(pods, "no"));
  EXPECT_FALSE(pods.has_synced());
  pods.set_namespaces({"shop"});
  EXPECT_TRUE(eventually([&] { return pods.has_synced(); }));
  EXPECT_TRUE(knows({"shop/x"}));
}

TEST_F(MultiNamespaceTest, BookmarksOfANamespaceAreServerActivity) {
  const auto pods = make({"shop"});
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  ASSERT_TRUE(ns("shop").wait_until_watched());
  clock_->advance(3min);
  EXPECT_GE(shared_->staleness(), 3min);
  ns("shop").bookmark();
  EXPECT_TRUE(eventually([&] { return shared_->staleness() == 0min; }));
}

TEST_F(MultiNamespaceTest, IsLiveWhileAllItsNamespacesAre) {
  clock_->skip_sleeps_below(0s);  // no second attempt before the clock moves
  const auto pods = make({"shop", "bank"});
  EXPECT_FALSE(shared_->live_since());
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  const auto first = shared_->live_since();
  ASSERT_TRUE(first);
  EXPECT_FALSE(shared_->last_failure());
  EXPECT_EQ(shared_->stats().errors, 0u);
  EXPECT_EQ(informer_live(), 1);

  auto& bank = ns("bank");
  ASSERT_TRUE(bank.wait_until_watched());
  clock_->advance(5s);
  bank.fail_watch(refused("no"));
  bank.break_connections();
  ASSERT_TRUE(eventually([&] {
    const auto failure = shared_->last_failure();
    return failure && failure->message == "no";
  }));
  EXPECT_FALSE(shared_->live_since());
  EXPECT_EQ(shared_->stats().errors, 2u) << "the connection broke, and the next was refused";
  EXPECT_EQ(informer_live(), 0);

  EXPECT_TRUE(eventually([&] {
    clock_->advance(60s);
    return shared_->live_since().has_value();
  }));
  EXPECT_GE(shared_->live_since(), *first + 65s);
  EXPECT_FALSE(shared_->last_failure());
  EXPECT_EQ(shared_->stats().errors, 2u);
  EXPECT_EQ(informer_live(), 1);
}

TEST_F(MultiNamespaceTest, IsNotLiveWithANamespaceThatIsForbidden) {
  clock_->skip_sleeps_below(0s);
  fail_next("bank", forbidden());
  const auto pods = make({"shop", "bank"});
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  EXPECT_FALSE(shared_->live_since());
  EXPECT_EQ(shared_->last_failure().value_or(cache::ReflectorFailure{}).status, 403);
  EXPECT_EQ(shared_->stats().errors, 1u);
  pods.set_namespaces({"shop"});
  EXPECT_TRUE(eventually([&] { return shared_->live_since().has_value(); }));
  EXPECT_FALSE(shared_->last_failure());
  EXPECT_EQ(shared_->stats().errors, 1u) << "it does not go back";
}

TEST_F(MultiNamespaceTest, CountsTheUnreadableObjectsOfItsNamespaces) {
  clock_->skip_sleeps_below(0s);
  for (const auto* name : {"shop", "bank"})
    ns(name).put(lookout::test::object_of_kind("v1", "Node", std::string(name) + "/n"));
  const auto pods = make({"shop", "bank"});
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  EXPECT_EQ(shared_->stats().unreadable, 2u);
  EXPECT_FALSE(shared_->live());
  EXPECT_FALSE(shared_->live_since());
  EXPECT_THAT(shared_->last_failure().value_or(cache::ReflectorFailure{}).message,
              HasSubstr("cannot be read"));
  pods.set_namespaces({"shop"});
  EXPECT_EQ(shared_->stats().unreadable, 1u);
}

TEST_F(MultiNamespaceTest, CountsTheErrorsOfRemovedNamespaces) {
  for (int i = 0; i < 5; ++i) ns("bank").fail_watch(refused("no"));
  ns("bank").put("bank/x");
  const auto pods = make({"shop", "bank"});
  pods.start();
  ASSERT_TRUE(knows({"bank/x"}));
  pods.set_namespaces({"shop"});
  ASSERT_TRUE(knows({}));
  for (int i = 0; i < 2; ++i) ns("mall").fail_watch(refused("no"));
  ns("mall").put("mall/x");
  pods.set_namespaces({"shop", "mall"});
  ASSERT_TRUE(knows({"mall/x"}));
  EXPECT_EQ(shared_->stats().errors, 7u);
}

TEST_F(MultiNamespaceTest, RepetitionsOfAFailureAreNotLogged) {
  const WarningLines warnings("pods in bank: GET");
  logs_ = true;
  // Pauses take up to 16 s of the clock.
  for (int i = 0; i < 10; ++i) {
    ns("bank").fail_watch(refused("GET http://localhost:1/pods?watch=true&timeoutSeconds=" +
                                  std::to_string(300 + i) + ": connection refused"));
  }
  const auto pods = make({"shop", "bank"});
  pods.start();
  ASSERT_TRUE(pods.wait_for_sync());
  EXPECT_EQ(shared_->stats().errors, 10u);
  shared_->shutdown();
  EXPECT_THAT(warnings.lines(), ElementsAre(HasSubstr("timeoutSeconds=300: connection refused")));
}

TEST_F(MultiNamespaceTest, HoldsTheObjectsOfItsNamespacesUnderRandomFaults) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  const auto pods = make({"a"});
  pods.start();
  std::minstd_rand random(7);  // NOLINT(cert-msc51-cpp): the same each time
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  std::set<std::string> current = {"a"};
  for (int step = 0; step < 600; ++step) {
    const auto& name = names[random() % names.size()];
    const std::string key = name + "/" + std::to_string(random() % 5);
    if (one_in(3)) {
      ns(name).remove(key);
    } else {
      ns(name).put(key);
    }
    if (one_in(15)) ns(name).break_connections();
    if (one_in(30)) ns(name).forget();
    if (one_in(10)) {
      current.clear();
      for (const auto& one : names) {
        if (one_in(2)) current.insert(one);
      }
      pods.set_namespaces(current);
    }
  }
  std::set<std::string> wanted;
  for (const auto& name : current) {
    for (const auto& [key, object] : ns(name).contents()) wanted.insert(key);
  }
  EXPECT_TRUE(knows(wanted));
}

}  // namespace
}  // namespace lookout::informer
