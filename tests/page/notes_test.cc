// The page's notes: history, problems, the state of pods.
#include "cmd/registry/page/notes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cmd/registry/page/clip.h"
#include "cmd/registry/page/cluster_notes.h"
#include "lookout/apiserver/server.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/kratos/registry.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd::registry_cmd {
namespace {

using namespace std::chrono_literals;
using lookout::test::eventually;
using registry::InstancePtr;
using registry::InstanceSet;
using registry::ServiceInstance;

InstancePtr instance(ServiceInstance value) {
  return std::make_shared<const ServiceInstance>(std::move(value));
}

InstancePtr pod(const std::string& name, bool ready = true) {
  return instance({.name = "web", .version = "v1", .origin = name, .ready = ready});
}

/// A state with these sets.
CatalogState state_of(std::map<std::string, std::vector<InstancePtr>> services) {
  CatalogState out;
  out.synced = true;
  for (auto& [name, instances] : services) {
    out.services.push_back(InstanceSet::make(name, 1, std::move(instances)));
  }
  return out;
}

std::vector<std::string> lines_of(const History& history, const std::string& service) {
  std::vector<std::string> out;
  for (const auto& change : history.of(service)) {
    out.push_back(fmt::format("{} {} {}", change.pod, change.event, change.detail));
  }
  return out;
}

/// Passes states on, like a catalog.
class Taker {
 public:
  explicit Taker(NoteSources sources = {}) : taker_(std::move(sources)) {}
  const Notes& take(CatalogState next) {
    next.notes = taker_.take(state_, next);
    state_ = std::move(next);
    return notes_of(state_);
  }
  std::vector<std::string> lines(const std::string& service) const {
    return lines_of(taker_.history(), service);
  }

