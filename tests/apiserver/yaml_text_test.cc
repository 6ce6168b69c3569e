// Objects as YAML.
#include <gtest/gtest.h>

#include <string>

#include "apiserver/endpoints/yaml.h"

namespace lookout::apiserver {
namespace {

TEST(YamlText, ReadsBackAsWhatItWas) {
  const auto yaml = [](const std::string& text) {
    json::Document document;
    document.Parse(text.c_str());
    return endpoints::to_yaml(document);
  };
  EXPECT_EQ(yaml(R"({"b":[],"a":{},"c":[{"x":1,"y":[2,3]}],"d":null,"e":1.5})"),
            "a: {}\nb: []\nc:\n- x: 1\n  \"y\":\n  - 2\n  - 3\nd: null\ne: 1.5\n");
  EXPECT_EQ(
      yaml(R"({"a":"","b":"yes","c":"1","d":"1.2.3.4","e":"x: y","f":"- x","g":"it's # so"})"),
      "a: \"\"\nb: \"yes\"\nc: \"1\"\nd: 1.2.3.4\ne: 'x: y'\nf: '- x'\ng: 'it''s # so'\n");
  EXPECT_EQ(yaml(R"({"a":"2026-01-01T00:00:00Z","b":"tab\there","c":" lead","d":"x\n\ny"})"),
            "a: \"2026-01-01T00:00:00Z\"\nb: \"tab\\there\"\nc: ' lead'\nd: |-\n  x\n\n  y\n");
}

}  // namespace
}  // namespace lookout::apiserver
