// Smart pointers for OpenSSL's objects.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

#include "lookout/base/detail/free_with.h"

namespace lookout::rest::detail {

using Bio = std::unique_ptr<BIO, lookout::detail::FreeWith<BIO_free>>;
using Certificate = std::unique_ptr<X509, lookout::detail::FreeWith<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, lookout::detail::FreeWith<EVP_PKEY_free>>;

/// Passed to OpenSSL's PEM readers, which otherwise prompt for passphrases on the terminal.
inline int no_passphrase(char*, int, int, void*) { return -1; }

}  // namespace lookout::rest::detail
