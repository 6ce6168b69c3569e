// Options in braces within a co_await expression. (GCC 12 miscompiles aggregates there; see
// LOOKOUT_OPTION. A mistake is a double free, which AddressSanitizer reports, and usually crashes
// without it.)
#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/resource.h"
#include "lookout/api/stream_decoder.h"
#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/event_loop.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/conditions.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/priority_queue.h"
#include "lookout/controller/webhook.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/registry/app.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/dubbo/client.h"
#include "lookout/registry/options.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"
#include "lookout/rest/subresources.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "lookout/tools/cache/reflector.h"
#include "lookout/tools/leaderelection/leader_elector.h"
#include "lookout/tools/leaderelection/lease_candidate.h"
#include "lookout/tools/record/event_broadcaster.h"
#include "lookout/tools/watch/retry_watcher.h"
#include "lookout/tools/watch/until.h"

namespace lookout::test {
namespace {

// Too long for the small-string optimisation, and short enough.
const std::string kLong(100, 'x');
const std::string kShort = "x";

/// Takes options like functions of the library: by value, with a default, by reference.
template <class T>
Awaitable<T> taken(T options, T = T()) {
  T copy = options;
  options = T();
  co_return std::move(copy);
}
template <class T>
Awaitable<T> seen(const T& options, std::string) {
  co_return options;
}

class BracesTest : public testing::Test {
 protected:
  template <class F>
  void run(F f) {
    loop_.run(f());
  }

