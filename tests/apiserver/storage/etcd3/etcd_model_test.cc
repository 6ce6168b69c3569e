// The simulator's model of etcd, compared with a real one: the same requests must have the same
// responses.
#include "testing/sim/etcd_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "apiserver/grpc/channel.h"
#include "apiserver/storage/etcd3/messages.h"
#include "lookout/api/detail/wire_reader.h"
#include "lookout/base/event_loop.h"
#include "tests/apiserver/grpc/read_all.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/tested_etcd.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using api::detail::for_each_field;
using api::detail::WireContent;
using sim::Proto;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{30};

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const bool plain = c >= ' ' && c <= '~';
    out += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

/// The numbers and texts of a message, in readable form. Headers (field 1) are reduced to the revision,
/// because the other fields differ between clusters.
std::string told(std::string_view message, bool is_txn = false) {
  std::string out;
  for_each_field(message, [&](std::uint64_t field, const WireContent& content) {
    if (field == 1) {
      out += fmt::format(" @{}", sim::number_in(content.bytes, 3));
    } else if (is_txn && field == 3) {
      out += " {";
      for_each_field(content.bytes, [&](std::uint64_t kind, const WireContent& one) {
        out += fmt::format("{}:{}", kind, told(one.bytes));
      });
      out += "}";
    } else if (content.wire_type == api::detail::kBytes) {
      out += fmt::format(" {}=\"{}\"", field, hex(content.bytes));
    } else {
      out += fmt::format(" {}={}", field, content.number);
    }
  });
  return out;
}

