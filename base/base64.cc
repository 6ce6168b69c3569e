#include "lookout/base/base64.h"

#include <openssl/evp.h>

#include "lookout/base/error.h"

namespace lookout {
namespace {

// EVP uses int for sizes; objects are much smaller than this.
constexpr std::size_t kMaxInput = std::size_t{1} << 30;

}  // namespace

std::string encode_base64(std::string_view bytes) {
  if (bytes.size() > kMaxInput) throw InvalidArgument("base64: too much data");
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string clean(text);
  std::erase_if(clean, [](char c) { return c == '\n' || c == '\r'; });
  if (clean.size() % 4 != 0 || clean.size() > kMaxInput) return std::nullopt;
  // EVP accepts surrounding blanks and misplaced padding, which are invalid base64.
  const std::size_t padding = clean.ends_with("==") ? 2 : clean.ends_with('=') ? 1 : 0;
  if (clean.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") <
      clean.size() - padding) {
    return std::nullopt;
  }
  std::string out(clean.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(clean.data()),
                                   static_cast<int>(clean.size()));
  if (size < 0) return std::nullopt;
  out.resize(static_cast<std::size_t>(size) - padding);
  return out;
}

}  // namespace lookout
