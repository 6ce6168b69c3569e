// Endpoints: a valid text can be rebuilt from its parts, and parses to the same parts.
#include <string>

#include "lookout/registry/endpoint.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const registry::Endpoint endpoint(text);
  require(endpoint.text() == text);
  require(endpoint.valid() == endpoint.defect().empty());
  if (!endpoint.valid()) {
    require(endpoint.scheme().empty() && endpoint.host().empty() && endpoint.port() == 0);
    return 0;
  }
  require(!endpoint.scheme().empty() && !endpoint.host().empty());
  require(text.starts_with(endpoint.url()));
  require(endpoint.has_scheme(endpoint.scheme()));
  const registry::Endpoint again(endpoint.url("/path"));
  require(again.valid() && again.scheme() == endpoint.scheme() && again.host() == endpoint.host() &&
          again.port() == endpoint.port() && again.query().empty());
  if (endpoint.port() != 0) {
    const registry::Endpoint made(endpoint.scheme(), endpoint.host(), endpoint.port());
    require(made.valid() && made.host() == endpoint.host() && made.port() == endpoint.port());
  }
  static_cast<void>(endpoint.parameter("isSecure"));
  static_cast<void>(endpoint.secure());
  return 0;
}
