// lookout watch.
#include <fmt/format.h>

#include <csignal>
#include <map>

#include "lookout/apiserver/storage/memory.h"
#include "tests/cmd/cmd_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::cmd {
namespace {

using Lines = std::vector<std::string>;

class Watch : public CmdTest {
 protected:
  Watch() {
    create("pods", "default", pod("web", R"("app":"web")", "node-1"));
    create("pods", "default", pod("api", R"("app":"api")", "node-2"));
    create("pods", "kube-system", pod("dns", R"("app":"dns")", "node-1"));
  }

  /// Starts a watch; `says` waits for its output.
  void watch(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server_.url(), "watch"});
    log_ = dir_ / "log";
    process_.emplace(environment_.start(test::lookout_program(), arguments, log_));
  }
  Lines printed() const { return test::lines(test::read_file(log_)); }
  bool says(const std::string& text) {
    return test::eventually([&] { return test::read_file(log_).find(text) != std::string::npos; });
  }
  rest::ResourceClient pods() const { return client_.resource(kPods, "default"); }
  void label(const std::string& name, const std::string& labels) const {
    pods().patch(name, rest::PatchType::kMerge, R"({"metadata":{"labels":{)" + labels + "}}}");
  }
  /// "TYPE key", with "initial" for initial events.
  static Lines events(const std::string& output) {
    Lines out;
    for (const auto& line : test::lines(output)) {
      const auto event = api::Object::parse(line);
      out.push_back(std::string(event["type"].as_string()) + " " +
                    std::string(event["key"].as_string()) +
                    (event["initial"].as_bool() ? " initial" : ""));
    }
    return out;
  }

  test::TempDir dir_;
  std::filesystem::path log_;
  std::optional<test::Process> process_;
};

TEST_F(Watch, ShowsAGrowingTable) {
  watch({"pods", "-l", "app=web"});
  ASSERT_TRUE(says("SYNCED\n"));
  label("web", R"("x":"y")");
  ASSERT_TRUE(says("MODIFIED"));
  create("pods", "default", pod("web-2", R"("app":"web")"));
  ASSERT_TRUE(says("web-2"));
  pods().remove("web");
  ASSERT_TRUE(says("DELETED"));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait(), 0);
  // Columns keep their positions.
  const auto row = [](std::string_view event, std::string_view name, std::string_view status) {
    return MatchesRegex(
        fmt::format("{:<11}{:<31}0/1     {:<20}0          [0-9]+s", event, name, status));
  };
  EXPECT_THAT(
      printed(),
      ElementsAre(
          fmt::format("{:<11}{:<31}READY   {:<20}RESTARTS   AGE", "EVENT", "NAME", "STATUS"),
          row("ADDED", "web", "Pending"), "SYNCED", row("MODIFIED", "web", "Pending"),
          row("ADDED", "web-2", "Pending"), row("MODIFIED", "web", "Terminating"),
          row("DELETED", "web", "Terminating")));
}

// Like kubectl, without the types of events.
TEST_F(Watch, GetFollowsObjectsWithoutEvents) {
  log_ = dir_ / "log";
  process_.emplace(environment_.start(
      test::lookout_program(), {"--server", server_.url(), "get", "pods", "web", "-w"}, log_));
  ASSERT_TRUE(says("Pending"));
  pods().remove("web");
  ASSERT_TRUE(test::eventually([&] { return printed().size() >= 4; }));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait(), 0);
  EXPECT_THAT(printed(), ElementsAre(MatchesRegex("NAME +READY +STATUS +RESTARTS +AGE"),
                                     MatchesRegex("web +0/1 +Pending +0 +[0-9]+s"),
                                     MatchesRegex("web +0/1 +Terminating +0 +[0-9]+s"),
                                     MatchesRegex("web +0/1 +Terminating +0 +[0-9]+s")));
}

TEST_F(Watch, GetLeavesOutHeaders) {
  log_ = dir_ / "log";
  process_.emplace(environment_.start(
      test::lookout_program(),
      {"--server", server_.url(), "get", "pods", "web", "-w", "--no-headers", "--sort-by=.kind"},
      log_));
  ASSERT_TRUE(says("Pending"));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait(), 0);
  EXPECT_THAT(printed(), ElementsAre("lookout: warning: with -w, --sort-by is ignored",
                                     MatchesRegex("web +0/1 +Pending +0 +[0-9]+s")));
}

// The formats of `lookout get`, as with kubectl.
TEST_F(Watch, GetFollowsObjectsInOtherFormats) {
  const std::map<std::string, std::string> formats = {
      {"name", "pod/web\npod/web\n"},
      {"jsonpath={.metadata.name} {.metadata.labels.x};", "web ;web new;"},
      {"custom-columns=NAME:.metadata.name,X:.metadata.labels.x",
       fmt::format("{:<31}X\n{:<31}<none>\n{:<31}new\n", "NAME", "web", "web")},
      {"table", ""},
      {"yaml", ""},
      {"json", ""}};
  std::map<std::string, test::Process> processes;
  for (const auto& [format, output] : formats) {
    std::vector<std::string> arguments{"--server", server_.url(), "get", "pods",
                                       "web",      "-w",          "-o",  format};
    if (format == "table") arguments.emplace_back("-Lx");
    processes.emplace(format,
                      environment_.start(test::lookout_program(), arguments, dir_ / format));
  }
  const auto shown = [&](const std::string& format) { return test::read_file(dir_ / format); };
  const auto shows = [&](const std::string& format, const std::string& text) {
    return test::eventually([&] { return shown(format).find(text) != std::string::npos; });
  };
  for (const auto& [format, output] : formats) ASSERT_TRUE(shows(format, "web")) << format;
  label("web", R"("x":"new")");
  for (auto& [format, process] : processes) {
    ASSERT_TRUE(shows(format, format == "name" ? "web\npod/web" : "new")) << format;
    process.signal(SIGTERM);
    EXPECT_EQ(process.wait(), 0);
    const std::string expected = formats.at(format).empty() ? shown(format) : formats.at(format);
    EXPECT_EQ(shown(format), expected);
  }
  EXPECT_THAT(test::lines(shown("table")),
              ElementsAre(MatchesRegex("NAME +READY .* AGE +X"), MatchesRegex("web +0/1 .*s +"),
                          MatchesRegex("web +0/1 .*s +new")));
  const std::string yaml = shown("yaml");
  EXPECT_THAT(yaml, StartsWith("apiVersion: v1\n"));
  EXPECT_THAT(yaml, HasSubstr("\n---\napiVersion: v1\n"));
  EXPECT_THAT(yaml, Not(HasSubstr("managedFields")));
  EXPECT_THAT(shown("json"), StartsWith("{\n    \"apiVersion\": \"v1\",\n"));
}

TEST_F(Watch, GetShowsOnlyChanges) {
  log_ = dir_ / "log";
  process_.emplace(environment_.start(
      test::lookout_program(),
      {"--server", server_.url(), "get", "pods", "--watch-only", "--no-headers", "-o", "name"},
      log_));
  // Nothing says when it watches.
  ASSERT_TRUE(test::eventually([&] {
    label("web", R"("x":null)");
    label("web", R"("x":"y")");
    return !printed().empty();
  }));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait(), 0);
  EXPECT_THAT(printed(), Each("pod/web"));
}

TEST_F(Watch, EndsWithItsTerminal) {
  watch({"pods"});
  ASSERT_TRUE(says("SYNCED\n"));
  process_->signal(SIGHUP);
  EXPECT_EQ(process_->wait(), 0);
}

TEST_F(Watch, ShowsOneJsonObjectALine) {
  watch({"pods", "-A", "-o", "json"});
  ASSERT_TRUE(says("SYNCED"));
  label("web", R"("x":"y")");
  ASSERT_TRUE(says("MODIFIED"));
  pods().remove("web");
  ASSERT_TRUE(says("DELETED"));
  process_->signal(SIGINT);
  EXPECT_EQ(process_->wait(), 0);
  const std::string output = test::read_file(log_);
  const auto lines = test::lines(output);
  ASSERT_EQ(lines.size(), 7u);
  const auto told = events(output);
  EXPECT_THAT(Lines(told.begin(), told.begin() + 3),
              UnorderedElementsAre("ADDED default/api initial", "ADDED default/web initial",
                                   "ADDED kube-system/dns initial"));
  EXPECT_THAT(Lines(told.begin() + 3, told.end()),
              ElementsAre("SYNCED ", "MODIFIED default/web", "MODIFIED default/web",
                          "DELETED default/web"));
  const auto modified = api::Object::parse(lines[4]);
  Lines members;
  for (const auto& [name, value] : modified.body().members()) members.emplace_back(name);
  EXPECT_THAT(members, UnorderedElementsAre("type", "key", "resourceVersion", "initial", "object"));
  EXPECT_EQ(modified["object"]["metadata"]["labels"]["x"].as_string(), "y");
  EXPECT_EQ(modified["object"]["kind"].as_string(), "Pod");
  EXPECT_EQ(modified["resourceVersion"].as_string(),
            modified["object"]["metadata"]["resourceVersion"].as_string());
  EXPECT_NE(lookout::test::held(api::Object::parse(lines[3]))["resourceVersion"].as_string(), "");
}

struct WatchSelection {
  Lines flags;
  Lines events;
};
void PrintTo(const WatchSelection& selection, std::ostream* out) {
  *out << testing::PrintToString(selection.flags);
}
class WatchSelections : public Watch, public testing::WithParamInterface<WatchSelection> {};

TEST_P(WatchSelections, ShowExistingObjectsAndEnd) {
  Lines arguments{"watch", "pods", "-o", "json", "--exit-after-sync"};
  arguments.insert(arguments.end(), GetParam().flags.begin(), GetParam().flags.end());
  const auto result = lookout(arguments);
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  Lines expected;
  for (const auto& key : GetParam().events) expected.push_back("ADDED " + key + " initial");
  expected.emplace_back("SYNCED ");
  EXPECT_THAT(events(result.output), testing::UnorderedElementsAreArray(expected));
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, WatchSelections,
    testing::Values(WatchSelection{{}, {"default/api", "default/web"}},
                    WatchSelection{{"web"}, {"default/web"}}, WatchSelection{{"nobody"}, {}},
                    WatchSelection{{"-n", "kube-system"}, {"kube-system/dns"}},
                    WatchSelection{{"-A"}, {"default/api", "default/web", "kube-system/dns"}},
                    WatchSelection{{"-A", "-l", "app in (web,dns)"},
                                   {"default/web", "kube-system/dns"}},
                    WatchSelection{{"-A", "--field-selector", "spec.nodeName=node-1"},
                                   {"default/web", "kube-system/dns"}},
                    WatchSelection{{"api", "--field-selector", "spec.nodeName=node-1"}, {}}));

TEST_F(Watch, ShowsAnObjectThatLeavesTheSelectionAsDeleted) {
  watch({"pods", "-l", "app=web", "-o", "json"});
  ASSERT_TRUE(says("SYNCED"));
  label("web", R"("app":"other")");
  ASSERT_TRUE(says("DELETED"));
  label("web", R"("app":"web")");
  ASSERT_TRUE(test::eventually([&] { return printed().size() >= 4; }));
  process_->signal(SIGTERM);
  EXPECT_THAT(events(test::read_file(log_)),
              ElementsAre("ADDED default/web initial", "SYNCED ", "DELETED default/web",
                          "ADDED default/web"));
}

TEST_F(Watch, ShowsEverythingAgainAtAResync) {
  watch({"pods", "web", "-o", "json", "--resync", "1s"});
  ASSERT_TRUE(test::eventually([&] { return printed().size() >= 4; }));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait(), 0);
  const auto told = events(test::read_file(log_));
  EXPECT_THAT(Lines(told.begin(), told.begin() + 4),
              ElementsAre("ADDED default/web initial", "SYNCED ", "MODIFIED default/web",
                          "MODIFIED default/web"));
}

TEST_F(Watch, ServesMetrics) {
  const std::string address = "127.0.0.1:" + std::to_string(test::free_port());
  watch({"pods", "-A", "--metrics-listen", address});
  ASSERT_TRUE(says("SYNCED"));
  rest::Config config;
  config.server = "http://" + address;
  const rest::Client metrics(config);
  EXPECT_THAT(metrics.get_raw("/metrics"), HasSubstr("informer_stored_items{name=\"pods\"} 3"));
}

TEST_F(Watch, EndsWhenItsReaderEnds) {
  const auto result = environment_.run(
      "sh", {"-c", R"({ "$0" "$@"; echo "status $?" >&2; } | head -n 1)", test::lookout_program(),
             "--server", server_.url(), "watch", "pods", "-o", "json", "--resync", "10ms"});
  EXPECT_EQ(test::lines(result.output).size(), 1u);
  EXPECT_THAT(result.errors, HasSubstr("status "));
}

TEST_F(Watch, InitialErrorsAreReportedAtOnce) {
  const auto unknown = lookout({"watch", "podz"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("no resource \"podz\": did you mean \"pods\"?"));
  const auto field = lookout({"watch", "pods", "--field-selector", "spec.nothing=1"});
  EXPECT_EQ(field.status, 1);
  EXPECT_EQ(field.output, "");
  EXPECT_THAT(field.errors, HasSubstr("spec.nothing"));
}

TEST_F(Watch, ContinuesWhenTheServerReturns) {
  apiserver::ServerOptions options;
  options.storage = std::make_shared<apiserver::storage::MemoryBackend>();
  auto first = std::make_unique<apiserver::Server>(options);
  const rest::Client before(first->client_config());
  before.resource(kPods, "default").create(api::Object::parse(pod("old", "")));
  log_ = dir_ / "log";
  process_.emplace(environment_.start(
      test::lookout_program(),
      {"watch", "pods", "-o", "json", "-v", "off", "--server", first->url()}, log_));
  ASSERT_TRUE(says("SYNCED"));
  options.port = first->port();
  first.reset();
  std::unique_ptr<apiserver::Server> second;
  ASSERT_TRUE(test::eventually([&] {
    try {
      second = std::make_unique<apiserver::Server>(options);
    } catch (const Error&) {
      // The port may temporarily be used by an outgoing connection.
    }
    return second != nullptr;
  }));
  const rest::ResourceClient pods =
      rest::Client(second->client_config()).resource(kPods, "default");
  pods.create(api::Object::parse(pod("new", "")));
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  pods.remove("old", now);
  EXPECT_TRUE(says(R"("key":"default/new")"));
  EXPECT_TRUE(says(R"("type":"DELETED","key":"default/old")"));
  process_->signal(SIGTERM);
  EXPECT_EQ(process_->wait(), 0);
}

}  // namespace
}  // namespace lookout::cmd
