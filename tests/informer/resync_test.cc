// Handlers with different resync periods.
#include <gtest/gtest.h>

#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::informer {
namespace {

using std::chrono::milliseconds;

class ResyncTest : public test::InformerTest {
 protected:
  ResyncTest() { clock_->skip_sleeps_below(0s); }

  SharedIndexInformer& make_with(milliseconds period) {
    options_.reflector.resync_period = period;
    return make();
  }
  /// Waits until the informer sleeps until its next resync check.
  void expect_look_after(Clock::Duration duration) {
    EXPECT_TRUE(eventually([&] { return clock_->next_wake() == duration; }));
  }
};

/// The period that a handler requests, the informer's period, and the resulting one.
struct Periods {
  const char* name;
  milliseconds informer;
  std::optional<milliseconds> asked;
  milliseconds granted;
  milliseconds check;
  milliseconds granted_late;  // if it is requested while the informer runs
};
class ResyncPeriodTest : public ResyncTest, public testing::WithParamInterface<Periods> {};

TEST_P(ResyncPeriodTest, BeforeTheStart) {
  auto& informer = make_with(GetParam().informer);
  const auto handler = informer.add_handler({}, {.resync_period = GetParam().asked});
  EXPECT_EQ(handler.resync_period(), GetParam().granted);
  EXPECT_EQ(informer.resync_check_period(), GetParam().check);
}

TEST_P(ResyncPeriodTest, AfterTheStart) {
  auto& informer = make_with(GetParam().informer);
  informer.start();
  const auto handler = informer.add_handler({}, {.resync_period = GetParam().asked});
  EXPECT_EQ(handler.resync_period(), GetParam().granted_late);
  EXPECT_EQ(informer.resync_check_period(), GetParam().informer);
}

INSTANTIATE_TEST_SUITE_P(
    , ResyncPeriodTest,
    testing::Values(Periods{"TheInformersByDefault", 10min, {}, 10min, 10min, 10min},
                    Periods{"Longer", 10min, 1h, 1h, 10min, 1h},
                    Periods{"Shorter", 10min, 1min, 1min, 1min, 10min},
                    Periods{"FarTooShort", 10min, 1ms, 1s, 1s, 10min},
                    Periods{"Never", 10min, 0ms, 0ms, 10min, 0ms},
                    Periods{"OfAnInformerThatHasNone", 0ms, 1min, 0ms, 0ms, 0ms},
                    Periods{"NoneAtAll", 0ms, {}, 0ms, 0ms, 0ms}),
    [](const auto& test) { return test.param.name; });

TEST_F(ResyncTest, ALaterHandlerMayShortenTheCheckPeriod) {
  auto& informer = make_with(12h);
  const auto first = informer.add_handler({});
  const auto second = informer.add_handler({}, {.resync_period = 1min});
  const auto third = informer.add_handler({}, {.resync_period = 5min});
  EXPECT_EQ(informer.resync_check_period(), 1min);
  EXPECT_EQ(first.resync_period(), 12h);
  EXPECT_EQ(second.resync_period(), 1min);
  EXPECT_EQ(third.resync_period(), 5min);
}

TEST_F(ResyncTest, AShorterPeriodThanTheInformersIsKept) {
  source_->put("a/x");
  auto& informer = make_with(10min);
  Recorder recorder;
  const auto handler = informer.add_handler(recorder.handler(), {.resync_period = 1min});
  informer.start();
  settle();
  expect_look_after(1min);
  clock_->advance(1min);
  EXPECT_THAT(recorder.wait(2), ElementsAre("+a/x@101i", "~a/x@101>101"));
  informer.shutdown();
}

TEST_F(ResyncTest, APeriodThatNoClockReachesNeverEnds) {
  auto& informer = make_with(milliseconds::max());
  source_->put("a/x");
  test::Recorder recorder;
  const auto by_default = informer.add_handler(recorder.handler());
  const auto own = informer.add_handler(recorder.handler(), {.resync_period = milliseconds::max()});
  informer.start();
  settle();
  EXPECT_TRUE(eventually([&] { return clock_->next_wake() > 24h * 365; }));
  clock_->advance(24h);
  source_->put("a/y");
  settle();
  EXPECT_EQ(recorder.wait(4).size(), 4u) << "two additions for each";
}

TEST_F(ResyncTest, EachHandlerHasItsOwnResyncPeriod) {
  source_->put("a/x");  // 101
  auto& informer = make_with(2s);
  Recorder every_two;
  Recorder every_three;
  Recorder never;
  informer.add_handler(every_two.handler()).release();
  informer.add_handler(every_three.handler(), {.resync_period = 3s}).release();
  informer.add_handler(never.handler(), {.resync_period = 0s}).release();
  informer.start();
  settle();
  // The informer checks every two seconds: at 2, 4, 6 ...
  for (const std::size_t look : {1u, 2u, 3u}) {
    expect_look_after(2s);
    clock_->advance(2s);
    EXPECT_EQ(every_two.wait(1 + look).size(), 1 + look);
    // One second late: the informer does not check in between.
    if (look == 2) {
      EXPECT_EQ(every_three.wait(2).size(), 2u);
    }
  }
  expect_look_after(2s);
  // All handlers get the new object, and nothing else.
  source_->put("a/x");
  const std::string initial = "+a/x@101i";
  const std::string again = "~a/x@101>101";
  const std::string changed = "~a/x@101>102";
  EXPECT_THAT(every_two.wait_for(changed), ElementsAre(initial, again, again, again, changed));
  EXPECT_THAT(every_three.wait_for(changed), ElementsAre(initial, again, changed));
  EXPECT_THAT(never.wait_for(changed), ElementsAre(initial, changed));
  informer.shutdown();
}

TEST_F(ResyncTest, ThePeriodOfALateHandlerStartsWhenItIsAdded) {
  source_->put("a/x");
  auto& informer = make_with(10s);
  informer.start();
  settle();
  expect_look_after(10s);
  clock_->advance(9s);
  Recorder late;
  const auto registration = informer.add_handler(late.handler());
  EXPECT_TRUE(registration.wait_for_sync());
  clock_->advance(1s);
  expect_look_after(10s);
  EXPECT_THAT(late.events(), ElementsAre("+a/x@101i"));
  clock_->advance(10s);
  EXPECT_THAT(late.wait(2), ElementsAre("+a/x@101i", "~a/x@101>101"));
  informer.shutdown();
}

TEST_F(ResyncTest, ARelistDeliversUnchangedObjectsOnlyToResyncingHandlers) {
  clock_->skip_sleeps_below(9s);  // no backoff delays
  source_->put("a/same");         // 101
  source_->put("a/changes");      // 102
  auto& informer = make_with(10s);
  Recorder resyncs;
  Recorder never;
  informer.add_handler(resyncs.handler()).release();
  informer.add_handler(never.handler(), {.resync_period = 0s}).release();
  informer.start();
  settle();
  expect_look_after(10s);
  clock_->advance(10s);
  EXPECT_EQ(resyncs.wait(4).size(), 4u) << "from here on, they differ";
  while_away([&] {
    source_->put("a/new");      // 103
    source_->put("a/changes");  // 104
  });
  const auto since = [](const Recorder& recorder, std::size_t from, std::size_t count) {
    const auto events = recorder.wait(from + count);
    return Recorder::Events(events.begin() + static_cast<std::ptrdiff_t>(from), events.end());
  };
  EXPECT_THAT(since(resyncs, 4, 3),
              UnorderedElementsAre("~a/same@101>101", "~a/changes@102>104", "+a/new@103"));
  EXPECT_THAT(since(never, 2, 2), UnorderedElementsAre("~a/changes@102>104", "+a/new@103"));
  informer.shutdown();
}

TEST_F(ResyncTest, ShouldResyncOfTheOptionsIsCalled) {
  std::atomic<int> asked{0};
  options_.reflector.should_resync = [&] { return ++asked > 1; };
  source_->put("a/x");
  auto& informer = make_with(10s);
  Recorder recorder;
  informer.add_handler(recorder.handler()).release();
  informer.start();
  settle();
  for (int i = 0; i < 2; ++i) {
    expect_look_after(10s);
    clock_->advance(10s);
  }
  EXPECT_THAT(recorder.wait(2), ElementsAre("+a/x@101i", "~a/x@101>101"));
  EXPECT_EQ(asked, 2);
  informer.shutdown();
}

}  // namespace
}  // namespace lookout::informer
