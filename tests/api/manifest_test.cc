#include "lookout/api/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/thrown.h"

namespace lookout::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(std::string_view text) {
  std::vector<std::string> out;
  for (const Object& object : parse_manifests(text))
    out.push_back(std::string(object.kind()) + " " + object.key());
  return out;
}

std::string refusal(std::string_view text) {
  return lookout::test::refusal<DecodeError>([&] { parse_manifests(text); });
}

TEST(ManifestTest, ReadsDocumentsListsAndJson) {
  EXPECT_THAT(names("# only a comment\n---\n"
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"
                    "---\n"
                    "apiVersion: v1\nkind: List\nitems:\n"
                    "- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n"
                    "---\n"
                    "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: c}\n"),
              ElementsAre("ConfigMap shop/a", "Secret b", "Pod c"));
  EXPECT_THAT(names(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}
                       {"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"x-"}})"),
              ElementsAre("Node n", "Namespace "));
  EXPECT_THAT(names(""), IsEmpty());
}

TEST(ManifestTest, ErrorsNameTheLineAndQuoteNothing) {
  EXPECT_EQ(refusal("kind: Secret\nmetadata: {name: hidden}\n"),
            "line 1: the object needs apiVersion and kind");
  EXPECT_EQ(refusal("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n\n- hidden\n"),
            "line 6: this is not an object");
  const std::string broken = refusal("apiVersion: v1\nkind: 'hidden\n");
  EXPECT_THAT(broken, testing::StartsWith("line "));
  EXPECT_THAT(broken, testing::Not(testing::HasSubstr("hidden")));
}

TEST(ManifestTest, ContinuesAfterAMalformedObject) {
  std::vector<std::string> seen;
  read_manifests(
      "kind: Pod\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n'x\n---\n"
      "apiVersion: v1\nkind: Pod\nmetadata: {name: unseen}\n",
      {[&](const Object& object, int line) {
         seen.push_back(std::to_string(line) + " " + object.key());
       },
       [&](const std::string&, int line) { seen.push_back(std::to_string(line) + " error"); }});
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_THAT(std::vector(seen.begin(), seen.begin() + 2), ElementsAre("1 error", "3 a"));
  EXPECT_THAT(seen[2], testing::EndsWith("error"));
}

}  // namespace
}  // namespace lookout::api
