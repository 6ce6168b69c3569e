// lookout new. scripts/test.sh install builds a generated project.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/base/yaml_tree.h"
#include "lookout/k8s/apiextensions/v1.h"
#include "lookout/rest/client.h"
#include "tests/cmd/cmd_fixture.h"

namespace lookout::cmd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class New : public CommandTest {
 protected:
  New() : CommandTest("new") {}

  std::string folder(const std::string& name = "project") const { return (dir_ / name).string(); }
  std::string text(const std::string& file) const {
    return test::read_file(std::filesystem::path(folder()) / file);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder())) {
      if (each.is_regular_file())
        out.push_back(std::filesystem::relative(each.path(), folder()).string());
    }
    std::ranges::sort(out);
    return out;
  }

  test::TempDir dir_;
};

TEST_F(New, CreatesAProjectAndPrintsTheNextSteps) {
  const auto result =
      run({"website", "--kind", "Website", "--group", "example.com", "-o", folder()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, AllOf(HasSubstr("A controller of websites.example.com."),
                                   HasSubstr("cmake -B build"), HasSubstr("config/crd.yaml")));
  EXPECT_THAT(files(),
              testing::ElementsAre(".dockerignore", ".gitignore", "CMakeLists.txt", "Dockerfile",
                                   "README.md", "config/crd.yaml", "config/deployment.yaml",
                                   "config/rbac.yaml", "config/sample.yaml", "src/main.cc",
                                   "src/website_controller.cc", "src/website_controller.h",
                                   "tests/website_controller_test.cc"));
  for (const std::string& file : files()) {
    EXPECT_THAT(text(file), AllOf(Not(HasSubstr("{{")), Not(testing::IsEmpty()))) << file;
    EXPECT_THAT(result.output, HasSubstr(file));
  }
}

TEST_F(New, DerivesNames) {
  ASSERT_EQ(
      run({"my-proxy", "--kind", "HTTPProxy", "--group", "net.acme.org", "-o", folder()}).status,
      0);
  EXPECT_THAT(text("src/http_proxy_controller.cc"),
              AllOf(HasSubstr("namespace my_proxy {"), HasSubstr("v1::HTTPProxy")));
  EXPECT_THAT(text("config/crd.yaml"), HasSubstr("name: httpproxies.net.acme.org"));
  EXPECT_THAT(text("config/deployment.yaml"), HasSubstr("namespace: my-proxy-system"));
}

TEST_F(New, DerivesTheKindFromTheName) {
  ASSERT_EQ(run({"class", "-o", folder()}).status, 0);
  EXPECT_THAT(text("src/class_controller.cc"),
              AllOf(HasSubstr("namespace class_ {"), HasSubstr("v1::Class")));
  EXPECT_THAT(text("config/crd.yaml"), HasSubstr("name: classes.example.com"));
}

TEST_F(New, TheNamespaceIsUnusedByLookoutAndTheCLibrary) {
  for (const char* name : {"controller", "k8s", "time", "sync", "stdin", "v1"}) {
    const auto result = run({name, "--kind", "Site", "-o", folder(name)});
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto project = std::filesystem::path(folder(name));
    const std::string ns = std::string(name) + "_";
    EXPECT_THAT(test::read_file(project / "src/main.cc"), HasSubstr(ns + "::add_site_controller"));
    EXPECT_THAT(test::read_file(project / "CMakeLists.txt"), HasSubstr("NAMESPACE " + ns + " "));
  }
}

TEST_F(New, AServerAcceptsItsManifests) {
  ASSERT_EQ(run({"website", "-o", folder()}).status, 0);
  const apiserver::Server server;
  const rest::Client client{server.client_config()};
  const auto object = [&](const std::string& file) {
    return api::Object::parse(to_json(YamlTree(text(file)).root()));
  };
  client.resource<k8s::apiextensions::v1::CustomResourceDefinition>().create(
      object("config/crd.yaml"));
  const auto made = client.resource({"example.com", "v1", "Website", "websites", true}, "default")
                        .create(object("config/sample.yaml"));
  EXPECT_EQ(made["spec"]["replicas"].as_int(), 2);
  client.resource({"", "v1", "Namespace", "namespaces", false}).create(object("config/rbac.yaml"));
  client.resource({"apps", "v1", "Deployment", "deployments", true}, "website-system")
      .create(object("config/deployment.yaml"));
}

TEST_F(New, WritesNothingIntoANonEmptyFolder) {
  std::filesystem::create_directories(folder());
  test::write_file(std::filesystem::path(folder()) / "README.md", "mine");
  const auto result = run({"website", "-o", folder()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.errors, HasSubstr("already exists: nothing was written"));
  EXPECT_THAT(files(), testing::ElementsAre("README.md"));
  EXPECT_EQ(text("README.md"), "mine");
}

// (A file size limit simulates a full disk.)
TEST_F(New, RemovesAProjectThatCannotBeWritten) {
  const auto try_to = [&] {
    return environment_.run("/bin/sh", {"-c", R"(trap '' XFSZ; ulimit -f 1; exec "$@")", "sh",
                                        test::lookout_program(), "new", "website", "-o", folder()});
  };
  EXPECT_THAT(try_to().errors, HasSubstr("cannot write "));
  EXPECT_FALSE(std::filesystem::exists(folder()));
  std::filesystem::create_directories(folder());
  EXPECT_EQ(try_to().status, 1);
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

TEST_F(New, AcceptsAnEmptyFolder) {
  std::filesystem::create_directories(folder());
  EXPECT_EQ(run({"website", "-o", folder()}).status, 0);
}

TEST_F(New, NamesTheInvalidName) {
  const auto wrong = [&](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.end(), {"-o", folder()});
    const auto result = run(arguments);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.errors, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder()));
  };
  wrong({"Website"}, "\"Website\" is not a valid name for a project");
  wrong({"1site"}, "\"1site\" is not a valid name for a project");
  wrong({"site-"}, "\"site-\" is not a valid name for a project");
  wrong({"../site"}, "\"../site\" is not a valid name for a project");
  wrong({std::string(60, 'a')}, "is not a valid name for a project: up to 47");
  wrong({"site", "--kind", "site"}, "\"site\" is not a valid kind");
  wrong({"site", "--kind", "My_Site"}, "\"My_Site\" is not a valid kind");
  wrong({"site", "--group", "Example.com"}, "\"Example.com\" is no API group");
  wrong({"site", "--group", "example"}, "\"example\" is no API group");
  wrong({"site", "--group", "sites.k8s.io"}, "reserved for the Kubernetes project");
  wrong({}, "name is required");
}

}  // namespace
}  // namespace lookout::cmd
