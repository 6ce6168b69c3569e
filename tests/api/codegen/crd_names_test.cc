#include "api/codegen/crd_names.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/text_case.h"

namespace lookout::codegen {
namespace {

TEST(CrdNames, FieldsBecomeAccessors) {
  const lookout::test::TextCase cases[] = {
      {"cronSpec", "cron_spec"},
      {"clusterIPs", "cluster_ips"},
      {"$ref", "dollar_ref"},
      {"x-kubernetes-thing", "x_kubernetes_thing"},
      {"a--b__c", "a_b_c"},
      {"2fa", "field_2fa"},
      {"", "field"},
      {"--", "field"},
      {"class", "class_"},
      {"co_await", "co_await_"},
      {"typeof", "typeof_"},
      {"template", "template_"},
  };
  for (const auto& c : cases) EXPECT_EQ(member_name(c.text), c.expected) << c.text;
}

TEST(CrdNames, ValuesBecomeConstants) {
  const lookout::test::TextCase cases[] = {
      {"Always", "kAlways"}, {"if-not-present", "kIfNotPresent"},
      {"5m", "k5m"},         {"", "kEmpty"},
      {"!=", "kNotEqual"},   {"-1", "kMinus1"},
  };
  for (const auto& c : cases) EXPECT_EQ(enumerator_name(c.text), c.expected) << c.text;
  EXPECT_EQ(enumerator_name(std::int64_t{-7}), "kMinus7");
}

TEST(CrdNames, NamesAreUnique) {
  NameScope scope({"api"});
  EXPECT_EQ(scope.claim("api"), "api_2");
  EXPECT_EQ(scope.claim("x"), "x");
  EXPECT_EQ(scope.claim("x"), "x_2");
  // All derived names must be free as well.
  const auto with_draft = [](const std::string& name) {
    return std::set<std::string>{name + "Draft"};
  };
  EXPECT_EQ(scope.claim("SpecDraft"), "SpecDraft");
  EXPECT_EQ(scope.claim("Spec", with_draft), "Spec_2");
}

TEST(CrdNames, NamespacesAreValidNames) {
  EXPECT_TRUE(is_namespace("acme::apis"));
  for (const char* wrong : {"", "::acme", "acme::", "acme:apis", "1st", "new", "a b", "a-b"})
    EXPECT_FALSE(is_namespace(wrong)) << wrong;
  EXPECT_EQ(namespace_name("cert-manager"), "cert_manager");
  EXPECT_EQ(namespace_name("default"), "default_");
  EXPECT_EQ(namespace_name("a--b"), "a_b") << "two underscores belong to the implementation";
  EXPECT_EQ(namespace_name("2fa"), "g2fa");
}

TEST(CrdNames, ANamespaceIsUnusedByLookoutAndTheCLibrary) {
  for (const char* taken :
       {"std",  "lookout", "controller", "k8s",    "rest",   "api",    "apiserver",
        "sync", "clock",   "daemon",     "access", "time",   "signal", "index",
        "link", "listen",  "select",     "random", "system", "stdin",  "log",
        "abs",  "wcwidth", "main",       "testing"}) {
    EXPECT_EQ(namespace_name(taken), std::string(taken) + "_");
  }
  EXPECT_EQ(namespace_name("clock-gettime"), "clock_gettime_");
  EXPECT_EQ(namespace_name("dev-t"), "dev_t_");
  for (const char* free : {"v1", "stable", "website", "times_", "cron", "shop"})
    EXPECT_EQ(namespace_name(free), free);
}

TEST(CrdNames, LiteralsHoldAnyText) {
  EXPECT_EQ(cpp_literal("a\"b\\c"), R"("a\"b\\c")");
  // A digit after an escape is not part of it.
  EXPECT_EQ(cpp_literal("\n1"), R"("\0121")");
  EXPECT_EQ(cpp_literal("a?b???"), R"("a?b?\?\?")") << "trigraphs";
}

}  // namespace
}  // namespace lookout::codegen
