// A program's members are an informer, a work queue and a handler, in any order: none of them is used
// after its destruction.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "lookout/base/pinned.h"
#include "lookout/informer/enqueue.h"
#include "lookout/informer/shared_informer.h"
#include "lookout/tools/workqueue/rate_limiting_queue.h"
#include "tests/informer/informer_fixture.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/gate.h"

namespace lookout::informer {
namespace {

using namespace std::chrono_literals;
using lookout::test::Gate;
using lookout::test::get;
using Work = workqueue::RateLimitingQueue<std::string>;

/// Records whether it exists.
class Mortal : public base::Pinned {
 public:
  ~Mortal() { *alive_ = false; }
  Mortal() = default;
  void touch() const { EXPECT_TRUE(*alive_) << "used after its destructor"; }
  std::shared_ptr<std::atomic<bool>> alive() const { return alive_; }

 private:
  const std::shared_ptr<std::atomic<bool>> alive_ = std::make_shared<std::atomic<bool>>(true);
};

// Each member is allocated separately, so that their order can be permuted.
struct Informer {
  std::unique_ptr<SharedIndexInformer> it;
};
struct Queue {
  Work it;
  Mortal state;  // the program's state in addition to its queue
};
struct Handler {
  HandlerRegistration it;
};

template <class First, class Second, class Third>
struct Program {
  template <class T>
  T& the() {
    if constexpr (std::is_same_v<T, First>) {
      return first;
    } else if constexpr (std::is_same_v<T, Second>) {
      return second;
    } else {
      return third;
    }
  }
  /// Whether the handler ends before the queue is destroyed.
  static constexpr bool kHandlerEndsFirst = !std::is_same_v<Third, Queue>;

  First first;
  Second second;
  Third third;
};

template <class Program>
class DeclarationOrderTest : public test::InformerTest {
 protected:
  /// Adds the handler, and destroys the program during a call of it, with more calls queued.
  void end_in_the_middle(std::unique_ptr<Program> program, EventHandler<api::Object> handler) {
    program->template the<Handler>().it =
        program->template the<Informer>().it->add_handler(std::move(handler));
    handler = {};
    source_->put("a/x");
    ASSERT_TRUE(begun_.wait());
    std::atomic<bool> done{false};
    std::thread writer([&] {
      for (int i = 0; !done; ++i) {
        source_->put("a/" + std::to_string(i % 9));
        std::this_thread::sleep_for(100us);
      }
    });
    auto ended = lookout::test::start([&] { program.reset(); });
    EXPECT_EQ(ended.wait_for(50ms), std::future_status::timeout) << "a call is under way";
    go_on_.open();
    get(ended);
    const int calls = calls_;
    // Leave time for further calls.
    settle_for_a_moment();
    EXPECT_EQ(calls_, calls) << "no call begins when the program has gone";
    EXPECT_EQ(captured_.use_count(), 1) << "nothing of the handler is left";
    done = true;
    writer.join();
  }

  /// Called first in each handler call.
  void enter() {
    begun_.open();
    EXPECT_TRUE(go_on_.wait());
    ++calls_;
  }

  std::unique_ptr<SharedIndexInformer> informer() {
    auto out = std::make_unique<SharedIndexInformer>(source_, options_, loop_, pool_);
    out->start();
    return out;
  }

  static void settle_for_a_moment() { std::this_thread::sleep_for(5ms); }

  Gate begun_;
  Gate go_on_;
  std::atomic<int> calls_{0};
  std::shared_ptr<int> captured_ = std::make_shared<int>(0);
};

using Orders = testing::Types<Program<Informer, Queue, Handler>, Program<Informer, Handler, Queue>,
                              Program<Queue, Informer, Handler>, Program<Queue, Handler, Informer>,
                              Program<Handler, Informer, Queue>, Program<Handler, Queue, Informer>>;
TYPED_TEST_SUITE(DeclarationOrderTest, Orders);

TYPED_TEST(DeclarationOrderTest, AQueueMayBeDestroyedBeforeItsHandlers) {
  auto program = std::make_unique<TypeParam>();
  program->template the<Informer>().it = this->informer();
  auto handler = enqueue<api::Object>(program->template the<Queue>().it);
  handler.filter = [this, captured = this->captured_](const api::Object&) {
    this->enter();
    return true;
  };
  this->end_in_the_middle(std::move(program), std::move(handler));
}

TYPED_TEST(DeclarationOrderTest, CapturesMayBeDestroyedAfterTheHandlerOrTheInformer) {
  if constexpr (TypeParam::kHandlerEndsFirst) {
    auto program = std::make_unique<TypeParam>();
    program->template the<Informer>().it = this->informer();
    auto& queue = program->template the<Queue>();
    EventHandler<api::Object> handler;
    handler.on_add = [this, &queue, alive = queue.state.alive(),
                      captured = this->captured_](const api::Object& object) {
      this->enter();
      ASSERT_TRUE(*alive) << "called when what it refers to has gone";
      queue.state.touch();
      queue.it.add(object.key());
      queue.it.add_after(object.key(), 1h);
    };
    this->end_in_the_middle(std::move(program), std::move(handler));
  }
}

TYPED_TEST(DeclarationOrderTest, AnInformerThatIsAssignedLater) {
  // As above, but the program's member is a SharedInformer, and the handler is the last member.
  auto program = std::make_unique<TypeParam>();
  const std::shared_ptr<SharedIndexInformer> shared = this->informer();
  SharedInformer<api::Object> pods;
  EXPECT_FALSE(pods);
  EXPECT_THROW(pods.lister(), InvalidArgument);
  EXPECT_THROW(pods.has_synced(), InvalidArgument);
  pods = SharedInformer<api::Object>(shared, {"", "v1", "Pod", "pods", true});
  ASSERT_TRUE(pods);
  std::promise<void> seen;
  auto handler = enqueue<api::Object>(program->template the<Queue>().it);
  handler.on_synced = [&] { seen.set_value(); };
  program->template the<Handler>().it = pods.add_handler(std::move(handler));
  lookout::test::wait_for(seen.get_future());
  this->source_->put("a/x");
  auto key = std::async(std::launch::async,
                        [&] { return program->template the<Queue>().it.get().value_or(""); });
  EXPECT_EQ(get(key), "a/x");
  program.reset();
  shared->shutdown();
}

}  // namespace
}  // namespace lookout::informer
