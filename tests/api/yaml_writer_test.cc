// JSON as YAML.
#include "lookout/api/detail/yaml_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/api/error.h"
#include "lookout/base/yaml_tree.h"
#include "tests/support/nested.h"

namespace lookout::api::detail {
namespace {

TEST(YamlWriter, WritesLikeGo) {
  EXPECT_EQ(to_yaml(R"({"b":[],"a":{},"c":[{"x":1,"y":[2,3]}],"d":null,"e":1.5})"),
            "a: {}\nb: []\nc:\n- x: 1\n  \"y\":\n  - 2\n  - 3\nd: null\ne: 1.5\n");
  EXPECT_EQ(
      to_yaml(R"({"a":"","b":"yes","c":"1","d":"1.2.3.4","e":"x: y","f":"- x","g":"it's # so"})"),
      "a: \"\"\nb: \"yes\"\nc: \"1\"\nd: 1.2.3.4\ne: 'x: y'\nf: '- x'\ng: 'it''s # so'\n");
  EXPECT_EQ(to_yaml(R"({"a":"2026-01-01T00:00:00Z","b":"tab\there","c":" lead","d":"x\n\ny"})"),
            "a: \"2026-01-01T00:00:00Z\"\nb: \"tab\\there\"\nc: ' lead'\nd: |-\n  x\n\n  y\n");
}

TEST(YamlWriter, WritesTextsThatBeginWithBlanksLikeGo) {
  EXPECT_EQ(to_yaml(R"({"a":"  lead\nx","b":["\none\n"," two\n\n"],"c":{"d":"\n"}})"),
            "a: |2-\n    lead\n  x\nb:\n- |2\n\n  one\n- |2+\n   two\n\nc:\n  d: |2+\n\n");
}

// Go's reader treats some of them as line breaks, and rejects a document with the others.
TEST(YamlWriter, EscapesCharactersThatYamlReadersRejectOrFold) {
  EXPECT_EQ(to_yaml("{\"a\":\"x\u0085y\",\"b\":\"\u2028\u2029\",\"c\":\"\ufeff\",\"d\":"
                    "\"\u007f\u0080\u009f\"}"),
            R"(a: "x\u0085y"
b: "\u2028\u2029"
c: "\uFEFF"
d: "\u007F\u0080\u009F"
)");
  EXPECT_EQ(to_yaml("{\"x\u0085y\":\"\uffff\"}"), R"("x\u0085y": "\uFFFF"
)");
  EXPECT_EQ(to_yaml("{\"a\":\"one\\ntwo\u0085\"}"), R"(a: "one\ntwo\u0085"
)") << "in no block, either";
  // Their neighbours are plain.
  EXPECT_EQ(to_yaml("{\"a\":\"\u00a0\u2027\u202a\ufefe\ufffd\u20ac\"}"),
            "a: \u00a0\u2027\u202a\ufefe\ufffd\u20ac\n");
}

// YAML 1.1 readers interpret it as a time, also with a lower-case t.
TEST(YamlWriter, QuotesTimes) {
  for (const std::string text :
       {"2001-12-14T21:59:43Z", "2001-12-14t21:59:43Z", "2001-12-14 21:59:43", "2001-12-14"}) {
    EXPECT_EQ(to_yaml(R"({"a":")" + text + R"("})"), "a: \"" + text + "\"\n");
  }
}

// Most uids and many hashes begin with a digit.
TEST(YamlWriter, QuotesNumbersOnly) {
  for (const std::string text :
       {"1c4de77d-c60e-4f2a-afe0-c245a6302291", "12345678-1234-4567-8901-123456789012", "1a2b3c",
        "0x", "1e", "1e5-2", "12-34", "2001-ab-cd", "10.0.0.1/8", "1d", "0xfg", "-1c", "1h30m"}) {
    EXPECT_EQ(to_yaml(R"({"a":")" + text + R"("})"), "a: " + text + "\n");
  }
  for (const std::string text :
       {"12", "-1", "+1", "1_000", "017", "0o17", "0b11", "0xaf", "0_xaf", "1.5", "1.", ".5", "1e5",
        "1E+5", "1.5e-3", "12:30:45", "2001-12-14"}) {
    EXPECT_EQ(to_yaml(R"({"a":")" + text + R"("})"), "a: \"" + text + "\"\n");
  }
}

TEST(YamlWriter, RoundTrips) {
  for (
      const std::string json : {
          R"({"a":["x","-","--- x",": ","#","a: b","a #b","'","\"","\\","[","@x","%x"," ","x "]})",
          R"({"a":["true","on","No","null","~","0x1F","1e3","+1",".5",".inf","=","<<","12:30"]})",
          R"({"a":[true,false,null,0,-1,1.5,{},[],[[]],[{}],[[1,2],[3]],[{"b":[{"c":1}]}]]})",
          R"({"a":"  one\ntwo","b":["\none\n"," two\n\n",["\n"]],"c":{"d":{"e":"\n\n x"}}})",
          R"({"a":"one\ntwo\n","b":"one\n","c":"one\n\n","d":"\none","e":"one \ntwo","f":" x\ny"})",
          R"({"":"no name","1":"a number","yes":"a word","a: b":"a colon","x\ny":"a line"})",
          R"({"a":"tab\t","b":"bell\u0007","c":"Grüße","d":"#!/bin/sh\nset -e\n\n  exit 1\n"})",
          "{\"a\":\"x\u0085y\u2028\u2029\ufeff\u007f\u0081\",\"b\":\"one\\ntwo\u2028three\\n\"}",
          R"("text")",
          R"([1,"2"])",
      }) {
    const std::string yaml = to_yaml(json);
    const std::string back = to_json(YamlTree(yaml).root());
    EXPECT_EQ(to_yaml(back), yaml) << yaml;
    // Apart from the order of members, the texts are equal.
    EXPECT_EQ(back.size(), json.size()) << back << "\n" << yaml;
  }
}

TEST(YamlWriter, NumbersAreTheNearestDoubles) {
  EXPECT_EQ(to_yaml(R"({"a":123456789.12345679,"b":2.225073858507201e-308})"),
            "a: 123456789.12345679\nb: 2.225073858507201e-308\n");
}

TEST(YamlWriter, RejectsDeepNesting) {
  using lookout::test::nested_json;
  EXPECT_NO_THROW(to_yaml(nested_json(1000, "[", "]")));
  EXPECT_NO_THROW(to_yaml(nested_json(1000, R"({"a":)", "}")));
  EXPECT_THROW(to_yaml(nested_json(1001, "[", "]")), Error);
  EXPECT_THROW(to_yaml(nested_json(10000, R"({"a":)", "}")), Error);
}

TEST(YamlWriter, ErrorsOmitTheText) {
  try {
    to_yaml(R"({"password": secret})");
    FAIL() << "it was taken";
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace lookout::api::detail
