#include "apiserver/content_hash.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>

namespace lookout::apiserver {

std::string content_hash(std::string_view text) {
  std::array<unsigned char, SHA512_DIGEST_LENGTH> digest{};
  SHA512(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return fmt::format("{:02X}", fmt::join(digest, ""));
}

}  // namespace lookout::apiserver