  EventLoop loop_{1};
};

TEST_F(BracesTest, OptionsOfRequests) {
  run([]() -> Awaitable<void> {
    using namespace rest;
    EXPECT_EQ((co_await taken<ListOptions>({})).label_selector, "");
    EXPECT_EQ((co_await taken<ListOptions>({.limit = 5})).limit, 5);
    EXPECT_EQ((co_await taken<ListOptions>(
                   {.label_selector = kLong, .field_selector = "metadata.name=x"}))
                  .label_selector,
              kLong);
    EXPECT_EQ((co_await taken<ListOptions>({.label_selector = kShort}, {.field_selector = kLong}))
                  .label_selector,
              kShort);
    EXPECT_EQ((co_await seen<ListOptions>({.continue_token = kLong}, kLong)).continue_token, kLong);
    EXPECT_EQ((co_await taken<GetOptions>({.resource_version = "1"})).resource_version, "1");
    EXPECT_EQ((co_await taken<CreateOptions>({.field_manager = kLong})).field_manager, kLong);
    EXPECT_EQ((co_await taken<UpdateOptions>({.field_manager = kLong})).field_manager, kLong);
    EXPECT_TRUE((co_await taken<PatchOptions>({.field_manager = kLong, .force = true})).force);
    EXPECT_EQ((co_await taken<ApplyOptions>({.field_manager = kLong})).field_manager, kLong);
    EXPECT_EQ(
        (co_await taken<DeleteOptions>({.grace_period_seconds = 1, .precondition_uid = kLong}))
            .precondition_uid,
        kLong);
    EXPECT_EQ((co_await taken<LogOptions>({.container = kLong, .tail_lines = 3})).container, kLong);
    EXPECT_EQ((co_await taken<TokenOptions>({.audiences = std::vector<std::string>(2, kLong)}))
                  .audiences.size(),
              2u);
    const std::stop_source stop;
    EXPECT_TRUE((co_await taken<CallOptions>({.stop = stop.get_token()})).stop.stop_possible());
    EXPECT_TRUE((co_await taken<DecodeOptions>({.metadata_only = true})).metadata_only);
    int told = 0;
    const DecodeOptions decode = co_await taken<DecodeOptions>(
        {.on_malformed = [&told](const api::MalformedObject&) { ++told; }});
    decode.on_malformed({});
    EXPECT_EQ(told, 1);
  });
}

TEST_F(BracesTest, Configurations) {
  run([]() -> Awaitable<void> {
    using namespace rest;
    const Config config = co_await taken<Config>(
        {.server = kLong, .exec = ExecConfig{.command = kLong}, .as = {.user = kLong}});
    EXPECT_EQ(config.server, kLong);
    EXPECT_EQ(config.exec.value_or(ExecConfig{}).command, kLong);
    EXPECT_EQ(config.as.user, kLong);
    EXPECT_EQ(config.default_namespace, "default");
    EXPECT_EQ((co_await taken<LoadOptions>({.context = kLong})).context, kLong);
    EXPECT_EQ((co_await taken<ExecEnvVar>({.name = kShort, .value = kLong})).value, kLong);
    EXPECT_EQ((co_await taken<api::GroupVersionKind>({"apps", "v1", kLong})).kind, kLong);
    EXPECT_EQ((co_await taken<api::GroupVersionResource>({"apps", "v1", kLong})).resource, kLong);
  });
}

TEST_F(BracesTest, OptionsOfCachesAndInformers) {
  run([]() -> Awaitable<void> {
    EXPECT_EQ((co_await taken<cache::ListWatchOptions>({.label_selector = kLong})).label_selector,
              kLong);
    EXPECT_EQ((co_await taken<cache::ReflectorOptions>({.name = kLong, .page_size = 3})).name,
              kLong);
    const informer::InformerOptions one = co_await taken<informer::InformerOptions>(
        {.reflector = {.name = kLong}, .resource = {"apps", "v1", kLong}});
    EXPECT_EQ(one.reflector.name, kLong);
    EXPECT_EQ(one.resource.resource, kLong);
    EXPECT_EQ((co_await taken<informer::FactoryOptions>({.ns = kLong})).ns, kLong);
    EXPECT_EQ((co_await taken<informer::Scope>({.label_selector = kLong})).label_selector, kLong);
    EXPECT_EQ((co_await taken<api::StreamOptions>({.kind = kLong})).kind, kLong);
    EXPECT_EQ((co_await taken<leaderelection::Options>({.name = kLong, .ns = kShort})).name, kLong);
  });
}

TEST_F(BracesTest, OptionsOfTheRegistry) {
  run([]() -> Awaitable<void> {
    EXPECT_EQ((co_await taken<registry::Options>({.ns = kLong, .pod = {.name = kLong}})).pod.name,
              kLong);
    const std::stop_source stop;
    EXPECT_TRUE(
        (co_await taken<registry::WaitOptions>({.stop = stop.get_token()})).stop.stop_possible());
    EXPECT_EQ((co_await taken<registry::CallPolicy>({.scheme = kLong})).scheme, kLong);
    EXPECT_EQ((co_await taken<registry::BalancerPolicy>({.preferred_zone = kLong})).preferred_zone,
              kLong);
    EXPECT_EQ((co_await taken<registry::AppOptions>({.name = kLong, .version = kShort})).name,
              kLong);
    EXPECT_EQ(
        (co_await taken<registry::RegistrationOptions>({.instance = {.id = kLong}})).instance.id,
        kLong);
    EXPECT_EQ((co_await taken<registry::dubbo::ClientOptions>({.observer = true})).label,
              "dubbo.io/label");
  });
}

TEST_F(BracesTest, OptionsOfWatchesAndEvents) {
  run([]() -> Awaitable<void> {
    const std::stop_source stop;
    EXPECT_TRUE(
        (co_await taken<watch::WaitOptions>({.stop = stop.get_token()})).stop.stop_possible());
    EXPECT_NE((co_await taken<watch::RetryWatcherOptions>({.clock = Clock::real()})).clock,
              nullptr);
    EXPECT_EQ((co_await taken<leaderelection::CandidateOptions>({.name = kLong,
                                                                 .ns = kShort,
                                                                 .lease_name = kLong,
                                                                 .binary_version = "1",
                                                                 .emulation_version = "1"}))
                  .lease_name,
              kLong);
    EXPECT_EQ((co_await taken<record::BroadcasterOptions>({.name = kLong, .seed = 1})).name, kLong);
    const std::map<std::string, std::string> annotations{{kShort, kLong}};
    const record::Event event = co_await taken<record::Event>(
        {.regarding = {.name = kLong}, .reason = kShort, .annotations = annotations});
    EXPECT_EQ(event.regarding.name, kLong);
    EXPECT_EQ(event.annotations.at(kShort), kLong);
    EXPECT_EQ((co_await taken<record::EventSource>({.component = kLong})).component, kLong);
  });
}

TEST_F(BracesTest, OptionsOfControllers) {
  run([]() -> Awaitable<void> {
    using namespace controller;
    EXPECT_EQ((co_await taken<ControllerOptions>({.name = kLong})).name, kLong);
    const ManagerOptions manager = co_await taken<ManagerOptions>(
        {.leader_election = LeaderElection{.name = kLong},
         .cache = {.namespaces = std::vector<std::string>(1, kLong)}});
    EXPECT_EQ(manager.leader_election.value_or(LeaderElection{}).name, kLong);
    EXPECT_EQ(manager.cache.namespaces, std::vector<std::string>{kLong});
    EXPECT_EQ((co_await taken<KindOptions>({.label_selector = kLong})).label_selector, kLong);
    EXPECT_EQ((co_await taken<NamespaceOptions>({.label_selector = kLong})).label_selector, kLong);
    EXPECT_EQ((co_await taken<PriorityQueueOptions>({.name = kLong})).name, kLong);
    EXPECT_TRUE((co_await taken<WatchOptions>({.only_metadata = true})).only_metadata);
    const WebhookOptions webhooks =
        co_await taken<WebhookOptions>({.host = kLong, .cert_dir = kLong});
    EXPECT_EQ(webhooks.host + webhooks.cert_dir + webhooks.key_name, kLong + kLong + "tls.key");
    EXPECT_EQ((co_await taken<AdmissionUser>({.username = kLong})).username, kLong);
    EXPECT_EQ((co_await taken<Condition>({.type = kShort, .reason = kLong})).reason, kLong);
  });
}

TEST_F(BracesTest, OptionsOfTheServer) {
  run([]() -> Awaitable<void> {
    using namespace apiserver;
    EXPECT_EQ((co_await taken<ServerOptions>({.token_file = kLong})).token_file, kLong);
    EXPECT_EQ((co_await taken<storage::EtcdOptions>({.prefix = kLong})).prefix, kLong);
    EXPECT_EQ((co_await taken<storage::ListOptions>({.start_key = kLong})).start_key, kLong);
    EXPECT_EQ((co_await taken<storage::Preconditions>({.uid = kLong})).uid, kLong);
  });
}

}  // namespace
}  // namespace lookout::test
