// OpenSSL's objects with owners.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace lookout::rest::detail {

template <auto free>
struct OpensslDelete {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, OpensslDelete<BIO_free>>;
using Certificate = std::unique_ptr<X509, OpensslDelete<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpensslDelete<EVP_PKEY_free>>;

}  // namespace lookout::rest::detail
