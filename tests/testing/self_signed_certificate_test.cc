#include "lookout/testing/self_signed_certificate.h"

#include <gtest/gtest.h>

#include "lookout/base/base64.h"
#include "lookout/base/error.h"
#include "tests/support/files.h"

namespace lookout::test {
namespace {

TEST(SelfSignedCertificateTest, IsWrittenAsASecretIsMounted) {
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

TEST(SelfSignedCertificateTest, SaysWhatItCannotDo) {
  EXPECT_THROW(SelfSignedCertificate({"127.0.0.1"}), Error);
  EXPECT_THROW(SelfSignedCertificate().write_to("/nowhere"), Error);
}

}  // namespace
}  // namespace lookout::test
