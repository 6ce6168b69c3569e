// The encrypted resources and their keys.
#include "lookout/apiserver/encryption.h"

#include "tests/support/matchers.h"
#include "tests/support/text_case.h"

namespace lookout::apiserver {
namespace {

// 16 and 32 bytes.
constexpr const char* kShort = "c2VjcmV0IGlzIHNlY3VyZQ==";
constexpr const char* kLong = "dGhpcyBpcyBwYXNzd29yZCBmb3IgYWVzZ2NtIDI1Ni4=";

std::string entry(const std::string& resources, const std::string& providers) {
  return "- resources: [" + resources + "]\n  providers:\n" + providers;
}
std::string aesgcm(const std::string& name, const std::string& secret) {
  return "  - aesgcm:\n      keys:\n      - name: " + name + "\n        secret: " + secret + "\n";
}
std::string config(const std::string& entries) {
  return "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n" +
         entries;
}

std::string written(const Encryption& encryption, std::string_view place) {
  const auto transformer = encryption(place);
  return transformer == nullptr ? "plain" : transformer->to_storage("value", "/key");
}

TEST(EncryptionConfigTest, TheFirstProviderWritesAndAllRead) {
  const Encryption before = read_encryption_config(
      config(entry("secrets", aesgcm("old", kShort) + "  - identity: {}\n")));
  const Encryption after = read_encryption_config(
      config(entry("secrets", aesgcm("new", kLong) + aesgcm("old", kShort))));
  const std::string stored = written(before, "secrets");
  EXPECT_THAT(stored, StartsWith("k8s:enc:aesgcm:v1:old:"));
  EXPECT_THAT(written(after, "secrets"), StartsWith("k8s:enc:aesgcm:v1:new:"));
  const auto read = after("secrets")->from_storage(stored, "/key");
  EXPECT_EQ(read.value, "value");
  EXPECT_TRUE(read.stale);
  EXPECT_TRUE(before("secrets")->from_storage("plain", "/key").stale);
}

struct Coverage {
  const char* name;
  const char* resources;
  const char* place;
  bool encrypted;
};
void PrintTo(const Coverage& coverage, std::ostream* out) { *out << coverage.name; }

class CoverageTest : public testing::TestWithParam<Coverage> {};

TEST_P(CoverageTest, IsByResourceAndGroup) {
  const Encryption encryption =
      read_encryption_config(config(entry(GetParam().resources, aesgcm("k", kShort))));
  EXPECT_EQ(written(encryption, GetParam().place) != "plain", GetParam().encrypted);
}

INSTANTIATE_TEST_SUITE_P(
    Encryption, CoverageTest,
    testing::Values(Coverage{"Core", "secrets", "secrets", true},
                    Coverage{"Other", "secrets", "configmaps", false},
                    Coverage{"OneOfSeveral", "secrets, configmaps", "configmaps", true},
                    Coverage{"Group", "deployments.apps", "deployments", true},
                    Coverage{"WithoutItsGroup", "deployments", "deployments", false},
                    Coverage{"HistoricalPlace", "nodes", "minions", true},
                    Coverage{"Services", "services", "services/specs", true},
                    Coverage{"AllOfCore", "'*.'", "pods", true},
                    Coverage{"AllOfCoreOnly", "'*.'", "deployments", false},
                    Coverage{"AllOfAGroup", "'*.apps'", "statefulsets", true},
                    Coverage{"Everything", "'*.*'", "stable.example.com/crontabs", true},
                    Coverage{"CustomResource", "crontabs.stable.example.com",
                             "stable.example.com/crontabs", true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(EncryptionConfigTest, TheFirstEntryThatCoversAResourceDecides) {
  const Encryption encryption = read_encryption_config(
      config(entry("configmaps", "  - identity: {}\n") + entry("'*.*'", aesgcm("k", kShort))));
  EXPECT_EQ(written(encryption, "configmaps"), "value");
  EXPECT_THAT(written(encryption, "secrets"), StartsWith("k8s:enc:aesgcm:v1:k:"));
}

using Wrong = lookout::test::NamedTextCase;

class WrongEncryptionConfigTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongEncryptionConfigTest, IsRejectedWithoutQuotingKeys) {
  try {
    read_encryption_config(GetParam().text);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().expected));
    EXPECT_THAT(e.what(), Not(HasSubstr("c2Vj")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Encryption, WrongEncryptionConfigTest,
    testing::Values(
        Wrong{"NoYaml", "a: [", "line"},
        Wrong{"OtherKind", "kind: Pod", "not an EncryptionConfiguration"},
        Wrong{"NoResources", "kind: EncryptionConfiguration", "resources is missing"},
        Wrong{"NoProviders", config("- resources: [secrets]\n"), "providers is missing"},
        Wrong{"EmptyProviders", config("- resources: [secrets]\n  providers: []\n"), "no provider"},
        Wrong{"OtherProvider", config(entry("secrets", "  - kms: {}\n")),
              "only the providers aesgcm and identity"},
        Wrong{"NoKeys", config(entry("secrets", "  - aesgcm: {keys: []}\n")), "no keys"},
        Wrong{"NoBase64", config(entry("secrets", aesgcm("k", "c2Vj!"))), "not base64"},
        Wrong{"ShortKey", config(entry("secrets", aesgcm("k", "c2Vj"))), "16, 24 or 32 bytes"},
        Wrong{"NameWithColon", config(entry("secrets", aesgcm("'a:b'", kShort))),
              "contain a colon"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(EncryptionConfigTest, AMissingFileIsNamed) {
  try {
    load_encryption_config("/none.yaml");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("/none.yaml"));
  }
}

}  // namespace
}  // namespace lookout::apiserver
