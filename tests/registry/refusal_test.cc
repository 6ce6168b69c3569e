// Namespaces that the program may not read, and the reports about them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "lookout/api/status.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using namespace registry::test;
using kratos::Registry;
using lookout::test::HttpConnection;
using lookout::test::HttpServer;

/// A server with a pod of the service "web" in each namespace, which forbids those in "secret".
class RefusalTest : public testing::Test {
 protected:
  RefusalTest()
      : server_([this](HttpConnection& connection) { serve(connection); }), client_([this] {
          rest::Config config;
          config.server = server_.url();
          return rest::Client(config);
        }()) {}

  Options in(std::vector<std::string> namespaces) {
    Options out;
    out.namespaces = std::move(namespaces);
    out.backoff = {.initial = 1ms, .max = 20ms};
    out.on_error = [this](const WatchFailure& failure) {
      const std::lock_guard lock(mutex_);
      failures_.push_back(failure);
    };
    return out;
  }
  std::vector<WatchFailure> failures() {
    const std::lock_guard lock(mutex_);
    return failures_;
  }

  std::atomic<bool> refuses_{true};
  std::atomic<bool> holds_{false};  // rejects nothing until the gate opens
  std::atomic<bool> busy_{false};   // for watches
  Gate rejects_;

 private:
  void serve(HttpConnection& connection) {
    while (const auto request = connection.read_request()) {
      const std::string& target = request->target;
      const bool secret = target.find("/namespaces/secret/") != std::string::npos;
      if (secret && refuses_) {
        if (holds_) {
          EXPECT_TRUE(rejects_.wait());
        }
        respond(connection, api::StatusError::forbidden("", "pods", "", "not for you"));
      } else if (target.find("sendInitialEvents") != std::string::npos) {
        respond(connection, api::StatusError::bad_request("there are no streams here"));
      } else if (target.find("watch=") != std::string::npos && busy_) {
        respond(connection, api::StatusError::too_many_requests("come back later", 0));
      } else if (target.find("watch=") != std::string::npos) {
        connection.begin_chunks();
        connection.wait_for_close();
        return;
      } else {
        connection.respond({.body = list(secret ? "secret" : "shop")});
      }
    }
  }
  static void respond(HttpConnection& connection, const api::StatusError& error) {
    connection.respond({.status = error.code(), .body = error.status().to_object().to_json()});
  }
  static std::string list(const std::string& ns) {
    return fmt::format(
        R"({{"apiVersion":"v1","kind":"PodList","metadata":{{"resourceVersion":"7"}},"items":[
           {{"metadata":{{"name":"web","namespace":"{0}","resourceVersion":"5",
             "labels":{{"kratos-service-app":"web","kratos-service-id":"{0}",
                        "dubbo.io/label":"dubbo.io.provider"}},
             "annotations":{{"dubbo.io/annotation":"W3siayI6ImtleSIsInYiOiIxIn1d"}}}},
             "spec":{{"containers":[{{"name":"c","image":"i","ports":[{{"containerPort":80}}]}}]}},
             "status":{{"phase":"Running","podIP":"10.0.0.1",
                        "conditions":[{{"type":"Ready","status":"True"}}]}}}}]}})",
        ns);
  }

  std::mutex mutex_;
  std::vector<WatchFailure> failures_;
  HttpServer server_;

 protected:
  const rest::Client client_;
};

TEST_F(RefusalTest, AForbiddenNamespaceDoesNotBlockOthers) {
  Registry registry(client_, in({"shop", "secret"}));
  auto watcher = registry.watch("web");
  EXPECT_THAT(ids(*registry.get_service("web")), ElementsAre("shop"));
  EXPECT_THAT(registry.services(), ElementsAre("web"));
  const auto set = watcher.next_for(kLong);
  ASSERT_TRUE(set) << to_string(set.outcome());
  EXPECT_THAT(ids(*set), ElementsAre("shop"));
  EXPECT_TRUE(eventually([&] { return set->freshness().live; })) << "it follows the server";

  // The program sees the failures.
  EXPECT_TRUE(eventually([&] { return failures().size() >= 20; }))
      << "it goes on trying, with the waits of the options";
  EXPECT_EQ(failures()[0].ns, "secret");
  EXPECT_EQ(failures()[0].code, 403);
  EXPECT_THAT(failures()[0].reason, AllOf(HasSubstr("forbidden"), HasSubstr("not for you")));
  EXPECT_THAT(set->freshness().error, AllOf(HasSubstr("secret: "), HasSubstr("not for you")));
  EXPECT_EQ(registry.freshness().error, set->freshness().error);
  const Balancer balancer(registry, "web");
  EXPECT_EQ(balancer.freshness().error, set->freshness().error);
  const auto now = registry.failures();
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].ns, "secret");
  EXPECT_EQ(now[0].code, 403);

  // Once access is granted, the set is announced.
  refuses_ = false;
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 2; }));
  EXPECT_TRUE(eventually([&] { return registry.failures().empty(); }));
}

TEST_F(RefusalTest, ANamespaceIsOmittedOnlyAfterARejection) {
  // Before the first response, the result for "secret" is unknown.
  refuses_ = false;
  Registry registry(client_, in({"shop", "secret"}));
  auto watcher = registry.watch("web");
  const auto first = watcher.next_for(kLong);
  ASSERT_TRUE(first);
  EXPECT_THAT(ids(*first), ElementsAre("secret", "shop"));
  EXPECT_THAT(registry.failures(), IsEmpty());
}

