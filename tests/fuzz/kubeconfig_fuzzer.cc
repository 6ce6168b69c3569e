// Any bytes are a kubeconfig or a ConfigError, with bounded resources; a usable kubeconfig can be
// written and read back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lookout/rest/kubeconfig.h"

using lookout::rest::Config;
using lookout::rest::ConfigError;
using lookout::rest::Kubeconfig;

namespace {

void check_written(const Config& config) {
  const Config again = Kubeconfig::parse(lookout::rest::render_kubeconfig(config)).to_config();
  if (!(again == config)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Kubeconfig kubeconfig;
  try {
    kubeconfig = Kubeconfig::parse(text, "/nowhere/config");
  } catch (const ConfigError&) {
    return 0;
  }
  // Every context, not only the current one.
  for (const auto& [name, context] : kubeconfig.contexts) {
    if (name.empty()) continue;
    try {
      Config config = kubeconfig.to_config({.context = name});
      config.exec.reset();
      check_written(config);
    } catch (const ConfigError&) {
    }
  }
  return 0;
}
