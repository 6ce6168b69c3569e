// The page's notes: history, problems, the state of pods.
#include "cmd/registry/page/notes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cmd/registry/page/clip.h"
#include "cmd/registry/page/cluster_notes.h"
#include "cmd/registry/page/malformed_pods.h"
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

TEST(MalformedPods, AreKeptUntilAReader) {
  MalformedPods pods;
  pods.report({"shop", "b", "annotation x: no object"});
  pods.report({"shop", "a", "annotation x: no object"});
  pods.report({"shop", "b", "annotation x: no string"});
  const auto problems = pods.problems();
  ASSERT_THAT(problems, SizeIs(2));
  EXPECT_EQ(problems[0].where, "shop/a");
  EXPECT_EQ(problems[1].reason, "annotation x: no string");
  EXPECT_EQ(problems[1].kind, "malformed");
  pods.forget("shop/a");
  EXPECT_THAT(pods.problems(), SizeIs(1));
  pods.forget_gone([](const std::string& pod, const std::string&) {
    return MalformedPods::Sight{.there = pod != "shop/b", .current = true};
  });
  EXPECT_THAT(pods.problems(), IsEmpty());
}

TEST(MalformedPods, AreKeptUntilTheFollowerIsCurrent) {
  MalformedPods pods;
  MalformedPods::Sight sight;
  const auto look = [&] {
    pods.forget_gone([&](const std::string& pod, const std::string& version) {
      EXPECT_EQ(pod, "shop/a");
      EXPECT_EQ(version, "7");
      return sight;
    });
    return pods.problems().size();
  };
  pods.report({"shop", "a", "annotation x: no object", "7"});
  EXPECT_EQ(look(), 1u);
  // An earlier pod of this name, which is then deleted.
  sight.there = true;
  EXPECT_EQ(look(), 1u);
  sight.there = false;
  EXPECT_EQ(look(), 1u);
  sight = {.there = true, .current = true};
  EXPECT_EQ(look(), 1u);
  // (A server that has lost its state starts with version 1 again.)
  sight = {.there = false, .current = false};
  EXPECT_EQ(look(), 0u);

  pods.report({"shop", "a", "annotation x: no object", "7"});
  EXPECT_EQ(look(), 1u) << "each report is about another version";
  sight = {.there = false, .current = true};
  EXPECT_EQ(look(), 0u);
}

TEST(MalformedPods, AreBounded) {
  MalformedPods pods;
  for (std::size_t i = 0; i < MalformedPods::kMost + 10; ++i) {
    pods.report({"shop", std::to_string(i), std::string(100'000, 'x')});
  }
  EXPECT_THAT(pods.problems(), SizeIs(MalformedPods::kMost));
  EXPECT_LT(pods.problems().front().reason.size(), 400u);
}

TEST(ClusterNotes, ShowAMalformedPodUntilItIsGone) {
  const apiserver::Server server;
  const rest::Client client(server.client_config());
  const auto pods = client.resource(k8s::core::v1::Pod::kResource, "default");
  const auto create = [&](const std::string& name) {
    const api::Object made = pods.create(api::Object::parse(fmt::format(
        R"({{"metadata": {{"name": "{}", "labels": {{"kratos-service-app": "web"}}}},
             "spec": {{"containers": [{{"name": "main", "image": "i"}}]}}}})",
        name)));
    return std::string(made.resource_version());
  };
  Flags flags;
  flags.ns = "default";
  ClusterNotes notes(client, flags);
  const NoteSources sources =
      notes.sources(std::make_shared<registry::kratos::Registry>(client, registry::Options()));
  const auto shown = [&] {
    std::vector<std::string> out;
    for (const auto& problem : sources.problems()) {
      if (problem.kind == "malformed") out.push_back(problem.where);
    }
    return out;
  };
  // Once this pod is known to the follower, missing pods are known to be absent.
  create("leaving");
  pods.patch("leaving", rest::PatchType::kMerge,
             R"({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "X"}]}})",
             {}, "status");
  ASSERT_TRUE(eventually([&] { return sources.pods()->contains("default/leaving"); }));

  notes.report({"default", "later", "annotation x: no object", "9223372036854775807"});
  EXPECT_THAT(shown(), ElementsAre("default/later")) << "the registry may be ahead";
  notes.report({"default", "earlier", "annotation x: no object", "1"});
  EXPECT_THAT(shown(), ElementsAre("default/later")) << "it has gone before it was followed";

  notes.report({"default", "web-1", "annotation x: no object", create("web-1")});
  EXPECT_THAT(shown(), ElementsAre("default/later", "default/web-1"));
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  pods.remove("web-1", now);
  EXPECT_TRUE(eventually([&] { return shown().size() == 1; }));
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd
