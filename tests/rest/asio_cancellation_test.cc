// Asio's cancellation (`call || timer`) ends calls like a stop.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/rest/client_testing.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;

/// A coroutine with a cancellation slot, like the branches of `a || b`.
class Cancellable {
 public:
  Cancellable(const Client& client, Awaitable<void> task)
      : loop_(client.shared_loop()), strand_(boost::asio::make_strand(loop_->context())) {
    boost::asio::co_spawn(
        strand_, std::move(task),
        boost::asio::bind_cancellation_slot(
            signal_->slot(), [done = done_, signal = signal_](std::exception_ptr error) {
              if (error) {
                done->set_exception(error);
              } else {
                done->set_value();
              }
            }));
  }

  void cancel() {
    boost::asio::post(
        strand_, [signal = signal_] { signal->emit(boost::asio::cancellation_type::terminal); });
  }

  std::future<void> result() { return done_->get_future(); }

 private:
  const std::shared_ptr<EventLoop> loop_;
  const boost::asio::strand<boost::asio::io_context::executor_type> strand_;
  const std::shared_ptr<boost::asio::cancellation_signal> signal_ =
      std::make_shared<boost::asio::cancellation_signal>();
  const std::shared_ptr<std::promise<void>> done_ = std::make_shared<std::promise<void>>();
};

/// Sends one event to watches, and never answers other requests.
class AsioCancellationTest : public testing::Test {
 protected:
  std::atomic<int> requests_{0};
  Gate more_;
  HttpServer server_{[this](HttpConnection& c) {
    answer_watches(c, requests_, [&] {
      if (more_.wait()) c.chunk(event_json("MODIFIED", "second"));
    });
  }};
};

template <class Call>
Awaitable<void> ending(Call call) {
  co_await call();
}

TEST_F(AsioCancellationTest, EndsEveryKindOfCallLikeAStop) {
  const Client client{config_for(server_)};
  const auto pods = client.resource<Pod>("shop").dynamic();
  const auto pod = api::Object::parse(pod_json("web"));
  const auto value = [](auto call) -> std::function<Awaitable<void>()> {
    return [call]() -> Awaitable<void> { co_await call(); };
  };
  const std::vector<std::function<Awaitable<void>()>> calls = {
      value([&] { return pods.async_get("web"); }),
      value([&] { return pods.async_list(); }),
      value([&] { return pods.async_list_each([](api::Object) {}); }),
      value([&] { return pods.async_create(pod); }),
      value([&] { return pods.async_update(pod); }),
      value([&] { return pods.async_patch("web", rest::PatchType::kMerge, "{}"); }),
      value([&] { return pods.async_remove("web"); }),
      value([&] { return pods.async_remove_collection(); }),
      value([&] { return client.async_get_raw("/version"); }),
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const int before = requests_;
    Cancellable call(client, ending(calls[i]));
    ASSERT_TRUE(eventually([&] { return requests_ > before; })) << i;
    call.cancel();
    EXPECT_EQ(kind_thrown([&] { get(call.result()); }), Kind::kCancelled) << i;
  }
}

TEST_F(AsioCancellationTest, ACancelledWaitLosesNoEvents) {
  const Client client{config_for(server_)};
  auto watch = client.resource<Pod>("shop").dynamic().watch();
  ASSERT_TRUE(watch.next());
  std::vector<api::WatchEvent> events;
  Cancellable waiting(client,
                      ending([&]() -> Awaitable<void> { co_await watch.async_next(events); }));
  waiting.cancel();
  EXPECT_EQ(kind_thrown([&] { get(waiting.result()); }), Kind::kCancelled);
  more_.open();
  const auto event = watch.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object.name(), "second");
}

/// Streams that continue on command.
class StreamTest : public testing::Test {
 protected:
  Client client() const { return Client{config_for(server_), std::make_shared<EventLoop>(1)}; }

