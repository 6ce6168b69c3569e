// OpenSSL's objects with owners.
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

/// Passed to OpenSSL's readers of PEM: otherwise they ask for the passphrase of what is encrypted on
/// the terminal.
inline int no_passphrase(char*, int, int, void*) { return -1; }

}  // namespace lookout::rest::detail
