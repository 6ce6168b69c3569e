// Behaviour of all commands: help, wrong usage, unreachable servers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cmd/connection.h"
#include "lookout/apiserver/server.h"
#include "lookout/rest/error.h"
#include "tests/cmd/program.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"
#include "tests/support/sanitizers.h"

namespace lookout::cmd {
namespace {

using Arguments = std::vector<std::string>;

class Usage : public testing::Test {
 protected:
  test::ProgramResult lookout(const Arguments& arguments) const {
    return environment_.run(test::lookout_program(), arguments);
  }
  test::ProgramEnvironment environment_;
};

TEST_F(Usage, HelpOfEveryCommandHasExamples) {
  for (const std::string line : {"--help",
                                 "serve --help",
                                 "get --help",
                                 "watch -h",
                                 "apply -h",
                                 "delete -h",
                                 "logs -h",
                                 "api-resources -h",
                                 "wait -h",
                                 "demo --help",
                                 "registry --help",
                                 "registry register -h",
                                 "registry deregister -h",
                                 "registry get -h",
                                 "registry ls -h",
                                 "registry watch -h",
                                 "registry serve -h",
                                 "registry xds -h",
                                 "bench -h",
                                 "bench sync -h",
                                 "bench events -h",
                                 "bench informers -h",
                                 "bench soak -h",
                                 "bench store -h",
                                 "bench storage -h",
                                 "bench controller -h",
                                 "bench fleet -h",
                                 "bench server -h"}) {
    std::istringstream words(line);
    const Arguments arguments{std::istream_iterator<std::string>(words), {}};
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0);
    std::string command = arguments[0].starts_with('-') ? "" : arguments[0];
    if (command == "bench" && !arguments[1].starts_with('-')) command += " " + arguments[1];
    EXPECT_THAT(result.output, HasSubstr("Examples:\n  lookout " + command)) << line;
    EXPECT_EQ(result.errors, "");
  }
}

TEST_F(Usage, HelpIsAlsoACommand) {
  EXPECT_EQ(lookout({"help"}).output, lookout({"--help"}).output);
  EXPECT_EQ(lookout({"help", "get"}).output, lookout({"get", "--help"}).output);
  EXPECT_EQ(lookout({"help", "registry", "ls"}).output,
            lookout({"registry", "ls", "--help"}).output);
  EXPECT_EQ(lookout({"help"}).status, 0);
}

TEST_F(Usage, HelpNamesTheDefaultServer) {
  EXPECT_THAT(lookout({"--help"}).output,
              AllOf(HasSubstr("http://127.0.0.1:8001"),
                    HasSubstr("read ~/.kube/config only for --context")));
}

TEST_F(Usage, HelpOfCommandsPointsToTheOptionsOfAllCommands) {
  for (const Arguments& arguments :
       {Arguments{"get", "--help"}, Arguments{"watch", "--help"}, Arguments{"apply", "--help"},
        Arguments{"delete", "--help"}, Arguments{"registry", "ls", "--help"}}) {
    EXPECT_THAT(lookout(arguments).output, HasSubstr("--server, --kubeconfig, --context and other "
                                                     "options of all commands: lookout --help\n"))
        << arguments[0];
  }
  // These have no --server.
  for (const char* const command : {"serve", "generate", "new", "demo"})
    EXPECT_THAT(lookout({command, "--help"}).output, Not(HasSubstr("options of all commands")));
}

TEST_F(Usage, ErrorsNameTheHelpOfTheCommand) {
  EXPECT_THAT(lookout({"--nonsense"}).errors,
              testing::EndsWith("\nRun `lookout --help` for more information.\n"));
  EXPECT_THAT(lookout({"get", "pods", "--nonsense"}).errors,
              testing::EndsWith("\nRun `lookout get --help` for more information.\n"));
  EXPECT_THAT(lookout({"registry", "get"}).errors,
              testing::EndsWith("\nRun `lookout registry get --help` for more information.\n"));
}

// Scripts depend on these flags.
TEST_F(Usage, EveryFlagExists) {
  const std::map<std::string, Arguments> flags = {
      {"serve",
       {"--listen", "--storage", "--etcd-endpoints", "--etcd-prefix", "--tls-cert", "--tls-key",
        "--client-ca", "--token-file", "--authorization-mode", "--bootstrap",
        "--service-account-key-file", "--service-account-issuer", "--max-requests-per-user",
        "--max-requests-per-address", "--max-connections-per-address", "--audit-log-path",
        "--audit-level", "--write-kubeconfig"}},
      {"get",
       {"RESOURCE[.GROUP]",
        "NAME",
        "-n,",
        "-A,",
        "-l,",
        "--field-selector",
        "-o,",
        "table",
        "wide",
        "json",
        "yaml",
        "name",
        "jsonpath",
        "custom-columns",
        "-w,",
        "--watch-only",
        "--no-headers",
        "--sort-by",
        "-f,",
        "-L,",
        "--show-labels",
        "--show-kind",
        "--ignore-not-found",
        "--chunk-size",
        "--raw"}},
      {"watch",
       {"RESOURCE[.GROUP]", "NAME", "-n,", "-A,", "-l,", "--field-selector", "-o,", "table", "json",
        "--resync", "--exit-after-sync"}},
      {"apply",
       {"-f,", "-R,", "-o,", "--server-side", "--field-manager", "--force-conflicts", "--dry-run"}},
      {"delete",
       {"RESOURCE[.GROUP]", "NAME", "-n,", "-A,", "-l,", "--field-selector", "-f,", "--all",
        "--ignore-not-found", "--cascade", "background", "--grace-period", "--now", "--force",
        "--wait", "--timeout", "-o,"}},
      {"logs",
       {"POD", "-n,", "-c,", "-f,", "--follow", "-p,", "--previous", "--tail", "--since",
        "--timestamps"}},
      {"wait",
       {"RESOURCE[.GROUP]", "NAME", "-n,", "-A,", "-l,", "-f,", "--all", "--for", "condition=NAME",
        "jsonpath=PATH", "--timeout"}},
      {"demo", {"--for"}},
  };
  for (const auto& [command, names] : flags) {
    const std::string help = lookout({command, "--help"}).output;
    for (const auto& name : names) EXPECT_THAT(help, HasSubstr(name)) << command;
  }
  const std::string help = lookout({"--help"}).output;
  for (const char* name : {"--kubeconfig", "--context", "--server", "--metrics-listen", "-v,",
                           "--log-level", "serve", "get", "watch", "demo", "Exit status"}) {
    EXPECT_THAT(help, HasSubstr(name));
  }
}

// With only `lookout` built, the error names the missing executable.
TEST_F(Usage, AMissingProgramOfACommandIsReported) {
  const std::string alone = environment_.home() / "lookout";
  std::filesystem::copy_file(test::lookout_program(), alone);
  for (const char* const command : {"bench", "registry"}) {
    const auto result = environment_.run(alone, {"-v", "info", command, "--help"});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(result.errors, "lookout: \"lookout " + std::string(command) +
                                 "\" needs the program lookout-" + command +
                                 ", which is not there: build all of Lookout (cmake --build " +
                                 "build/release), or install it\n");
  }
}

TEST_F(Usage, UnwritableOutputIsAnError) {
  for (const char* const option : {"--version", "--help"}) {
    const auto result = environment_.run(
        "sh", {"-c", R"(exec "$0" "$@" > /dev/full)", test::lookout_program(), option});
    EXPECT_EQ(result.status, 1) << option;
    EXPECT_EQ(result.errors, "lookout: standard output cannot be written\n");
  }
}

TEST_F(Usage, PrintsItsVersion) {
  const auto result = lookout({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, testing::MatchesRegex("lookout [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

/// All commands with their required arguments.
std::vector<Arguments> commands() {
  return {{"serve"},
          {"get", "pods"},
          {"watch", "pods"},
          {"apply", "-f", "a.yaml"},
          {"delete", "pods", "web"},
          {"logs", "web"},
          {"api-resources", "-o", "name"},
          {"wait", "pods", "web", "--for=delete"},
          {"demo"},
          {"registry", "register", "web"},
          {"registry", "deregister", "web"},
          {"registry", "get", "web"},
          {"registry", "ls"},
          {"registry", "watch", "web"},
          {"registry", "serve"},
          {"registry", "xds"},
          {"bench", "sync"},
          {"bench", "events"},
          {"bench", "informers"},
          {"bench", "soak"},
          {"bench", "store"},
          {"bench", "storage"},
          {"bench", "controller"},
          {"bench", "server"}};
}

TEST_F(Usage, AnUnknownOptionIsWrongUsage) {
  for (const auto& command : commands()) {
    const bool client = command[0] != "serve" && command[0] != "demo" && command[1] != "store" &&
                        command[1] != "storage" && command[1] != "controller" &&
                        !(command[0] == "bench" && command[1] == "server");
    std::vector<Arguments> wrong = {{"--version", "v1"}, {"--nonsense", "x"}};
    if (command[0] != "watch") wrong.push_back({"--metrics-listen", "127.0.0.1:0"});
    if (!client) {
      wrong.push_back({"--server", "http://127.0.0.1:1"});
      wrong.push_back({"--kubeconfig", "/none"});
      wrong.push_back({"--context", "x"});
      wrong.push_back({"--content-type", "json"});
    }
    if (command[0] != "registry") wrong.push_back({"--style", "kratos"});
    // Each one starts the program, which is slow with a sanitizer.
    if (test::kSanitized) wrong.resize(1);
    for (const auto& options : wrong) {
      for (const bool behind : {true, false}) {
        if (!behind && command[0] != "serve") continue;
        Arguments arguments = command;
        arguments.insert(behind ? arguments.end() : arguments.begin(), options.begin(),
                         options.end());
        const auto result = lookout(arguments);
        EXPECT_EQ(result.status, 2) << testing::PrintToString(arguments);
        EXPECT_EQ(result.output, "") << testing::PrintToString(arguments);
        EXPECT_NE(result.errors, "");
      }
    }
  }
}

TEST_F(Usage, ServiceVersionIsNotTheProgramsVersion) {
  const auto result = lookout({"registry", "register", "web", "--pod", "p", "--version", "v1"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("--version"));
  for (const Arguments& arguments :
       {Arguments{"--version", "--server", "http://127.0.0.1:1"},
        Arguments{"-v", "off", "--version"}, Arguments{"--version", "get"}}) {
    EXPECT_EQ(lookout(arguments).status, 2) << testing::PrintToString(arguments);
    EXPECT_EQ(lookout(arguments).output, "");
  }
}

struct WrongArguments {
  Arguments arguments;
  std::string message;
};
void PrintTo(const WrongArguments& wrong, std::ostream* out) {
  *out << testing::PrintToString(wrong.arguments);
}
class WrongUsage : public Usage, public testing::WithParamInterface<WrongArguments> {};

TEST_P(WrongUsage, EndsWithStatus2) {
  const auto result = lookout(GetParam().arguments);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Cmd, WrongUsage,
    testing::Values(
        WrongArguments{{}, "A command is required"},
        WrongArguments{{"fetch"}, "lookout has no command \"fetch\"\n"},
        WrongArguments{{"wacth", "pods"}, "did you mean \"watch\"?"},
        WrongArguments{{"create", "-f", "a.yaml"},
                       "lookout has no command \"create\": use lookout apply -f FILE\n"},
        WrongArguments{{"exec", "web", "--", "sh"},
                       "use kubectl exec, with the same --server or --kubeconfig\n"},
        WrongArguments{{"describe", "pod", "web"}, "use lookout get RESOURCE NAME -o yaml"},
        WrongArguments{{"version"}, "use lookout --version\n"},
        WrongArguments{{"get", "pods", "--token=x"},
                       "--token: belongs in a kubeconfig: use --kubeconfig and --context\n"},
        WrongArguments{{"apply", "-k", "base"},
                       "-k: use kubectl kustomize FOLDER | lookout apply -f -\n"},
        WrongArguments{{"bench", "exec"}, "lookout bench has no command \"exec\"\n"},
        WrongArguments{{"logs"}, "pod is required"},
        WrongArguments{{"logs", "deploy/web"},
                       "\"deploy/web\" is not a pod: lookout get pods shows their names\n"},
        WrongArguments{{"logs", "pod/.."}, "invalid name \"..\""},
        WrongArguments{{"bench"}, "A command of lookout bench is required"},
        WrongArguments{{"bench", "speed"}, "lookout bench has no command \"speed\"\n"},
        WrongArguments{{"bench", "stor", "--objects", "1000"}, "did you mean \"store\"?"},
        WrongArguments{{"bench", "store", "--objects", "-1"}, "--objects"},
        WrongArguments{{"bench", "store", "--objects", "0"}, "--objects"},
        WrongArguments{{"bench", "sync", "--bytes", "-1"}, "--bytes"},
        WrongArguments{{"bench", "events", "--rate", "-1"}, "--rate"},
        WrongArguments{{"bench", "events", "--events", "-1"}, "--events"},
        WrongArguments{{"bench", "informers", "--informers", "-1"}, "--informers"},
        WrongArguments{{"bench", "storage", "--rate", "-1"}, "--rate"},
        WrongArguments{{"bench", "server", "--port", "65536"}, "--port"},
        WrongArguments{{"get", "pods", "web", "-l", "app=web"},
                       "name cannot be provided when a selector is specified"},
        WrongArguments{{"get", "pods", "web", "--field-selector", "metadata.name=web"},
                       "name cannot be provided when a selector is specified"},
        WrongArguments{{"get", "pods", "-n", ".."}, "invalid namespace \"..\""},
        WrongArguments{{"get", "pods", "-n=a/b"}, "invalid namespace \"a/b\""},
        WrongArguments{{"watch", "pods", "-n=="}, "invalid namespace \"=\""},
        WrongArguments{{"apply", "-f=a.yaml", "-n", "."}, "invalid namespace \".\""},
        WrongArguments{{"delete", "pods", "web", "-n", "A"}, "invalid namespace \"A\""},
        WrongArguments{{"registry", "ls", "-n", "a_b"}, "invalid namespace \"a_b\""},
        WrongArguments{{"get", "pods", ".."}, "invalid name \"..\": may not be '..'"},
        WrongArguments{{"delete", "pods", "."}, "invalid name \".\": may not be '.'"},
        WrongArguments{{"get", "pods", ""}, "the name may not be empty"},
        WrongArguments{{"watch", "pods", ""}, "the name may not be empty"},
        WrongArguments{{"registry", "get", ""}, "the name may not be empty"},
        WrongArguments{{"registry", "watch", ""}, "the name may not be empty"},
        WrongArguments{{"registry", "deregister", ""}, "the name may not be empty"},
        WrongArguments{{"delete", "pods", "web", "--grace-period", "x"}, "--grace-period"},
        WrongArguments{{"delete", "pods", "web", "--grace-period=-1"},
                       "--grace-period: a grace period is not negative\n"},
        WrongArguments{{"delete", "pods", "web", "-o", "json"}, "json not in {name}"},
        WrongArguments{{"watch", "pods", "--metrics-listen", "foo"},
                       "--metrics-listen: \"foo\" is not an address"},
        WrongArguments{{"--nonsense"}, "--nonsense"}, WrongArguments{{"get"}, "resource"},
        WrongArguments{{"watch"}, "resource"}, WrongArguments{{"get", "pods", "-o", "xml"}, "-o"},
        WrongArguments{{"get", "pods", "-o", "go-template=x"},
                       "\"go-template\" is not table, wide, json, yaml, name, jsonpath=TEMPLATE, "
                       "custom-columns=SPEC or custom-columns-file=FILE\n"},
        WrongArguments{{"get", "pods", "-o", "custom-columns"}, "columns are missing"},
        WrongArguments{{"get", "pods", "-o", "custom-columns="}, "columns are missing"},
        WrongArguments{{"get", "pods", "-o", "custom-columns=A"},
                       "\"A\" is not a column such as NAME:.metadata.name\n"},
        WrongArguments{{"get", "pods", "-o", "custom-columns=A:.a,B:.b["},
                       "\".b[\" is not a path such as .metadata.name\n"},
        WrongArguments{{"get", "pods", "-o", "custom-columns-file=/none"},
                       "/none cannot be read\n"},
        WrongArguments{{"get", "pods", "--sort-by", "{.a"},
                       "--sort-by: \"{.a\" is not a path such as .metadata.name\n"},
        WrongArguments{{"get", "pods", "-o", "jsonpath"},
                       "a template is missing: jsonpath={.metadata.name}\n"},
        WrongArguments{{"get", "pods", "-o", "jsonpath=.kind"}, "paths belong in braces"},
        WrongArguments{{"get", "pods,"}, "\"pods,\" has an empty name"},
        WrongArguments{{"get", "pods,svc/web"}, "a name needs a single resource before it"},
        WrongArguments{{"get", "pods", "svc/web"},
                       "this names its resource already: leave out pods"},
        WrongArguments{{"get", "pods,svc", "-w"}, "a watch follows one resource"},
        WrongArguments{{"get", "pods", "-w", "-o", "wide"}, "-w: shows no wide table"},
        WrongArguments{{"get", "pods", "--raw", "/readyz"},
                       "--raw: requests a path: leave out pods"},
        WrongArguments{{"get", "pods", "-f", "a.yaml"}, "-f: the files name the objects"},
        WrongArguments{{"get", "-f", "a.yaml", "-w"}, "-f: the files name the objects"},
        WrongArguments{{"get", "--raw", "readyz"}, "--raw: needs a path such as /readyz\n"},
        WrongArguments{{"get", "pods", "--chunk-size=-1"},
                       "--chunk-size: a number of objects is not negative\n"},
        WrongArguments{{"watch", "pods,svc"}, "a watch follows one resource"},
        WrongArguments{{"watch", "pods", "a", "b"}, "a watch follows one resource"},
        WrongArguments{{"delete"}, "resource or -f is required"},
        WrongArguments{{"delete", "pods", "web", "--all"},
                       "name cannot be provided when a selector or --all is specified"},
        WrongArguments{{"delete", "pods", "--all", "-l", "a=b"},
                       "--all: cannot be combined with a selector"},
        WrongArguments{{"delete", "pods", "-A"}, "name is required"},
        WrongArguments{{"delete", "pods", "web", "-f", "web.yaml"},
                       "-f: the files name the objects"},
        WrongArguments{{"delete", "-f", "web.yaml", "--all"}, "-f: the files name the objects"},
        WrongArguments{{"delete", "pods", "web", "-R"}, "-R: needs a folder: -f FOLDER\n"},
        WrongArguments{{"apply", "-f", "a.yaml", "--server-side=false"},
                       "--server-side: lookout always applies on the server"},
        WrongArguments{{"watch", "pods", "-o", "yaml"}, "-o"},
        WrongArguments{{"get", "pods", "-A", "-n", "shop"}, "choose one of them"},
        WrongArguments{{"get", "pods", "web", "-A"}, "NAME and -A"},
        WrongArguments{{"get", "pods/web", "-A"}, "NAME and -A"},
        WrongArguments{{"get", "pods/web", "-l", "app=web"},
                       "name cannot be provided when a selector is specified"},
        WrongArguments{{"get", "pods/web", "api"}, "this names an object already: leave out api"},
        WrongArguments{{"delete", "pods/"}, "the name may not be empty"},
        WrongArguments{{"watch", "pods/.."}, "invalid name \"..\": may not be '..'"},
        WrongArguments{{"delete", "pods"}, "name is required"},
        WrongArguments{{"delete", "pods", "web", "--dry-run=client"},
                       "--dry-run: only the server checks objects: --dry-run=server"},
        WrongArguments{{"apply", "-f", "a.yaml", "--dry-run=all"},
                       "--dry-run: \"all\" is neither server nor none"},
        WrongArguments{{"wait", "pods", "web"}, "--for is required"},
        WrongArguments{{"wait", "--for=delete"}, "resource or -f is required"},
        WrongArguments{{"wait", "pods", "--for=delete"}, "name is required"},
        WrongArguments{{"wait", "pods", "web", "--for=ready"},
                       "--for: \"ready\" is not create, delete, condition=NAME[=VALUE] or "
                       "jsonpath=PATH[=VALUE]\n"},
        WrongArguments{{"wait", "pods", "web", "--for=condition="},
                       "needs a name: condition=Ready"},
        WrongArguments{{"wait", "pods", "web", "--for=jsonpath={.a"}, "is not a path"},
        WrongArguments{{"wait", "pods", "web", "--for=jsonpath={.a}="}, "needs a value"},
        WrongArguments{{"apply", "-f", "a.yaml", "--field-manager", ""},
                       "--field-manager: the name may not be empty"},
        WrongArguments{{"get", "pods", "-l", "a in (b"}, "-l"},
        WrongArguments{{"watch", "pods", "-l", "==="}, "-l"},
        WrongArguments{{"watch", "pods", "--resync", "often"}, "not a duration such as"},
        WrongArguments{{"watch", "pods", "--resync", "-1s"}, "resync"},
        WrongArguments{{"demo", "--for", "10"}, "not a duration such as"},
        WrongArguments{{"demo", "--for", "99999999999h"}, "not a duration such as"},
        WrongArguments{{"-v", "loud", "get", "pods"}, "log-level"}));

TEST_F(Usage, AnUnreachableServerIsAnErrorWithAHint) {
  const std::string nobody = "http://127.0.0.1:" + std::to_string(test::free_port());
  for (const char* command : {"get", "watch"}) {
    const auto result = lookout({command, "pods", "--server", nobody});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.output, "");
    EXPECT_THAT(result.errors, AllOf(StartsWith("lookout: "), HasSubstr(nobody.substr(7)),
                                     HasSubstr("is the server running?")));
    EXPECT_EQ(test::lines(result.errors).size(), 2u) << result.errors;
  }
}

// kubectl's users expect that it is read.
TEST(Advice, NamesTheKubeconfigInTheHomeFolder) {
  const rest::TransportError refused(rest::TransportError::Kind::kRefused, "refused");
  ConnectionFlags flags;
  flags.server = kEmbeddedServer;
  const test::TempDir home;
  const char* const before = std::getenv("HOME");
  const std::string old_home = before == nullptr ? "" : before;
  setenv("HOME", home.path().c_str(), 1);
  const std::string without = advice(refused, flags);
  std::filesystem::create_directory(home / ".kube");
  home.file(".kube/config", "");
  const std::string with = advice(refused, flags);
  setenv("HOME", old_home.c_str(), 1);
  EXPECT_THAT(without, HasSubstr("with --server, --kubeconfig or --context"));
  EXPECT_THAT(with, HasSubstr("with --server, --kubeconfig ~/.kube/config or --context"));
}

TEST_F(Usage, AResponseThatIsNotJsonIsQuoted) {
  const test::HttpServer server(
      test::HttpServer::answering([](const test::HttpRequest&) -> test::HttpResponse {
        return {.body = "<html>hello</html>", .content_type = "text/html"};
      }));
  const std::string manifest = (environment_.home() / "a.yaml").string();
  test::write_file(manifest, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
  // A table, discovery, and discovery for a valid manifest.
  for (const Arguments& arguments :
       {Arguments{"get", "pods"}, Arguments{"get", "pods", "web"}, Arguments{"get", "deploy"},
        Arguments{"apply", "-f", manifest}}) {
    Arguments all = arguments;
    all.insert(all.end(), {"--server", server.url()});
    const auto result = lookout(all);
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.errors,
                AllOf(StartsWith("lookout: get /api"), HasSubstr("the answer is not JSON"),
                      HasSubstr("it begins \"<html>hello</html>\"")))
        << testing::PrintToString(arguments);
  }
}

/// Returns a list of config maps in two pages; the second one is an error.
test::HttpResponse half_of_a_list(const test::HttpRequest& request) {
  if (request.target.find("continue=") != std::string::npos) return {.status = 410};
  return {.body = R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"more"},)"
                  R"("items":[{"metadata":{"name":"a","namespace":"default"}}]})"};
}

// Like kubectl, prints nothing before it has all pages.
TEST_F(Usage, AnIncompleteListIsNotShown) {
  const test::HttpServer server(test::HttpServer::answering(half_of_a_list));
  for (const char* const format : {"table", "json", "yaml", "name"}) {
    const auto result = lookout({"get", "cm", "-o", format, "--server", server.url()});
    EXPECT_EQ(result.status, 1) << format;
    EXPECT_EQ(result.output, "") << format;
  }
}

TEST_F(Usage, AnotherKindInATableIsAnError) {
  const test::HttpServer server(
      test::HttpServer::answering([](const test::HttpRequest&) -> test::HttpResponse {
        return {.body = R"({"kind":"APIVersions","versions":["v1"]})"};
      }));
  const auto result = lookout({"get", "cm", "--server", server.url()});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("the answer has neither a table nor configmaps"));
}

TEST_F(Usage, AServerWithoutTlsIsReported) {
  const test::HttpServer server([](test::HttpConnection& connection) {
    connection.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.wait_for_close();
  });
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const auto result = lookout({"get", "pods", "--server", "https://" + address});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors,
              HasSubstr("the server does not speak TLS: use http://" + address + "\n"));
  EXPECT_THAT(result.errors, Not(HasSubstr("kubeconfig")));
}

TEST_F(Usage, AMetricsAddressInUseIsReported) {
  const apiserver::Server server;
  const std::string address = "127.0.0.1:" + std::to_string(server.port());
  const auto result =
      lookout({"watch", "pods", "--server", server.url(), "--metrics-listen", address});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("lookout: cannot serve metrics: cannot listen on " +
                                       address + ": Address already in use\n"));
}

TEST_F(Usage, AnUnusableKubeconfigIsNamed) {
  const auto missing = lookout({"get", "pods", "--kubeconfig", "/none/config"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.errors, HasSubstr("/none/config"));
  const std::string broken = (environment_.home() / "broken").string();
  test::write_file(broken, "clusters: [");
  environment_.set("KUBECONFIG", broken);
  const auto result = lookout({"get", "pods"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr(broken));
  const auto server = lookout({"get", "pods", "--server", "gopher://example.test"});
  EXPECT_EQ(server.status, 1);
}

TEST_F(Usage, APipeGetsNoColours) {
  const std::string nobody = "http://127.0.0.1:" + std::to_string(test::free_port());
  environment_.set("TERM", "xterm-256color");
  for (const Arguments& arguments :
       {Arguments{"--help"}, Arguments{"get", "pods", "--server", nobody, "-v", "trace"},
        Arguments{"demo", "--for", "100ms", "-v", "debug"}}) {
    const auto result = lookout(arguments);
    EXPECT_THAT(result.output, Not(HasSubstr("\x1b"))) << arguments[0];
    EXPECT_THAT(result.errors, Not(HasSubstr("\x1b"))) << arguments[0];
  }
}

}  // namespace
}  // namespace lookout::cmd