TEST_F(RefusalTest, ALateRejectionCompletesTheSet) {
  holds_ = true;
  Registry registry(client_, in({"shop", "secret"}));
  auto watcher = registry.watch("web");
  EXPECT_TRUE(eventually([&] { return registry.stats().objects == 1; }));
  EXPECT_EQ(watcher.next_for(20ms).outcome(), NextOutcome::kTimedOut);
  rejects_.open();
  const auto first = watcher.next_for(kLong);
  ASSERT_TRUE(first) << to_string(first.outcome());
  EXPECT_THAT(ids(*first), ElementsAre("shop"));
}

TEST_F(RefusalTest, ARefusalThatHasEndedIsNoReason) {
  busy_ = true;
  Registry registry(client_, in({"secret"}));
  auto watcher = registry.watch("web");
  EXPECT_TRUE(eventually([&] { return registry.failures().size() == 1; }));
  EXPECT_THAT(registry.freshness().error, HasSubstr("not for you"));
  refuses_ = false;
  EXPECT_TRUE(next_that(watcher, [](const auto& s) { return s.size() == 1; }));
  // The list was answered; watches are not.
  EXPECT_TRUE(eventually([&] {
    return registry.freshness().error.find("come back later") != std::string::npos;
  })) << registry.freshness().error;
  const auto now = registry.failures();
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].code, 429);
  busy_ = false;
  EXPECT_TRUE(eventually([&] { return registry.freshness().live; }));
  EXPECT_EQ(registry.freshness().error, "");
}

TEST_F(RefusalTest, ALaterRefusalKeepsTheInstances) {
  refuses_ = false;
  busy_ = true;  // so that it asks again and again
  Registry registry(client_, in({"secret"}));
  auto watcher = registry.watch("web");
  const auto set = next_that(watcher, [](const auto& s) { return s.size() == 1; });
  ASSERT_TRUE(set);
  refuses_ = true;
  EXPECT_TRUE(eventually([&] {
    const auto now = registry.failures();
    return now.size() == 1 && now[0].code == 403;
  }));
  EXPECT_FALSE(set->freshness().live);
  EXPECT_THAT(set->freshness().error, HasSubstr("not for you"));
  EXPECT_EQ(watcher.next_for(20ms).outcome(), NextOutcome::kTimedOut);
  EXPECT_THAT(ids(*registry.get_service("web")), ElementsAre("secret"));
  refuses_ = false;
  busy_ = false;
  EXPECT_TRUE(eventually([&] { return registry.freshness().live; }));
  EXPECT_THAT(ids(*registry.get_service("web")), ElementsAre("secret"));
}

/// The reason why "web" has not synced; empty if it has.
std::string reason_not_synced(Registry& registry) {
  try {
    registry.get_service("web");
  } catch (const NotSynced& e) {
    return e.what();
  }
  return "";
}

TEST_F(RefusalTest, NotSyncedQuotesTheServersError) {
  Options options = in({"secret"});
  options.sync_timeout = 200ms;
  Registry registry(client_, options);
  auto watcher = registry.watch("web");
  ASSERT_TRUE(eventually([&] {
    return reason_not_synced(registry).find("pods in secret (pods is forbidden") !=
           std::string::npos;
  }));
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut)
      << "what may not be seen is not what is not there";
  EXPECT_FALSE(registry.freshness().live);
  refuses_ = false;
  EXPECT_TRUE(watcher.next_for(kLong));
}

TEST_F(RefusalTest, ARejectionEndsTheWait) {
  Options options = in({"secret"});
  options.sync_timeout = std::chrono::hours(1);
  Registry registry(client_, options);
  EXPECT_THAT([&] { registry.get_service("web"); },
              testing::ThrowsMessage<NotSynced>(
                  AllOf(HasSubstr("refuses"), HasSubstr("pods is forbidden"))));
  // The registry retries nevertheless.
  refuses_ = false;
  EXPECT_TRUE(eventually([&] {
    try {
      return registry.get_service("web")->size() == 1;
    } catch (const NotSynced&) {
      return false;
    }
  }));
}

TEST_F(RefusalTest, NotSyncedQuotesTheConnectionError) {
  rest::Config config;
  {
    const HttpServer gone([](HttpConnection&) {});
    config.server = gone.url();
  }
  Options options = in({"shop"});
  options.sync_timeout = 200ms;
  Registry registry(rest::Client(config), options);
  EXPECT_TRUE(
      eventually([&] { return reason_not_synced(registry).find("onnect") != std::string::npos; }));
  EXPECT_TRUE(eventually([&] { return !failures().empty() && failures()[0].code == 0; }));
}

TEST_F(RefusalTest, DubboClientsContinueWithOtherNamespaces) {
  dubbo::ClientOptions options;
  options.observer = true;
  options.namespaces = {"shop", "secret"};
  options.backoff = {.initial = 1ms, .max = 20ms};
  std::atomic<int> code{0};
  options.on_error = [&](const WatchFailure& failure) { code = failure.code; };
  dubbo::Client client(client_, options);
  EXPECT_EQ(client.get("key"), "1");
  EXPECT_TRUE(eventually([&] { return code == 403; }));
  const auto now = client.failures();
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].ns, "secret");
  client.close();
}

}  // namespace
}  // namespace lookout::registry
