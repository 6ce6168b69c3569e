// Servers with several addresses, some of which do not respond.
#include "apiserver/grpc/dialer.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>

namespace lookout::apiserver::grpc {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

/// Listens on 127.0.0.1. A deaf listener has a full accept queue: the kernel drops connection
/// attempts.
class Place {
 public:
  Place(asio::io_context& context, bool deaf)
      : acceptor_(context, tcp::v4()), first_(context), second_(context) {
    acceptor_.bind({asio::ip::address_v4::loopback(), 0});
    acceptor_.listen(deaf ? 0 : 16);
    if (!deaf) return;
    first_.connect(address());
    second_.async_connect(address(), [](const boost::system::error_code&) {});
  }
  tcp::endpoint address() const { return acceptor_.local_endpoint(); }

 private:
  tcp::acceptor acceptor_;
  tcp::socket first_;
  tcp::socket second_;
};

class DialerTest : public testing::Test {
 protected:
  std::shared_ptr<Dialer> dial(Dialer::Addresses addresses) {
    auto dialer =
        std::make_shared<Dialer>(socket_, std::move(addresses), Dialer::Clock::now() + kTime,
                                 [this](const boost::system::error_code& error) { end_ = error; });
    dialer->start();
    return dialer;
  }
  /// Waits until the dialer has ended, with a long time limit.
  void run() {
    const auto until = Dialer::Clock::now() + 10 * kTime;
    while (!end_ && context_.run_one_until(until) != 0) continue;
  }

  static constexpr milliseconds kTime{1200};
  asio::io_context context_;
  tcp::socket socket_{context_};
  std::optional<boost::system::error_code> end_;
};

TEST_F(DialerTest, AnUnresponsiveAddressLeavesTimeForOthers) {
  const Place deaf(context_, true);
  const Place there(context_, false);
  const auto begin = Dialer::Clock::now();
  dial({deaf.address(), deaf.address(), there.address()});
  run();
  ASSERT_TRUE(end_.has_value());
  EXPECT_FALSE(*end_) << end_->message();
  EXPECT_EQ(socket_.remote_endpoint(), there.address());
  EXPECT_GE(Dialer::Clock::now() - begin, kTime / 2) << "each has a third of it";
}

TEST_F(DialerTest, ARefusingAddressCostsNoTime) {
  const tcp::endpoint nobody = Place(context_, false).address();
  const Place there(context_, false);
  dial({nobody, there.address()});
  run();
  ASSERT_TRUE(end_.has_value());
  EXPECT_FALSE(*end_) << end_->message();
  EXPECT_EQ(socket_.remote_endpoint(), there.address());
}

TEST_F(DialerTest, ReportsTheErrorOfTheLastAddress) {
  const Place deaf(context_, true);
  const tcp::endpoint nobody = Place(context_, false).address();
  dial({deaf.address(), nobody});
  run();
  ASSERT_TRUE(end_.has_value());
  EXPECT_EQ(*end_, asio::error::connection_refused);
}

TEST_F(DialerTest, AStoppedDialerDoesNotTouchTheSocket) {
  const Place deaf(context_, true);
  const Place there(context_, false);
  const auto dialer = dial({deaf.address(), there.address()});
  dialer->stop();
  socket_.close();
  while (context_.run_one_for(kTime) != 0) continue;
  EXPECT_FALSE(end_.has_value());
  EXPECT_FALSE(socket_.is_open());
}

}  // namespace
}  // namespace lookout::apiserver::grpc
