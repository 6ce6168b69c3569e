// Handlers that need the latest state, not every change.
#include <gtest/gtest.h>

#include "informer/listener.h"
#include "tests/informer/informer_fixture.h"
#include "tests/informer/recorder.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/matchers.h"

namespace lookout::informer {
namespace {

using lookout::test::Gate;

class CoalescingTest : public test::InformerTest {
 protected:
  /// A handler that blocks on its first object, "a/first".
  HandlerRegistration add_slow(SharedIndexInformer& informer) {
    auto handler = recorder_.handler();
    handler.filter = filter_;
    handler.on_add = [this, add = handler.on_add](const api::Object& object, Origin origin) {
      if (object.name() == "first") {
        held_up_.open();
        EXPECT_TRUE(go_on_.wait());
      }
      add(object, origin);
    };
    return informer.add_handler(std::move(handler), {.coalesce = true});
  }
  /// Runs an informer whose handler is blocked.
  void begin() {
    registration_ = add_slow(run());
    source_->put("a/first");  // 101
    ASSERT_TRUE(held_up_.wait());
  }
  /// The same, but the handler has received "a/x" before.
  void begin_with_x() {
    source_->put("a/x");  // 101
    registration_ = add_slow(run());
    EXPECT_THAT(recorder_.wait(1), ElementsAre("+a/x@101i"));
    source_->put("a/first");  // 102
    ASSERT_TRUE(held_up_.wait());
  }
  /// The notifications after it continues.
  Recorder::Events rest() {
    settle();
    go_on_.open();
    source_->put("a/last");
    auto events = recorder_.wait_for("+a/last@" + source_->resource_version());
    EXPECT_GE(events.size(), 2u);
    return {events.begin() + 1, events.end() - 1};
  }

  std::function<bool(const api::Object&)> filter_;
  Recorder recorder_;
  Recorder other_;
  Gate held_up_;
  Gate go_on_;
  HandlerRegistration registration_;
};

TEST_F(CoalescingTest, CoalescesManyUpdatesToOne) {
  begin();
  for (int i = 0; i < 100; ++i) source_->put("a/x");  // 102 to 201
  settle();
  EXPECT_TRUE(eventually([&] { return registration_.backlog() == 2; }))
      << "the one that is being delivered, and one object";
  EXPECT_THAT(rest(), ElementsAre("+a/x@201"));
}

TEST_F(CoalescingTest, AnUpdateStartsFromTheLastDeliveredState) {
  begin_with_x();
  source_->put("a/x");
  source_->put("a/x");
  source_->put("a/x");  // 105
  settle();
  go_on_.open();
  EXPECT_THAT(recorder_.wait(3), ElementsAre("+a/x@101i", "+a/first@102", "~a/x@101>105"));
}

TEST_F(CoalescingTest, AnObjectCreatedAndDeletedIsNotDelivered) {
  begin();
  for (int i = 0; i < 50; ++i) {
    source_->put("a/" + std::to_string(i));
    source_->put("a/" + std::to_string(i));
    source_->remove("a/" + std::to_string(i));
  }
  settle();
  EXPECT_TRUE(eventually([&] { return registration_.backlog() == 1; }));
  EXPECT_THAT(rest(), ElementsAre());
}

TEST_F(CoalescingTest, AnObjectDeletedAndRecreatedIsAnUpdate) {
  begin();
  source_->put("a/x");         // 102
  source_->remove("a/x");      // 103
  source_->put("a/x");         // 104
  source_->remove("a/first");  // 105: the handler's current call is for this object
  source_->put("a/first");     // 106
  EXPECT_THAT(rest(), ElementsAre("+a/x@104", "~a/first@101>106"));
}

TEST_F(CoalescingTest, ADeletionAfterUpdatesIsADeletion) {
  begin();
  source_->put("a/first");     // 102
  source_->put("a/first");     // 103
  source_->remove("a/first");  // 104
  EXPECT_THAT(rest(), ElementsAre("-a/first@104"));
}

TEST_F(CoalescingTest, AMissedDeletionAfterUpdatesHasAnUnknownFinalState) {
  begin_with_x();
  source_->put("a/x");  // 103
  settle();
  while_away([&] { source_->remove("a/x"); });
  go_on_.open();
  EXPECT_THAT(recorder_.wait(4),
              ElementsAre("+a/x@101i", "+a/first@102", "-a/x@103?", "~a/first@102>102"));
}

TEST_F(CoalescingTest, AFilterComparesWithTheLastDeliveredState) {
  filter_ = [](const api::Object& object) {
    return object.name() != "x" || object["spec"]["nodeName"].as_string() == "n1";
  };
  begin();
  source_->put("a/x", {{}, "n2", {}});  // 102
  source_->put("a/x", {{}, "n1", {}});  // 103
  source_->put("a/x", {{}, "n2", {}});  // 104
  EXPECT_THAT(rest(), ElementsAre()) << "it never was what the handler wants";
}

TEST_F(CoalescingTest, TheFirstListStaysInitial) {
  source_->put("a/first");  // 101
  source_->put("a/x");      // 102
  auto& informer = make();
  registration_ = add_slow(informer);
  informer.start();
  ASSERT_TRUE(held_up_.wait());
  source_->put("a/x");  // 103
  settle();
  go_on_.open();
  EXPECT_TRUE(registration_.wait_for_sync());
  EXPECT_THAT(recorder_.wait(2), ElementsAre("+a/first@101i", "+a/x@103i"));
}

TEST_F(CoalescingTest, OtherHandlersReceiveEveryChange) {
  begin();
  informer_->add_handler(other_.handler()).release();
  other_.wait(1);
  source_->put("a/x");  // 102
  source_->put("a/x");  // 103
  EXPECT_THAT(other_.wait(3), ElementsAre("+a/first@101i", "+a/x@102", "~a/x@102>103"));
  EXPECT_THAT(rest(), ElementsAre("+a/x@103"));
}

}  // namespace
}  // namespace lookout::informer
