// lookout bench: checks the measurements, not the performance.
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cmd/cmd_fixture.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::cmd {
namespace {

using testing::Gt;

class Bench : public CommandTest {
 protected:
  Bench() : CommandTest("bench") {}

  /// Runs a benchmark that must succeed; returns its output.
  api::Object measure(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "json"});
    const auto result = run(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.status == 0 ? api::Object::parse(result.output) : api::Object();
  }
};

TEST_F(Bench, SyncsEachTypeOfObjectByListAndAsAStream) {
  for (const char* resource : {"pods", "nodes", "endpointslices", "configmaps", "crontabs"}) {
    for (const char* mode : {"list", "watchlist"}) {
      const auto figures =
          measure({"sync", "--objects", "120", "--resource", resource, "--mode", mode});
      EXPECT_EQ(figures["objects"].as_int(), 120) << resource << " " << mode;
      EXPECT_EQ(figures["mode"].as_string(), mode);
      EXPECT_THAT(figures["vm_hwm"].as_int(), Gt(0));
    }
  }
}

TEST_F(Bench, KeepsTheSelectedFields) {
  const auto bytes = [&](const char* keep) {
    return lookout::test::held(measure({"sync", "--objects", "50", "--keep", keep}))["object_bytes"]
        .as_int();
  };
  EXPECT_THAT(bytes("all"), Gt(bytes("unmanaged")));
  EXPECT_THAT(bytes("unmanaged"), Gt(bytes("registry")));
}

TEST_F(Bench, SeesEveryEvent) {
  for (const char* rate : {"0", "2000"}) {
    const auto figures = measure({"events", "--objects", "30", "--events", "500", "--rate", rate});
    EXPECT_EQ(figures["events"].as_int(), 500);
    EXPECT_EQ(figures["objects"].as_int(), 30) << "changes, no new objects";
  }
}

TEST_F(Bench, RunsAControllerOverAllObjects) {
  const auto figures =
      measure({"controller", "--objects", "60", "--rate", "100", "--for", "200ms"});
  EXPECT_EQ(figures["objects"].as_int(), 60);
  for (const char* name : {"noop_per_s", "noop_coroutine_per_s", "patch_per_s", "patch_cpu_us",
                           "latency_p50_ms", "latency_p99_ms"}) {
    EXPECT_THAT(figures[name].as_double(), Gt(0)) << name;
  }
  EXPECT_EQ(figures["waiting"].as_int(), 60);
  EXPECT_THAT(figures["waiting_threads"].as_int(), Gt(0));
}

TEST_F(Bench, RunsAFleetWithFaults) {
  const auto lines = [&](const char* policies, const char* faults) {
    const auto result = run({"fleet", "--instances", "6", "--callers", "3", "--rate", "300",
                             "--for", "300ms", "--waves", "1", "--faulty", "1", "-o", "json",
                             "--policies", policies, "--fault", faults});
    EXPECT_EQ(result.status, 0) << result.output << result.errors;
    std::map<std::string, api::Object> out;
    std::istringstream text(result.output);
    for (std::string line; std::getline(text, line);) {
      auto figures = api::Object::parse(line);
      out.emplace(figures["fault"].as_string(), std::move(figures));
    }
    return out;
  };
  const auto ours = lines("lookout", "rolling,kill,freeze");
  ASSERT_EQ(ours.size(), 3u);
  for (const auto& [fault, figures] : ours) {
    EXPECT_THAT(figures["calls"].as_int(), Gt(20)) << fault;
    EXPECT_EQ(figures["failed"].as_int(), 0) << fault;
    EXPECT_EQ(figures["holds"].as_string(), "yes") << fault;
  }
  EXPECT_THAT(ours.at("kill")["further_attempts"].as_int(), Gt(0));
  EXPECT_EQ(ours.at("freeze")["timed_out_once_caller"].as_int(), 1);
  const auto kratos = lines("kratos", "kill");
  ASSERT_EQ(kratos.size(), 1u);
  EXPECT_EQ(kratos.at("kill")["further_attempts"].as_int(), 0);
  EXPECT_THAT(kratos.at("kill")["failed"].as_int(), Gt(0));
}

TEST_F(Bench, AFleetRejectsUnknownFaults) {
  const auto result = run({"fleet", "--fault", "rain"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors, testing::HasSubstr("rain"));
}

TEST_F(Bench, LoadsAServerOnEtcdWithoutLostEvents) {
  if (test::find_program("etcd").empty()) GTEST_SKIP() << "*** no etcd here ***";
  for (const char* resource : {"pods", "configmaps"}) {
    const auto figures = measure({"storage", "--watchers", "3", "--rate", "200", "--for", "1s",
                                  "--objects", "5", "--resource", resource});
    EXPECT_THAT(figures["writes"].as_int(), Gt(0));
    // An etcd without enough CPU time rejects some writes.
    EXPECT_LT(figures["writes_refused"].as_int(), figures["writes"].as_int());
    EXPECT_EQ(figures["events"].as_int(), 3 * figures["writes"].as_int());
    EXPECT_EQ(figures["events_missing"].as_int(), 0);
    EXPECT_THAT(figures["server_vm_hwm"].as_int(), Gt(0));
    EXPECT_THAT(figures["server_threads"].as_int(), Gt(0));
  }
  const auto nobody =
      run({"storage", "--etcd-endpoints", "http://127.0.0.1:" + std::to_string(test::free_port())});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("the server has exited"));
}

TEST_F(Bench, GivesEachOfManyInformersItsOwnNamespace) {
  const auto figures = measure({"informers", "--informers", "20", "--objects", "3"});
  EXPECT_EQ(figures["informers"].as_int(), 20);
  EXPECT_EQ(figures["objects"].as_int(), 60);
}

TEST_F(Bench, MeasuresTheStore) {
  EXPECT_EQ(lookout::test::held(measure({"store", "--objects", "1000"}))["objects"].as_int(), 1000);
}

TEST_F(Bench, AnUnreachableServerIsAnErrorAtOnce) {
  const std::string nobody = "http://127.0.0.1:" + std::to_string(test::free_port());
  for (const char* job : {"sync", "events", "informers", "soak"}) {
    const auto result = run({job, "--server", nobody});
    EXPECT_EQ(result.status, 1) << job;
    EXPECT_THAT(result.errors, HasSubstr("is the server running?")) << job;
    EXPECT_EQ(test::lines(result.errors).size(), 2u) << result.errors;
  }
}

TEST_F(Bench, SeparatesNamesFromFigures) {
  const auto result = run({"store", "--objects", "200"});
  EXPECT_EQ(result.status, 0) << result.errors;
  const auto lines = test::lines(result.output);
  EXPECT_THAT(lines,
              testing::Contains(testing::StartsWith("update_beside_list_undisturbed_p9999_ns")));
  EXPECT_THAT(lines, testing::Each(testing::MatchesRegex("[a-z0-9_]+  +[^ ]+")));
}

TEST_F(Bench, RejectsUnknownArguments) {
  EXPECT_EQ(run({}).status, 2);
  EXPECT_EQ(run({"speed"}).status, 2);
  const auto result = run({"sync", "--keep", "half"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors, HasSubstr("half"));
}

}  // namespace
}  // namespace lookout::cmd
