// Encryption at rest.
#include "lookout/apiserver/storage/transformer.h"

#include "lookout/base/base64.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver::storage {
namespace {

constexpr std::string_view kKey = "/registry/secrets/shop/db";

std::string hex(std::string_view digits) {
  std::string out;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return out;
}

std::string failure_of(const Transformer& transformer, std::string stored, std::string_view key) {
  try {
    transformer.from_storage(std::move(stored), key);
  } catch (const TransformError& e) {
    return e.what();
  }
  return "";
}

EncryptionKey key(const char* name, char fill, std::size_t size = 32) {
  return {name, std::string(size, fill)};
}

// The Galois/Counter Mode of Operation (McGrew, Viega), test case 4: nonce, ciphertext, tag.
TEST(AesGcmTest, DecryptsTheStandardsTestVector) {
  const auto transformer = aes_gcm_transformer(hex("feffe9928665731c6d6a8f9467308308"));
  const std::string stored =
      hex("cafebabefacedbaddecaf888"
          "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5a"
          "ac84aa051ba30b396a0aac973d58e091"
          "5bc94fbc3221a5db94fae95ae7121a47");
  const std::string context = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  EXPECT_EQ(
      transformer->from_storage(stored, context).value,
      hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf"
          "0e2449a6b525b16aedf5aa0de657ba637b39"));
}

class AesGcmSizesTest : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Keys, AesGcmSizesTest, testing::Values(16, 24, 32));

TEST_P(AesGcmSizesTest, IsDecryptedOnlyWithItsKey) {
  const auto transformer = aes_gcm_transformer(std::string(GetParam(), 'k'));
  for (const std::string& value : {std::string(), std::string("hello"), std::string(100000, 'x')}) {
    const std::string stored = transformer->to_storage(value, kKey);
    EXPECT_EQ(stored.size(), value.size() + 12 + 16);
    EXPECT_EQ(transformer->from_storage(stored, kKey).value, value);
    EXPECT_THAT(failure_of(*transformer, stored, "/registry/secrets/shop/other"),
                HasSubstr("message authentication failed"));
    std::string changed = stored;
    changed.back() = static_cast<char>(changed.back() ^ 1);
    EXPECT_NE(failure_of(*transformer, changed, kKey), "");
    EXPECT_NE(transformer->to_storage(value, kKey), stored) << "a nonce is used once";
  }
  EXPECT_NE(failure_of(*transformer, "short", kKey), "");
}

TEST(AesGcmTest, RejectsKeysOfOtherLengths) {
  EXPECT_THROW(aes_gcm_transformer("short"), InvalidArgument);
  EXPECT_THROW(aes_gcm_transformer(std::string(33, 'x')), InvalidArgument);
}

TEST(EncryptionTest, ReportsTheKeyOfAValue) {
  const auto one = aes_gcm_encryption({key("one", 'a')}, false);
  EXPECT_THAT(one->to_storage("v", kKey), StartsWith("k8s:enc:aesgcm:v1:one:"));
  EXPECT_THAT(one->to_storage("secret", kKey), Not(HasSubstr("secret")));
}

TEST(EncryptionTest, KeysAreRotated) {
  const auto before = aes_gcm_encryption({key("old", 'a')}, false);
  const auto after = aes_gcm_encryption({key("new", 'b', 16), key("old", 'a')}, false);
  const std::string stored = before->to_storage("v", kKey);
  const auto read = after->from_storage(stored, kKey);
  EXPECT_EQ(read.value, "v");
  EXPECT_TRUE(read.stale);
  const std::string again = after->to_storage("v", kKey);
  EXPECT_THAT(again, StartsWith("k8s:enc:aesgcm:v1:new:"));
  EXPECT_FALSE(after->from_storage(again, kKey).stale);
  EXPECT_EQ(failure_of(*before, again, kKey), "no matching prefix found");
}

TEST(EncryptionTest, PlainValuesAreReadIfAllowed) {
  const auto strict = aes_gcm_encryption({key("one", 'a')}, false);
  EXPECT_EQ(failure_of(*strict, "{}", kKey), "no matching prefix found");
  const auto mild = aes_gcm_encryption({key("one", 'a')}, true);
  const auto read = mild->from_storage("{}", kKey);
  EXPECT_EQ(read.value, "{}");
  EXPECT_TRUE(read.stale);
}

TEST(EncryptionTest, TheIdentityRejectsEncryptedValues) {
  const std::string stored = aes_gcm_encryption({key("one", 'a')}, false)->to_storage("v", kKey);
  EXPECT_THAT(failure_of(*identity_transformer(), stored, kKey), HasSubstr("encrypted data"));
  EXPECT_EQ(identity_transformer()->from_storage("{}", kKey).value, "{}");
  EXPECT_FALSE(identity_transformer()->from_storage("{}", kKey).stale);
}

TEST(EncryptionTest, KeysOfOneNameAreAllTried) {
  const auto old = aes_gcm_encryption({key("one", 'a')}, false);
  const auto both = aes_gcm_encryption({key("one", 'b'), key("one", 'a')}, false);
  EXPECT_EQ(both->from_storage(old->to_storage("v", kKey), kKey).value, "v");
}

}  // namespace
}  // namespace lookout::apiserver::storage
