#include "lookout/base/self_signed_certificate.h"

#include <gtest/gtest.h>

#include "lookout/base/base64.h"
#include "lookout/base/error.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout {
namespace {

using test::read_file;
using test::TempDir;
using test::thrown;
using test::write_file;
using testing::HasSubstr;

TEST(SelfSignedCertificateTest, IsWrittenLikeAMountedSecret) {
  const TempDir dir;
  const SelfSignedCertificate certificate;
  certificate.write_to(dir.path());
  EXPECT_EQ(read_file(dir / "tls.crt"), certificate.certificate());
  EXPECT_EQ(read_file(dir / "tls.key"), certificate.key());
  EXPECT_EQ(decode_base64(certificate.ca_bundle()), certificate.certificate());
  EXPECT_TRUE(certificate.certificate().starts_with("-----BEGIN CERTIFICATE-----"));
  EXPECT_TRUE(certificate.key().starts_with("-----BEGIN PRIVATE KEY-----"));
  EXPECT_NE(SelfSignedCertificate().certificate(), certificate.certificate());
}

TEST(SelfSignedCertificateTest, ReportsInvalidInput) {
  EXPECT_THROW(SelfSignedCertificate({"127.0.0.1"}), Error);
  const TempDir dir;
  const auto error = thrown<Error>([&] {
    write_file(dir / "file", "");
    SelfSignedCertificate().write_to(dir / "file" / "certs");
  });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("certs cannot be created: Not a directory"));
}

TEST(SelfSignedCertificateTest, CreatesItsFolder) {
  const TempDir dir;
  const SelfSignedCertificate certificate;
  certificate.write_to(dir / "a" / "b");
  EXPECT_EQ(read_file(dir / "a" / "b" / "tls.crt"), certificate.certificate());
}

}  // namespace
}  // namespace lookout
