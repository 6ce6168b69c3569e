// YamlTree. (Limits and hostile documents: tests/rest/kubeconfig_test.cc.)
#include "lookout/base/yaml_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lookout {
namespace {

std::string json_of(std::string_view yaml) { return to_json(YamlTree(yaml).root()); }

TEST(YamlTreeTest, EscapesAreTheCharactersThatYamlNames) {
  EXPECT_EQ(json_of(R"("\0\a\b\t\n\v\f\r\e")"), R"("\u0000\u0007\b\t\n\u000B\f\r\u001B")");
  EXPECT_EQ(json_of(R"("\ \"\/\\")"), R"(" \"/\\")");
  EXPECT_EQ(json_of(R"("\x41\xe9\u20ac\U0001F600")"), "\"A\u00e9\u20ac\U0001F600\"");
  EXPECT_EQ(json_of(R"("\L\P")"), "\"\u2028\u2029\"");
}

// yaml-cpp makes one byte of each, which is no UTF-8.
TEST(YamlTreeTest, ANextLineAndANoBreakSpaceAreUtf8) {
  EXPECT_EQ(json_of(R"(a: "x\Ny")"), "{\"a\":\"x\u0085y\"}");
  EXPECT_EQ(json_of(R"(a: "\_")"), "{\"a\":\"\u00a0\"}");
  EXPECT_EQ(json_of("\"\u00e9\\N\\_\u20ac\\N\": 1"), "{\"\u00e9\u0085\u00a0\u20ac\u0085\":1}");
  EXPECT_EQ(json_of("a: 'x\\Ny'"), R"({"a":"x\\Ny"})") << "no escape between single quotes";
}

}  // namespace
}  // namespace lookout