/// A client with a test's requests.
class Peer {
 public:
  explicit Peer(const EtcdOptions& options) {
    grpc::Server server;
    server.url = options.endpoints.at(0);
    if (options.network != nullptr) {
      auto carrier = options.network->create(loop_.context(), server);
      channel_ = std::make_shared<grpc::Channel>(std::move(carrier), server);
    } else {
      channel_ = std::make_shared<grpc::Channel>(loop_.context(), server);
    }
  }
  ~Peer() { channel_->shutdown(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// The response as text.
  std::string ask(const std::string& method, const std::string& message) {
    return loop_.run(ask_once(method, message));
  }
  /// All messages of a watch of all keys, from a revision on, until it ends or until `last`.
  std::vector<std::string> watch(Revision from, Revision last) {
    return loop_.run(watch_all(from, last));
  }

 private:
  Awaitable<std::string> ask_once(std::string method, std::string message) {
    grpc::CallRequest request;
    request.path = "/etcdserverpb." + method;
    request.message = std::move(message);
    request.deadline = steady_clock::now() + kPatience;
    const auto executor = co_await boost::asio::this_coro::executor;
    const auto call = channel_->start(std::move(request), executor);
    const std::string all = co_await test::read_all(call);
    const grpc::Status status = call->status();
    if (status.code != 0) co_return fmt::format("{} {}", status.code, status.message);
    co_return told(std::string_view(all).substr(grpc::kMessageHead), method == "KV/Txn");
  }

  Awaitable<std::vector<std::string>> watch_all(Revision from, Revision last) {
    Proto create;
    create.bytes(1, std::string(1, '\0')).bytes(2, std::string(1, '\0'));
    create.number(3, from).number(6, 1);
    grpc::CallRequest request;
    request.path = "/etcdserverpb.Watch/Watch";
    request.message = Proto().message(1, create).text();
    request.streaming = true;
    request.deadline = steady_clock::now() + kPatience;
    const auto executor = co_await boost::asio::this_coro::executor;
    const auto call = channel_->start(std::move(request), executor);
    std::vector<std::string> out;
    std::string input;
    for (bool over = false; !over;) {
      const std::string piece = co_await call->read();
      if (piece.empty()) break;
      input += piece;
      while (!over && take_frame(input, last, out, over)) continue;
    }
    call->cancel();
    co_return out;
  }

  static bool take_frame(std::string& input, Revision last, std::vector<std::string>& out,
                         bool& over) {
    if (input.size() < grpc::kMessageHead) return false;
    std::size_t size = 0;
    for (std::size_t i = 1; i < grpc::kMessageHead; ++i)
      size = size << 8 | static_cast<unsigned char>(input[i]);
    if (input.size() < grpc::kMessageHead + size) return false;
    const std::string message = input.substr(grpc::kMessageHead, size);
    input.erase(0, grpc::kMessageHead + size);
    if (sim::number_in(message, 3) != 0) out.push_back("created" + told(message));
    if (sim::number_in(message, 4) != 0) {
      out.push_back("canceled" + told(message));
      over = true;
    }
    for_each_field(message, [&](std::uint64_t field, const WireContent& content) {
      if (field != 11) return;
      out.push_back(hex(content.bytes));
      over = over || sim::number_in(sim::bytes_in(content.bytes, 2), 3) >= last;
    });
    return true;
  }

  EventLoop loop_{1};
  std::shared_ptr<grpc::Channel> channel_;
};

/// Random requests, some of them invalid.
class Requests {
 public:
  explicit Requests(unsigned seed) : random_(seed) {}

  struct Request {
    std::string method;
    std::string message;
  };

  /// `now` is approximately the current revision.
  Request next(Revision now) {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
        return {"KV/Put", put().text()};
      case 3:
        return {"KV/DeleteRange", remove().text()};
      case 4:
      case 5:
      case 6:
      case 7:
        return {"KV/Txn", txn(now)};
      case 8:
        return compaction(now);
      case 9:
        return {"Lease/LeaseGrant", Proto().number(1, 5000 + below(3)).number(2, lease()).text()};
      case 10:
        return below(3) == 0 ? Request{"Lease/LeaseRevoke", Proto().number(1, lease()).text()}
                             : Request{"Lease/LeaseKeepAlive", Proto().number(1, lease()).text()};
      default:
        return {"KV/Range", range(now).text()};
    }
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool seldom() { return below(20) == 0; }
  std::string key() {
    return seldom() ? "" : "/k/" + std::string(1, static_cast<char>('a' + below(6)));
  }
  std::string end() {
    switch (below(4)) {
      case 0:
        return "/k/" + std::string(1, static_cast<char>('a' + below(7)));
      case 1:
        return std::string(1, '\0');
      default:
        return "";
    }
  }
  std::uint64_t lease() { return 100 + below(4); }
  Revision some_revision(Revision now) {
    return now > 8 ? now - 8 + below(11) : 1 + below(now + 3);
  }

  Proto put() {
    Proto out;
    out.bytes(1, key()).bytes(2, std::string(below(9), static_cast<char>(below(256))));
    if (below(4) == 0) out.number(3, lease());
    return out.number(4, below(2));
  }
  Proto remove() { return Proto().bytes(1, key()).bytes(2, end()).number(3, below(2)); }
  Proto range(Revision now) {
    Proto out;
    out.bytes(1, key()).bytes(2, end()).number(3, below(3) == 0 ? 1 + below(3) : 0);
    if (below(2) == 0) out.number(4, some_revision(now));
    out.number(8, below(3) == 0 ? 1 : 0).number(9, below(5) == 0 ? 1 : 0);
    if (below(4) == 0) out.number(10, some_revision(now));
    return out;
  }
  Proto operation(Revision now) {
    switch (below(3)) {
      case 0:
        return Proto().message(1, range(now));
      case 1:
        return Proto().message(2, put());
      default:
        // With a range that has no end, etcd would not notice that the range contains a key that is
        // also put.
        return Proto().message(3, Proto().bytes(1, key()).number(3, below(2)));
    }
  }
  Proto compare(Revision now) {
    Proto out;
    const std::uint64_t target = below(5);
    out.number(1, below(4)).number(2, target).bytes(3, key());
    // The operand of the comparison.
    if (target == 3) return out.bytes(7, std::string(1 + below(3), 'x'));
    constexpr unsigned kFields[] = {4, 5, 6, 7, 8};
    const std::uint64_t value = target == 0   ? 1 + below(3)
                                : target == 4 ? lease()
                                              : some_revision(now);
    return out.number(kFields[target], value);
  }
  std::string txn(Revision now) {
    // Mostly like the store: one comparison and one operation.
    Proto out;
    for (std::uint64_t i = below(3); i > 0; --i) out.message(1, compare(now));
    for (std::uint64_t i = 1 + below(2); i > 0; --i) out.message(2, operation(now));
    for (std::uint64_t i = below(2); i > 0; --i) out.message(3, operation(now));
    return out.text();
  }
  Request compaction(Revision now) {
    if (below(3) != 0) return {"KV/Range", range(now).text()};
    // Physical compaction: it is complete when the response arrives.
    return {"KV/Compact", Proto().number(1, some_revision(now)).number(2, 1).text()};
  }

  std::mt19937 random_;
};

/// "3.4.23"
std::string version_of(Peer& peer) {
  const std::string status = peer.ask("Maintenance/Status", "");
  constexpr std::string_view kField = " 2=\"";
  const std::size_t begin = status.find(kField) + kField.size();
  return status.substr(begin, status.find('"', begin) - begin);
}

class EtcdModelTest : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
  }
};

TEST_P(EtcdModelTest, RespondsLikeARealEtcd) {
  const test::OwnEtcd real(test::kRealEtcd);
  Peer there(real.reach());
  sim::EtcdModelOptions options;
  options.data.version = version_of(there);
  const auto model = sim::EtcdModel::make(options);
  EtcdOptions reach;
  reach.endpoints = model->endpoints();
  reach.network = model;
  Peer here(reach);
  Requests requests(GetParam());
  for (int i = 0; i < 600; ++i) {
    const auto request = requests.next(model->revision());
    const std::string expected = there.ask(request.method, request.message);
    ASSERT_EQ(here.ask(request.method, request.message), expected)
        << "request " << i << ": " << request.method << told(request.message);
  }
  // Watches from every revision have the same events or the same errors.
  const std::string last = Proto().bytes(1, "/k/z").bytes(2, "last").text();
  ASSERT_EQ(here.ask("KV/Put", last), there.ask("KV/Put", last));
  const Revision now = model->revision();
  const Revision compacted = model->compacted();
  EXPECT_GT(compacted, 1u);
  for (Revision from = compacted - 1; from <= now; ++from) {
    ASSERT_EQ(here.watch(from, now), there.watch(from, now))
        << "from " << from << " of " << now << ", compacted at " << compacted;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EtcdModelTest, testing::Range(1u, 6u));

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
