#include "apiserver/pem.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <cstddef>
#include <memory>

#include "lookout/base/detail/free_with.h"

namespace lookout::apiserver {

std::vector<PemBlock> read_pem(const std::string& text) {
  const std::unique_ptr<BIO, lookout::detail::FreeWith<BIO_free>> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  const auto release = [](auto* allocated) { OPENSSL_free(allocated); };
  std::vector<PemBlock> out;
  for (;;) {
    char* name = nullptr;
    char* headers = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    const bool read = PEM_read_bio(bio.get(), &name, &headers, &data, &size) == 1;
    const std::unique_ptr<char, decltype(release)> own_name(name, release);
    const std::unique_ptr<char, decltype(release)> own_headers(headers, release);
    const std::unique_ptr<unsigned char, decltype(release)> own_data(data, release);
    ERR_clear_error();
    if (!read) return out;
    out.push_back(
        {name, headers, {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)}});
  }
}

}  // namespace lookout::apiserver
