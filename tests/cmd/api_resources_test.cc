// lookout api-resources.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/cmd/cmd_fixture.h"

namespace lookout::cmd {
namespace {

using testing::Contains;
using testing::MatchesRegex;
using testing::Not;

class ApiResources : public CmdTest {
 protected:
  std::vector<std::string> shown(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "api-resources");
    const auto result = lookout(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return test::lines(result.output);
  }
};

TEST_F(ApiResources, AreShownAsWithKubectl) {
  const auto lines = shown({});
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines[0], MatchesRegex("NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND"));
  EXPECT_THAT(lines, Contains(MatchesRegex("pods +po +v1 +true +Pod")));
  EXPECT_THAT(lines, Contains(MatchesRegex("nodes +no +v1 +false +Node")));
  EXPECT_THAT(lines, Contains(MatchesRegex("deployments +deploy +apps/v1 +true +Deployment")));
  // In the preferred version only.
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const std::string& line) { return line.starts_with("horizontalpod"); }),
            1);
  EXPECT_THAT(shown({"-o", "wide"}),
              Contains(MatchesRegex("pods +po +v1 +true +Pod +[a-z,]*list,[a-z,]* +all")));
}

TEST_F(ApiResources, AreSelected) {
  EXPECT_THAT(shown({"-o", "name", "--api-group=apps"}),
              testing::IsSupersetOf({"deployments.apps", "replicasets.apps"}));
  EXPECT_THAT(shown({"-o", "name", "--api-group=apps"}), Not(Contains("pods")));
  EXPECT_THAT(shown({"-o", "name", "--api-group", ""}), Contains("pods"));
  EXPECT_THAT(shown({"-o", "name", "--namespaced"}), Not(Contains("nodes")));
  EXPECT_THAT(shown({"-o", "name", "--namespaced=false"}), Not(Contains("pods")));
  EXPECT_THAT(shown({"-o", "name", "--namespaced=false"}), Contains("nodes"));
  EXPECT_THAT(shown({"--no-headers"}), Not(Contains(MatchesRegex("NAME .*"))));
  EXPECT_EQ(lookout({"api-resources", "--api-group=nothing"}).errors, "No resources found.\n");
}

}  // namespace
}  // namespace lookout::cmd
