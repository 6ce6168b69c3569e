#include "lookout/api/detail/json_path.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/api/object.h"

namespace lookout::api::detail {
namespace {

struct PathCase {
  const char* path;
  const char* found;
};

class JsonPaths : public testing::TestWithParam<PathCase> {};

TEST_P(JsonPaths, EqualKubernetes) {
  const Object root =
      Object::parse(R"({"a":{"b.c":1,"d":[10,20,30]},"l":[{"n":"x","v":1},{"n":"y","v":2}]})");
  const auto path = JsonPath::parse(GetParam().path);
  if (GetParam().found == nullptr) {
    EXPECT_FALSE(path);
    return;
  }
  ASSERT_TRUE(path);
  std::string found;
  for (const Value value : path->find(root.body()))
    found += (found.empty() ? "" : " ") + value.to_json();
  EXPECT_EQ(found, GetParam().found);
}

INSTANTIATE_TEST_SUITE_P(
    Api, JsonPaths,
    testing::Values(
        PathCase{".a.d", "[10,20,30]"}, PathCase{".a.b\\.c", "1"}, PathCase{".a['b.c']", "1"},
        PathCase{".a.d[1]", "20"}, PathCase{".a.d[-1]", "30"}, PathCase{".a.d[0:2]", "10 20"},
        PathCase{".a.d[::2]", "10 30"}, PathCase{".a.d[*]", "10 20 30"},
        PathCase{".a.d[0,2]", "10 30"}, PathCase{".a.d[ 0, 1:3 ]", "10 20 30"},
        PathCase{".a.d[0,7]", "10"}, PathCase{".l[*]['n','v']", R"("x" "y" 1 2)"},
        PathCase{".l[0]['v', \"n\"]", R"(1 "x")"}, PathCase{"['a.d']", "[10,20,30]"},
        PathCase{"['a.d','l'][0]", R"(10 {"n":"x","v":1})"}, PathCase{".a['b\\.c']", "1"},
        PathCase{".a['nothing.there','b.c']", "1"}, PathCase{".a.d[0,", nullptr},
        PathCase{".a.d[0,]", nullptr}, PathCase{".a.d[0 1]", nullptr}, PathCase{".a.d[7]", ""},
        PathCase{".a.d[9223372036854775807]", ""}, PathCase{".a.d[1::9223372036854775807]", "20"},
        PathCase{".nothing.there", ""}, PathCase{".l[*].n", R"("x" "y")"},
        PathCase{".l[?(@.n==\"y\")].v", "2"}, PathCase{".l[?(@.v<2)].n", R"("x")"},
        PathCase{".l[?(@.v>=2)].n", R"("y")"}, PathCase{".l[?(@.n!='x')].v", "2"},
        PathCase{".l[?(@.w)].v", ""}, PathCase{"..v", "1 2"}, PathCase{"$.a.d[0]", "10"},
        PathCase{"a.d[0]", "10"}, PathCase{".a[", nullptr}, PathCase{".a.d[x]", nullptr},
        PathCase{".l[?(@.n==)]", nullptr}, PathCase{".a..", nullptr}));

// As in client-go, a dot in quotes separates names, unless it has a backslash before it.
TEST(JsonPathQuotes, ContainAPath) {
  const Object root = Object::parse(R"({"b.c":1,"b":{"c":2},"d.e":{"f":3},"d":{"e":[4,5]}})");
  const auto found = [&](const char* path) {
    std::string out;
    for (const Value value : JsonPath::parse(path).value().find(root.body()))
      out += value.to_json() + " ";
    return out;
  };
  EXPECT_EQ(found("['b.c']"), "2 ");
  EXPECT_EQ(found("['b\\.c']"), "1 ");
  EXPECT_EQ(found("['d.e'][1]"), "5 ");
  EXPECT_EQ(found("['d\\.e'].f"), "3 ");
  EXPECT_EQ(found("['b.c','b\\.c']"), "2 1 ");
}

}  // namespace
}  // namespace lookout::api::detail
