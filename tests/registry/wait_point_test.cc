#include "registry/wait_point.h"

#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace lookout::registry::detail {
namespace {

namespace asio = boost::asio;

struct Letter {
  Letter() = default;
  explicit Letter(int what) : number(what) {}
  explicit Letter(NextOutcome) {}
  int number = 0;
};

class Mailbox : public WaitPoint<Letter> {
 public:
  void put(int number) {
    std::unique_lock lock(mutex_);
    letter_ = number;
    changed(std::move(lock));
  }

 private:
  std::optional<Letter> take_locked() override {
    if (!letter_) return std::nullopt;
    return Letter(*std::exchange(letter_, std::nullopt));
  }
  bool ready_locked() const override { return letter_.has_value(); }

  std::optional<int> letter_;  // guarded by mutex_
};

/// Waits for a letter, on a context that the test runs.
class WaitPointTest : public testing::Test {
 protected:
  WaitPointTest() {
    const std::stop_token never;
    asio::co_spawn(context_, Mailbox::async_wait(mailbox_, never, kNoDeadline),
                   asio::bind_cancellation_slot(signal_.slot(),
                                                [this](std::exception_ptr error, Letter letter) {
                                                  threw_ = error != nullptr;
                                                  if (!error) got_ = letter.number;
                                                }));
    run();
  }
  void run() {
    context_.restart();
    context_.poll();
  }

  const std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  asio::cancellation_signal signal_;
  asio::io_context context_;
  std::optional<int> got_;
  bool threw_ = false;
};

TEST_F(WaitPointTest, ReturnsTheLetter) {
  EXPECT_FALSE(got_);
  mailbox_->put(7);
  run();
  EXPECT_EQ(got_, 7);
  EXPECT_FALSE(mailbox_->take());
}

TEST_F(WaitPointTest, ACancellationDuringAnArrivalKeepsTheLetter) {
  asio::post(context_, [this] { signal_.emit(asio::cancellation_type::terminal); });
  mailbox_->put(7);
  run();
  EXPECT_TRUE(threw_);
  const auto letter = mailbox_->take();
  ASSERT_TRUE(letter);
  EXPECT_EQ(letter->number, 7);
}

}  // namespace
}  // namespace lookout::registry::detail
