// SelfSignedCertificate: a certificate for a server in a test, such as a controller::WebhookServer.
#pragma once

#include "lookout/base/self_signed_certificate.h"

namespace lookout::test {

///     const test::SelfSignedCertificate certificate;
///     certificate.write_to(dir);                              // WebhookOptions::cert_dir
///     webhook.client_config().set_ca_bundle(certificate.certificate());  // a typed draft
///     webhook["clientConfig"]["caBundle"].set(certificate.ca_bundle());  // an untyped one
using lookout::SelfSignedCertificate;

}  // namespace lookout::test