  /// Runs a wait for the next item, and cancels it at the moment when the item arrives. Returns the
  /// kind of its exception.
  std::optional<Kind> cancel_as_it_ends(const Client& client, Awaitable<void> wait) {
    boost::asio::io_context context;
    boost::asio::cancellation_signal signal;
    std::exception_ptr thrown;
    boost::asio::co_spawn(
        context, std::move(wait),
        boost::asio::bind_cancellation_slot(
            signal.slot(), [&](std::exception_ptr error) { thrown = std::move(error); }));
    context.poll();
    boost::asio::post(context, [&] { signal.emit(boost::asio::cancellation_type::terminal); });
    more_.open();
    EXPECT_TRUE(sent_.wait());
    // After these calls on the client's only thread, the end of the wait is queued behind the
    // cancellation.
    for (int i = 0; i < 3; ++i) client.get_raw("/");
    context.run();
    return kind_thrown([&] {
      if (thrown) std::rethrow_exception(thrown);
    });
  }

  Gate more_;
  Gate sent_;
  HttpServer server_{[this](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      const bool watches = request->target.find("watch=true") != std::string::npos;
      if (!watches && request->target.find("/log") == std::string::npos) {
        c.respond({});
        continue;
      }
      c.begin_chunks(200, watches ? "application/json" : "text/plain");
      c.chunk(watches ? event_json("ADDED", "first") : "first\n");
      if (more_.wait()) c.chunk(watches ? event_json("MODIFIED", "second") : "second\n");
      sent_.open();
      c.wait_for_close();
    }
  }};
};

TEST_F(StreamTest, ACancellationDuringAnEventLosesNone) {
  const Client client = this->client();
  auto watch =
      client.resource<Pod>("shop").dynamic().watch({}, {}, {.timeout = std::chrono::seconds(30)});
  ASSERT_TRUE(watch.next());
  std::vector<api::WatchEvent> events;
  const auto wait = [&]() -> Awaitable<void> { co_await watch.async_next(events); };
  EXPECT_EQ(cancel_as_it_ends(client, wait()), Kind::kCancelled);
  const auto event = watch.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object.name(), "second");
}

TEST_F(StreamTest, ACancellationDuringALogLineLosesNone) {
  const Client client = this->client();
  auto log = client.resource<Pod>("shop").logs("web", {.follow = true},
                                               {.timeout = std::chrono::seconds(30)});
  ASSERT_TRUE(log.next());
  const auto wait = [&]() -> Awaitable<void> { co_await log.async_next(); };
  EXPECT_EQ(cancel_as_it_ends(client, wait()), Kind::kCancelled);
  const auto line = log.next();
  ASSERT_TRUE(line);
  EXPECT_EQ(line->text, "second");
}

// A whole call, cancelled at the moment when its response arrives.
TEST_F(AsioCancellationTest, MayArriveTogetherWithTheResponse) {
  using namespace boost::asio::experimental::awaitable_operators;
  constexpr int kRounds = 500;
  HttpServer answering(HttpServer::answering([](const HttpRequest&) { return HttpResponse{}; }));
  const Client client{config_for(answering)};
  const auto race = [](const Client& on) -> Awaitable<int> {
    int rounds = 0;
    for (; rounds < kRounds; ++rounds) {
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                      std::chrono::microseconds(100 + rounds % 200));
      auto call = on.async_get_raw("/");
      co_await (std::move(call) || timer.async_wait(boost::asio::use_awaitable));
    }
    co_return rounds;
  };
  EXPECT_EQ(client.loop().run(race(client)), kRounds);
}

// The next call may need the plugin's result. The end of the client interrupts the plugin.
TEST(AsioCancellationPluginTest, LeavesThePluginToTheClient) {
  const TempDir dir;
  ASSERT_EQ(mkfifo((dir / "started").c_str(), 0600), 0);
  const std::string pid_file = dir / "pid";
  write_file(dir / "plugin", "#!/bin/sh\necho $$ >" + pid_file + "\necho x >" +
                                 (dir / "started").string() + "\nexec sleep 1000\n");
  ASSERT_EQ(chmod((dir / "plugin").c_str(), 0700), 0);
  rest::Config config;
  config.server = "http://127.0.0.1:1";
  config.exec.emplace();
  config.exec->command = (dir / "plugin").string();
  auto client = std::make_unique<Client>(config);
  Cancellable call(*client, ending([&] { return client->async_get_raw("/version"); }));
  read_file(dir / "started");
  const int pid = std::stoi(read_file(pid_file));
  call.cancel();
  EXPECT_EQ(kind_thrown([&] { get(call.result()); }), Kind::kCancelled);
  EXPECT_EQ(::kill(pid, 0), 0);
  client.reset();
  EXPECT_NE(::kill(pid, 0), 0);
}

}  // namespace
}  // namespace lookout::test
