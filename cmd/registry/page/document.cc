#include "cmd/registry/page/document.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "lookout/api/error.h"
#include "lookout/base/base64.h"

namespace lookout::cmd::registry_cmd {
namespace {

/// The hash of the element's content, for the Content-Security-Policy.
std::string hash_of(std::string_view html, const char* element) {
  const std::string begin = fmt::format("<{}>", element);
  const auto from = html.find(begin);
  const auto to = html.find(fmt::format("</{}>", element), from);
  if (from == std::string_view::npos || to == std::string_view::npos) {
    throw Error(fmt::format("the page has no {}", begin));
  }
  const std::string_view content = html.substr(from + begin.size(), to - from - begin.size());
  std::array<unsigned char, 32> digest{};
  EVP_Digest(content.data(), content.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return "'sha256-" + encode_base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) +
         "'";
}

}  // namespace

std::string content_security_policy(std::string_view html) {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
      "require-trusted-types-for 'script'; trusted-types 'none'",
      hash_of(html, "script"), hash_of(html, "style"));
}

}  // namespace lookout::cmd::registry_cmd