 private:
  CatalogState state_;
  NoteTaker taker_;
};

PodFactsPtr facts(PodFacts value) { return std::make_shared<const PodFacts>(std::move(value)); }

// ------------------------------------------------------------------------------------ history

TEST(PageHistory, KeepsTheLastChangesOfEachServiceNewestFirst) {
  History history;
  const auto now = std::chrono::system_clock::now();
  for (std::size_t i = 0; i < History::kChangesPerService + 10; ++i) {
    history.add("web", {now, std::to_string(i), "came"});
  }
  history.add("cart", {now, "c", "left"});
  const auto changes = history.of("web");
  ASSERT_THAT(changes, SizeIs(History::kChangesPerService));
  EXPECT_EQ(changes.front().pod, std::to_string(History::kChangesPerService + 9));
  EXPECT_EQ(changes.back().pod, "10");
  EXPECT_THAT(history.of("cart"), SizeIs(1)) << "one service does not displace another's changes";
  EXPECT_THAT(history.of("none"), IsEmpty());
}

TEST(PageHistory, EvictsTheServicesThatChangedLeastRecently) {
  History history;
  auto now = std::chrono::system_clock::time_point(1000s);
  for (std::size_t i = 0; i < History::kServices; ++i) {
    history.add(std::to_string(i), {now += 1s, "a", "came"});
  }
  history.add("0", {now += 1s, "a", "left"});
  history.add("new", {now += 1s, "a", "came"});
  EXPECT_THAT(history.of("0"), SizeIs(2));
  EXPECT_THAT(history.of("new"), SizeIs(1));
  EXPECT_THAT(history.of("1"), IsEmpty());
  EXPECT_THAT(history.of("2"), SizeIs(1));
}

TEST(PageHistory, DescribesTheDifference) {
  const ServiceInstance before{.version = "v1", .metadata = {{"weight", "1"}, {"old", "x"}}};
  ServiceInstance after = before;
  EXPECT_EQ(describe_change(before, after), "");
  after.ready = false;
  EXPECT_EQ(describe_change(before, after), "") << "readiness is an event of its own";
  after.version = "v2";
  after.metadata = {{"weight", "2"}, {"new", "y"}};
  after.endpoints = {"http://10.0.0.1:80"};
  EXPECT_EQ(describe_change(before, after),
            "version v1 → v2, endpoints none → http://10.0.0.1:80, metadata new none → y, "
            "metadata old x → none, metadata weight 1 → 2");
}

TEST(PageHistory, DescriptionsAreShort) {
  ServiceInstance before;
  for (int i = 0; i < 1000; ++i) before.metadata[std::to_string(i)] = std::string(10'000, 'x');
  EXPECT_LT(describe_change(before, {}).size(), 500u);
  EXPECT_THAT(describe_change(before, {}), HasSubstr(", 995 more"));
}

TEST(PageHistory, ATextIsNotCutWithinACharacter) {
  EXPECT_EQ(clip("abc", 3), "abc");
  EXPECT_EQ(clip("abcd", 3), "abc…");
  EXPECT_EQ(clip("aää", 4), "aä…");
  EXPECT_EQ(clip("\x80\x80\x80", 1), "…");
}

TEST(PageNotes, ReportChangesOfInstances) {
  Taker taker;
  taker.take(state_of({{"web", {pod("a"), pod("b")}}}));
  EXPECT_THAT(taker.lines("web"), IsEmpty()) << "what is there at first has not just come";
  taker.take(state_of({{"web", {pod("a", false), pod("c")}}}));
  EXPECT_THAT(taker.lines("web"), ElementsAre("a not ready ", "c came ", "b left "));
  taker.take(state_of({{"web", {pod("a"), instance({.version = "v2", .origin = "c"})}}}));
  EXPECT_THAT(taker.lines("web"), SizeIs(5));
  EXPECT_THAT(taker.lines("web").front(), "c changed version v1 → v2");
  taker.take(state_of({{"cart", {pod("x")}}}));
  EXPECT_THAT(taker.lines("web"), SizeIs(7)) << "a service that goes takes its instances along";
  EXPECT_THAT(taker.lines("cart"), ElementsAre("x came "));
}

TEST(PageNotes, ATerminatingPodIsLeavingNotJustUnready) {
  PodFactsPtr pods = facts({});
  Taker taker({.pods = [&] { return pods; }});
  taker.take(state_of({{"web", {pod("a"), pod("b"), pod("c")}}}));
  pods = facts({{"a", {.leaving = true}}, {"b", {.why = "the disk is full"}}});
  taker.take(state_of({{"web", {pod("a", false), pod("b", false), pod("c")}}}));
  EXPECT_THAT(taker.lines("web"), ElementsAre("a leaving ", "b not ready the disk is full"));
  // The two sources may change in either order.
  pods = facts({{"a", {.leaving = true}}, {"c", {.leaving = true}}});
  taker.take(state_of({{"web", {pod("a", false), pod("b"), pod("c")}}}));
  taker.take(state_of({{"web", {pod("a", false), pod("b"), pod("c", false)}}}));
  EXPECT_THAT(taker.lines("web"), SizeIs(4));
  EXPECT_EQ(taker.lines("web").front(), "c leaving ");
}

// -------------------------------------------------------------------------------------- notes

TEST(PageNotes, AreStableWithoutChanges) {
  std::vector<Problem> problems{{.kind = "namespace", .where = "shop", .reason = "forbidden"}};
  const PodFactsPtr pods = facts({});
  Taker taker({.problems = [&] { return problems; }, .pods = [&] { return pods; }});
  const Notes* first = &taker.take(state_of({}));
  EXPECT_EQ(&taker.take(state_of({{"web", {}}})), first);
  problems.front().reason = "no route";
  const Notes& second = taker.take(state_of({}));
  EXPECT_EQ(second.problems->front().reason, "no route");
  EXPECT_EQ(second.pods, pods);
}

TEST(PageNotes, HaveABoundedNumberOfProblems) {
  Taker taker({.problems = [] { return std::vector<Problem>(kMostProblems + 5); }});
  const Notes& notes = taker.take(state_of({}));
  EXPECT_THAT(*notes.problems, SizeIs(kMostProblems));
  EXPECT_EQ(notes.problems_in_all, kMostProblems + 5);
}

// ---------------------------------------------------------------------------- malformed pods

TEST(ClusterNotes, ShowAMalformedPodUntilItIsRepairedOrGone) {
  const apiserver::Server server;
  const rest::Client client(server.client_config());
  const auto pods = client.resource(k8s::core::v1::Pod::kResource, "default");
  const auto write_metadata = [&](const std::string& name, const std::string& json) {
    pods.patch(name, rest::PatchType::kMerge,
               fmt::format(R"({{"metadata": {{"annotations":
        {{"kratos-service-metadata": "{}"}}}}}})",
                           json));
  };
  for (const char* name : {"web-1", "web-2"}) {
    pods.create(api::Object::parse(fmt::format(
        R"({{"metadata": {{"name": "{}", "labels": {{"kratos-service-app": "web"}}}},
             "spec": {{"containers": [{{"name": "main", "image": "i"}}]}}}})",
        name)));
    write_metadata(name, "oops" + std::string(1000, ' '));
  }
  Flags flags;
  flags.ns = "default";
  ClusterNotes notes(client, flags);
  const auto registry = std::make_shared<registry::kratos::Registry>(client, registry::Options());
  const NoteSources sources = notes.sources(registry);
  const auto shown = [&] {
    std::vector<std::string> out;
    for (const auto& problem : sources.problems()) {
      if (problem.kind == "malformed") out.push_back(problem.where + " " + problem.service);
    }
    return out;
  };
  EXPECT_THAT(registry->services(), ElementsAre("web"));
  EXPECT_TRUE(eventually([&] {
    return shown() == std::vector<std::string>{"default/web-1 web", "default/web-2 web"};
  }));
  EXPECT_LT(sources.problems().front().reason.size(), 400u);
  EXPECT_GT(sources.problems().front().at.time_since_epoch().count(), 0);
  // Neither pod is an instance: they have no address.
  write_metadata("web-1", "{}");
  EXPECT_TRUE(eventually([&] { return shown().size() == 1; }));
  EXPECT_THAT(shown(), ElementsAre("default/web-2 web"));
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  pods.remove("web-2", now);
  EXPECT_TRUE(eventually([&] { return shown().empty(); }));
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd
