// lookout registry.
#include <rapidjson/document.h>

#include <csignal>

#include "tests/cmd/cmd_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd {
namespace {

using test::eventually;

constexpr const char* kUserKey =
    "/dubbo/com.example.User/providers/dubbo%3A%2F%2F10.0.0.1%3A20000%2FUser%3Fversion%3D1.0";

rapidjson::Document parse(const std::string& json) {
  rapidjson::Document out;
  out.Parse(json.c_str());
  EXPECT_FALSE(out.HasParseError()) << json;
  return out;
}

class RegistryCmd : public CmdTest {
 protected:
  /// A long-running registry command, with one registered instance of "web".
  test::Process start_with_one_instance(std::vector<std::string> arguments,
                                        const std::filesystem::path& log) {
    run_pod("web-1", "10.0.0.1");
    EXPECT_EQ(registry({"register", "web", "--pod", "web-1"}).status, 0);
    arguments.insert(arguments.begin(), {"--server", server_.url(), "registry"});
    return environment_.start(test::lookout_program(), arguments, log);
  }

  /// A running pod, with a kubelet's status.
  void run_pod(const std::string& name, const std::string& ip, bool ready = true) const {
    create("pods", "default",
           R"({"metadata":{"name":")" + name +
               R"(","labels":{"topology.kubernetes.io/zone":"zone-a"}},
                  "spec":{"containers":[{"name":"m","image":"i","ports":[{"containerPort":80}]}]}})");
    set_status(name, ip, ready);
  }
  void set_status(const std::string& name, const std::string& ip, bool ready) const {
    client_.resource(kPods, "default")
        .patch(name, rest::PatchType::kMerge,
               R"({"status":{"phase":"Running","podIP":")" + ip +
                   R"(","conditions":[{"type":"Ready","status":")" + (ready ? "True" : "False") +
                   R"("}]}})",
               {}, "status");
  }
  test::ProgramResult registry(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "registry");
    return lookout(arguments);
  }
};

