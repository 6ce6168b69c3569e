// lookout logs.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/cmd/cmd_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/http_server.h"

namespace lookout::cmd {
namespace {

/// A server with the pod `web` of two containers, one of which logs.
class Logs : public testing::Test {
 protected:
  test::ProgramResult logs(const std::vector<std::string>& arguments) const {
    return environment_.lookout({"--server", server_.url(), "logs"}, arguments);
  }
  /// The paths of the requested logs since the last call.
  std::vector<std::string> requested() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requested_, {});
  }
  test::HttpResponse answer(const std::string& target) {
    if (target.find("/log") != std::string::npos) {
      const std::lock_guard lock(mutex_);
      requested_.push_back(target);
      return {.body = "one\ntwo \x1b[1m\xff\nthree", .content_type = "text/plain"};
    }
    if (target.ends_with("/pods/web")) {
      return {.body = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":)"
                      R"({"containers":[{"name":"main"},{"name":"sidecar"}]}})"};
    }
    if (target.ends_with("/pods/noted")) {
      return {.body = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"noted","annotations":)"
                      R"({"kubectl.kubernetes.io/default-container":"sidecar"}},"spec":)"
                      R"({"containers":[{"name":"main"},{"name":"sidecar"}]}})"};
    }
    return {.status = 404,
            .body = R"({"apiVersion":"v1","kind":"Status","status":"Failure","code":404,"reason":)"
                    R"("NotFound","message":"pods \"none\" not found"})"};
  }

  test::ProgramEnvironment environment_;
  std::mutex mutex_;
  std::vector<std::string> requested_;
  test::HttpServer server_{test::HttpServer::answering(
      [this](const test::HttpRequest& request) { return answer(request.target); })};
};

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Logs, PrintsTheLogOfTheFirstContainer) {
  const auto result = logs({"web"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.output, "one\ntwo \x1b[1m\xff\nthree\n");
  EXPECT_EQ(result.errors, "lookout: container main of main, sidecar; -c chooses another one\n");
  EXPECT_THAT(requested(), ElementsAre("/api/v1/namespaces/default/pods/web/log?container=main"));
  const auto noted = logs({"pod/noted", "-n", "shop"});
  EXPECT_EQ(noted.errors, "");
  EXPECT_THAT(requested(), ElementsAre("/api/v1/namespaces/shop/pods/noted/log?container=sidecar"));
}

TEST_F(Logs, AsksForAPartOfTheLog) {
  const auto result =
      logs({"web", "-c", "sidecar", "-f", "-p", "--tail=5", "--since=90s", "--timestamps"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  const auto paths = requested();
  ASSERT_EQ(paths.size(), 1u);
  for (const char* const part : {"container=sidecar", "follow=true", "previous=true", "tailLines=5",
                                 "sinceSeconds=90", "timestamps=true"})
    EXPECT_THAT(paths[0], HasSubstr(part));
  EXPECT_EQ(logs({"web", "-c=main", "--tail=-1"}).status, 0);
  EXPECT_THAT(requested(), ElementsAre("/api/v1/namespaces/default/pods/web/log?container=main"));
}

TEST_F(Logs, ReportsAMissingPod) {
  const auto result = logs({"none"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.errors, "lookout: pods \"none\" not found\n");
}

}  // namespace
}  // namespace lookout::cmd
