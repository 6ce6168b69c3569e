#include "lookout/registry/dubbo/providers.h"

#include <fmt/format.h>

#include <memory>

#include "lookout/k8s/core/v1.h"
#include "registry/dubbo/provider_reader.h"
#include "registry/hub.h"

namespace lookout::registry::dubbo {
namespace {

registry::detail::HubSource source(const Options& options, const ProviderNames& names) {
  auto reader = std::make_shared<const ProviderReader>(names.annotation, options.include_unready);
  return {
      .resource = k8s::core::v1::Pod::kResource,
      .label_selector = fmt::format("{} in ({},{},{})", names.label, names.common_label_value,
                                    names.consumer_label_value, names.provider_label_value),
      .projection = reader->projection(),
      .reader = reader,
  };
}

}  // namespace

Providers::Providers(const rest::Client& client, const Options& options, const ProviderNames& names)
    : InformerDiscovery(
          std::make_shared<registry::detail::Hub>(client, source(options, names), options)) {}

}  // namespace lookout::registry::dubbo