TEST_F(RegistryCmd, RegistersFindsAndDeregistersAKratosService) {
  run_pod("web-1", "10.0.0.1");
  run_pod("web-2", "10.0.0.2", false);
  auto result = registry({"register", "web", "--pod", "web-1", "--id", "1", "--service-version",
                          "v3.5.0", "--metadata", "weight=5", "--endpoint", "http://0.0.0.0:80"});
  EXPECT_EQ(result.output, "web registered on default/web-1\n") << result.errors;
  EXPECT_EQ(registry({"register", "web", "--pod", "web-2"}).status, 0);

  result = registry({"ls"});
  EXPECT_EQ(result.output,
            "SERVICE   INSTANCES   READY   VERSIONS   ZONES\n"
            "web       2           1       v3.5.0     zone-a\n");
  result = registry({"get", "web"});
  EXPECT_EQ(result.output,
            "POD             ID    VERSION   ZONE     READY   ENDPOINTS            METADATA\n"
            "default/web-1   1     v3.5.0    zone-a   true    http://10.0.0.1:80   weight=5\n");
  EXPECT_THAT(registry({"get", "web", "--include-unready"}).output,
              HasSubstr("default/web-2   <none>   <none>    zone-a   false   TCP://10.0.0.2:80"));

  const auto json = parse(registry({"get", "web", "-o", "json"}).output);
  EXPECT_STREQ(json["service"].GetString(), "web");
  EXPECT_TRUE(json["live"].GetBool());
  ASSERT_EQ(json["instances"].Size(), 1u);
  const auto& instance = json["instances"][0];
  EXPECT_STREQ(instance["id"].GetString(), "1");
  EXPECT_STREQ(instance["metadata"]["weight"].GetString(), "5");
  EXPECT_STREQ(instance["endpoints"][0].GetString(), "http://10.0.0.1:80");
  EXPECT_EQ(parse(registry({"ls", "-o", "json"}).output)[0]["instances"].Size(), 2u);

  result = registry({"deregister", "cart", "--pod", "web-1"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("default/web-1 announces web, not cart"));
  EXPECT_EQ(registry({"deregister", "web", "--pod", "web-1"}).output,
            "default/web-1 deregistered\n");
  EXPECT_EQ(parse(registry({"get", "web", "-o", "json"}).output)["instances"].Size(), 0u);
}

TEST_F(RegistryCmd, RegistersFindsAndDeregistersADubboService) {
  run_pod("user-1", "10.0.0.1");
  auto result = registry({"register", "--style", "dubbo", "--pod", "user-1", kUserKey});
  EXPECT_EQ(result.output, std::string(kUserKey) + " registered on default/user-1\n")
      << result.errors;
  EXPECT_THAT(registry({"ls", "--style", "dubbo"}).output,
              HasSubstr("com.example.User:1.0   1           1       1.0        zone-a\n"));
  EXPECT_THAT(registry({"get", "--style", "dubbo", "com.example.User:1.0"}).output,
              HasSubstr("default/user-1   10.0.0.1:20000   1.0       zone-a   true    "
                        "dubbo://10.0.0.1:20000   <none>\n"));
  EXPECT_THAT(registry({"get", "--style", "dubbo", "/dubbo/com.example.User"}).output,
              AllOf(StartsWith("KEY"), HasSubstr(kUserKey)));
  EXPECT_EQ(registry({"deregister", "--style", "dubbo", "--pod", "user-1", kUserKey}).status, 0);
  EXPECT_EQ(parse(registry({"get", "--style", "dubbo", "/", "-o", "json"}).output).Size(), 0u);

  // Without a key: it is built from the options.
  result = registry({"register", "com.example.Cart", "--style", "dubbo", "--pod", "user-1",
                     "--service-version", "2.0", "--metadata", "weight=200", "--endpoint",
                     "tri://10.0.0.1:50051"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(registry({"get", "--style", "dubbo", "com.example.Cart:2.0", "-o", "json"}).output,
              AllOf(HasSubstr("tri://10.0.0.1:50051"), HasSubstr("200")));
  const std::vector<std::string> taken_back = {"deregister",
                                               "com.example.Cart",
                                               "--style",
                                               "dubbo",
                                               "--pod",
                                               "user-1",
                                               "--metadata",
                                               "weight=200",
                                               "--endpoint",
                                               "tri://10.0.0.1:50051",
                                               "--service-version",
                                               "2.0"};
  EXPECT_EQ(registry(taken_back).output, "com.example.Cart deregistered from default/user-1\n");
  EXPECT_EQ(parse(registry({"get", "--style", "dubbo", "/", "-o", "json"}).output).Size(), 0u);
  EXPECT_EQ(registry(taken_back).status, 1);
}

TEST_F(RegistryCmd, ADubboEndpointMayHaveAPathAndParameters) {
  run_pod("user-1", "10.0.0.1");
  std::vector<std::string> cart = {
      "register",   "com.example.Cart",
      "--style",    "dubbo",
      "--pod",      "user-1",
      "--endpoint", "tri://10.0.0.1:50051/Cart?version=3.0&group=blue"};
  EXPECT_EQ(registry(cart).status, 0);
  EXPECT_THAT(registry({"get", "--style", "dubbo", "/dubbo", "-o", "json"}).output,
              HasSubstr("tri%3A%2F%2F10.0.0.1%3A50051%2FCart%3Fgroup%3Dblue%26interface%3D"
                        "com.example.Cart%26version%3D3.0"));
  cart[0] = "deregister";
  EXPECT_EQ(registry(cart).status, 0);
  // The option counts.
  cart[0] = "register";
  cart.insert(cart.end(), {"--service-version", "4.0"});
  EXPECT_EQ(registry(cart).status, 0);
  EXPECT_THAT(registry({"ls", "--style", "dubbo"}).output, HasSubstr("blue/com.example.Cart:4.0 "));
}

TEST_F(RegistryCmd, DeregisteringAnAbsentRecordChangesNothing) {
  run_pod("user-1", "10.0.0.1");
  const auto version = [&] {
    const api::Object object = client_.resource(kPods, "default").get("user-1");
    return std::string(object.resource_version());
  };
  std::string before = version();
  auto result = registry({"deregister", "--style", "dubbo", "--pod", "user-1", kUserKey});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("default/user-1 has no record /dubbo/"));
  EXPECT_THAT(result.errors, HasSubstr(": nothing was changed"));
  EXPECT_EQ(version(), before) << "not even its labels";
  result = registry({"register", "I", "--style", "dubbo", "--pod", "user-1", "--endpoint", "x"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(version(), before);

  EXPECT_EQ(registry({"register", "--style", "dubbo", "--pod", "user-1", kUserKey}).status, 0);
  before = version();
  result = registry(
      {"deregister", "--style", "dubbo", "--pod", "user-1", "/dubbo/com.example.User/providers"});
  EXPECT_EQ(result.status, 1) << "a key, not a prefix";
  EXPECT_EQ(version(), before);
  const char* const there = "tri://10.0.0.1:1";
  const char* const not_there = "tri://10.0.0.1:2";
  EXPECT_EQ(registry({"register", "I", "--style", "dubbo", "--pod", "user-1", "--endpoint", there})
                .status,
            0);
  result = registry({"deregister", "I", "--style", "dubbo", "--pod", "user-1", "--endpoint", there,
                     "--endpoint", not_there});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, AllOf(HasSubstr("10.0.0.1%3A2"), Not(HasSubstr("10.0.0.1%3A1")),
                                   HasSubstr("the others were removed")));
}

TEST_F(RegistryCmd, DubboRecordsThatAreNotUtf8AreReportedAndOmitted) {
  run_pod("user-1", "10.0.0.1");
  for (const char* key :
       {"/dubbo/com.example.X%FF/providers/tri%3A%2F%2F10.0.0.1%3A1%2FX",
        "/dubbo/com.example.User/providers/tri%3A%2F%2F10.0.0.1%3A2%2FX%3Fzone%3D%25FF"}) {
    EXPECT_EQ(registry({"register", "--style", "dubbo", "--pod", "user-1", key}).status, 0);
  }
  const auto result = registry({"ls", "--style", "dubbo", "-o", "json"});
  EXPECT_EQ(result.output, "[]\n");
  EXPECT_THAT(result.errors,
              AllOf(HasSubstr("is not the interface of a provider: it is not UTF-8 text"),
                    HasSubstr("its escapes do not stand for UTF-8 text")));
}

TEST_F(RegistryCmd, ReportsWhyNothingIsFound) {
  auto result = registry({"ls"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("found in the namespace default. -A looks in all"));

  create("pods", "default", pod("web-0", ""));
  run_pod("web-1", "10.0.0.1", false);
  EXPECT_EQ(registry({"register", "web", "--pod", "web-0"}).status, 0);
  EXPECT_EQ(registry({"register", "web", "--pod", "web-1"}).status, 0);
  EXPECT_EQ(registry({"get", "web"}).errors,
            "No instances of web found. It is announced by pods that cannot serve:\n"
            "  default/web-0: its phase is Pending, not Running\n"
            "  default/web-1: it is not ready (--include-unready shows it)\n");
  EXPECT_EQ(registry({"get", "wbe"}).errors, "No instances of wbe found: did you mean web?\n");
  EXPECT_THAT(registry({"get", "other", "-A"}).errors, HasSubstr("`lookout registry ls -A`"));
}

TEST_F(RegistryCmd, ReportsMalformedAnnouncements) {
  run_pod("web-1", "10.0.0.1");
  EXPECT_EQ(registry({"register", "web", "--pod", "web-1"}).status, 0);
  client_.resource(kPods, "default")
      .patch("web-1", rest::PatchType::kMerge,
             R"({"metadata":{"annotations":{"kratos-service-metadata":"{oops"}}})");
  for (int i = 0; i < 10; ++i) {
    const auto result = registry(i % 2 == 0 ? std::vector<std::string>{"ls"}
                                            : std::vector<std::string>{"get", "web"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.errors, HasSubstr("lookout: left out default/web-1: annotation kratos-"));
  }
}

TEST_F(RegistryCmd, EscapesControlCharactersOfPods) {
  run_pod("web-1", "10.0.0.1");
  EXPECT_EQ(registry({"register", "web", "--pod", "web-1", "--metadata", "a=\x1b[2J"}).status, 0);
  const auto result = registry({"get", "web"});
  EXPECT_THAT(result.output, AllOf(HasSubstr("a=?[2J"), Not(HasSubstr("\x1b"))));
}

TEST_F(RegistryCmd, EscapesControlCharactersOfServicesAndErrors) {
  run_pod("user-1", "10.0.0.1");
  EXPECT_EQ(
      registry({"register", "--style", "dubbo", "--pod", "user-1",
                "/dubbo/com.example.%1B%5B2J/providers/dubbo%3A%2F%2F10.0.0.1%3A20000%2FUser"})
          .status,
      0);
  EXPECT_THAT(registry({"ls", "--style", "dubbo"}).output,
              AllOf(HasSubstr("com.example.?[2J   1"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(registry({"get", "--style", "dubbo", "com.example.[2J"}).errors,
            "No instances of com.example.[2J found: did you mean com.example.?[2J?\n");

  run_pod("web-1", "10.0.0.2");
  EXPECT_EQ(registry({"register", "web", "--pod", "web-1"}).status, 0);
  client_.resource(kPods, "default")
      .patch("web-1", rest::PatchType::kMerge,
             R"({"metadata":{"annotations":{"kratos-service-metadata":"{\"\\u001b[2J\":5}"}}})");
  EXPECT_THAT(registry({"ls"}).errors, AllOf(HasSubstr(R"(the value of "\x1b[2J" is not a string)"),
                                             Not(HasSubstr("\x1b"))));
}

struct WrongCall {
  std::vector<std::string> arguments;
  int status;
  std::string message;
};
void PrintTo(const WrongCall& wrong, std::ostream* out) {
  *out << testing::PrintToString(wrong.arguments);
}
class WrongRegistryCmd : public RegistryCmd, public testing::WithParamInterface<WrongCall> {};

TEST_P(WrongRegistryCmd, ReportsTheError) {
  run_pod("web-1", "10.0.0.1");
  environment_.set("HOSTNAME", "");
  const auto result = registry(GetParam().arguments);
  EXPECT_EQ(result.status, GetParam().status);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    , WrongRegistryCmd,
    testing::Values(
        WrongCall{{}, 2, "One of register, deregister, get, ls, watch, serve and xds"},
        WrongCall{{"lst"}, 2, "has no command \"lst\": did you mean \"ls\"?"},
        WrongCall{{"get"}, 2, "NAME is required"},
        WrongCall{{"ls", "--style", "consul"}, 2, "kratos"},
        WrongCall{{"register", "web", "--style", "services"}, 2, "kratos"},
        WrongCall{{"ls", "-A", "-n", "shop"}, 2, "choose one of them"},
        WrongCall{{"ls", "-l", "=x"}, 2, "-l: selector"},
        WrongCall{{"register", "web", "--pod", "web-1", "--metadata", "oops"}, 2, "not KEY=VALUE"},
        WrongCall{{"register", "web", "--pod", "web-1", "--value", "x"}, 2, "only --style dubbo"},
        WrongCall{{"register", "/k", "--style", "dubbo", "--id", "1"}, 2, "only --style kratos"},
        WrongCall{
            {"register", "/k", "--style", "dubbo", "--metadata", "a=b"}, 2, "a key contains this"},
        WrongCall{{"register", "I", "--style", "dubbo", "--pod", "web-1"}, 2, "--endpoint"},
        WrongCall{{"register", "I", "--style", "dubbo", "--pod", "web-1", "--endpoint", "x"},
                  1,
                  "is not the URL of a provider"},
        WrongCall{{"deregister", "--style", "dubbo", "--pod", "web-1"}, 2, "NAME"},
        WrongCall{{"deregister", "I", "--style", "dubbo", "--pod", "web-1"}, 2, "--endpoint"},
        WrongCall{{"deregister", "/k", "--style", "dubbo", "--endpoint", "x"}, 2, "a key contains"},
        WrongCall{{"deregister", "web", "--pod", "web-1", "--endpoint", "http://h:1"},
                  2,
                  "only --style dubbo"},
        WrongCall{{"get", "--style", "dubbo", "/k", "-l", "a=b"}, 2, "--selector: keys are"},
        WrongCall{{"watch", "--style", "dubbo", "/k", "--include-unready"}, 2, "--include-unready"},
        WrongCall{{"register", "web", "--pod", "web-1", "--version", "v1"}, 2, "--version"},
        WrongCall{{"serve", "--scrape", "--style", "services"}, 2, "have pods to scrape"},
        WrongCall{{"serve", "--listen", "8002"}, 2, "is not an address such as"},
        WrongCall{{"xds", "--listen", "18000"}, 2, "is not an address such as"},
        WrongCall{{"xds", "-A", "-n", "shop"}, 2, "choose one of them"},
        WrongCall{{"register", "web"}, 1, "--pod NAME"},
        WrongCall{{"register", "web", "--pod", "nope"}, 1, "\"nope\" not found"},
        WrongCall{{"register", "bad name", "--pod", "web-1"}, 1, "label kratos-service-app"},
        WrongCall{
            {"register", "web", "--pod", "web-1", "--endpoint", "http://h"}, 1, "has no port"},
        WrongCall{
            {"serve", "--listen", "no.such.address:0"}, 2, "is not an address to listen on"}));

TEST_F(RegistryCmd, WatchPrintsEachChange) {
  const auto log = environment_.home() / "watch.log";
  auto watch = start_with_one_instance({"watch", "web", "-o", "json"}, log);
  const auto said = [&](const std::string& text) {
    return eventually([&] { return test::read_file(log).find(text) != std::string::npos; });
  };
  EXPECT_TRUE(said(R"("pod":"default/web-1")"));
  set_status("web-1", "10.0.0.1", false);
  EXPECT_TRUE(said(R"("instances":[]})"));
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.wait(), 0);
}

TEST_F(RegistryCmd, WatchSaysWhyItIsStale) {
  const auto log = environment_.home() / "watch.log";
  auto watch = start_with_one_instance({"watch", "web"}, log);
  const auto said = [&](const std::string& text) {
    return eventually([&] { return test::read_file(log).find(text) != std::string::npos; });
  };
  EXPECT_TRUE(said("web: 1 instance\n"));
  server_.stop();
  EXPECT_TRUE(said("web: 1 instance (stale since "));
  EXPECT_TRUE(said("127.0.0.1")) << "the reason";
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.wait(), 0);
}

TEST_F(RegistryCmd, ServesXdsUntilASignal) {
  const auto log = environment_.home() / "xds.log";
  auto serve = start_with_one_instance({"xds", "--listen", "127.0.0.1:0"}, log);
  if (!LOOKOUT_HAS_XDS) {
    EXPECT_EQ(serve.wait(), 1);
    EXPECT_THAT(test::read_file(log), HasSubstr("install libgrpc++-dev"));
    return;
  }
  ASSERT_TRUE(eventually([&] { return test::read_file(log).ends_with("\n"); }));
  EXPECT_THAT(test::read_file(log),
              StartsWith("Serving services (kratos, namespace default, http"));
  EXPECT_THAT(test::read_file(log), HasSubstr(") over xDS at 127.0.0.1:"));
  serve.signal(SIGTERM);
  EXPECT_EQ(serve.wait(), 0);
}

TEST(RegistryWithoutXds, NamesTheMissingPackage) {
  // In a folder without the xDS program, like a build without gRPC.
  const test::TempDir folder;
  const std::filesystem::path built = std::filesystem::path(test::lookout_program()).parent_path();
  for (const char* const program : {"lookout", "lookout-registry"})
    std::filesystem::copy_file(built / program, folder / program);
  const auto result = test::ProgramEnvironment().run(folder / "lookout", {"registry", "xds"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("install libgrpc++-dev"));
}

TEST_F(RegistryCmd, ServesAPageUntilASignal) {
  const auto log = environment_.home() / "serve.log";
  auto serve = start_with_one_instance({"serve", "--listen", "127.0.0.1:0"}, log);
  ASSERT_TRUE(eventually([&] { return test::read_file(log).ends_with("/\n"); }));
  const std::string said = test::read_file(log);
  EXPECT_THAT(said, StartsWith("Serving services (kratos, namespace default, http"));
  const std::string url = said.substr(said.rfind("http"), said.size() - said.rfind("http") - 1);
  const auto fetched = [&](const std::string& path) {
    return test::run_command({"curl", "-sS", "--noproxy", "*", url + path}).output;
  };
  EXPECT_TRUE(
      eventually([&] { return fetched("api/services").find("web-1") != std::string::npos; }));
  EXPECT_THAT(fetched(""), StartsWith("<!doctype html>"));
  serve.signal(SIGTERM);
  EXPECT_EQ(serve.wait(), 0);
}

}  // namespace
}  // namespace lookout::cmd
