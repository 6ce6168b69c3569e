#include "registry/dubbo/provider_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lookout/registry/dubbo/record.h"
#include "registry/pod_state.h"
#include "registry/url.h"

namespace lookout::registry::dubbo {
namespace {

using registry::detail::Url;

/// Undoes Go's url.QueryEscape().
std::string unescape(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '+', ' ');
  int size = 0;
  const std::unique_ptr<char, decltype(&curl_free)> decoded(
      curl_easy_unescape(nullptr, plain.data(), static_cast<int>(plain.size()), &size), curl_free);
  return decoded ? std::string(decoded.get(), static_cast<std::size_t>(size)) : plain;
}

/// The part before the separator; `text` is what comes after it.
std::string_view cut(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::map<std::string, std::string> parameters(std::string_view query) {
  std::map<std::string, std::string> out;
  while (!query.empty()) {
    std::string_view pair = cut(query, '&');
    const std::string_view name = cut(pair, '=');
    if (!name.empty()) out[unescape(name)] = unescape(pair);
  }
  return out;
}

std::string take(std::map<std::string, std::string>& parameters, const char* name) {
  auto node = parameters.extract(name);
  return node.empty() ? std::string() : std::move(node.mapped());
}

}  // namespace

std::optional<Provider> read_provider(std::string_view key, std::string& error) {
  if (!key.starts_with('/')) return std::nullopt;
  std::string_view rest = key.substr(1);
  cut(rest, '/');
  const std::string interface = unescape(cut(rest, '/'));
  if (interface.empty() || cut(rest, '/') != "providers" || rest.empty()) return std::nullopt;

  const std::string text = unescape(rest);
  const Url url(text);
  const std::string scheme = url.part(CURLUPART_SCHEME);
  // How dubbo says that there is no provider.
  if (scheme == "empty") return std::nullopt;
  const std::string host = url.part(CURLUPART_HOST);
  const std::string port = url.part(CURLUPART_PORT);
  if (!url.valid() || host.empty() || port.empty()) {
    error = fmt::format("\"{}\" is no provider's URL: {}", text,
                        !url.valid()   ? url.defect()
                        : host.empty() ? "it has no host"
                                       : "it has no port");
    return std::nullopt;
  }

  Provider out;
  ServiceInstance& instance = out.instance;
  instance.metadata = parameters(url.part(CURLUPART_QUERY));
  instance.id = fmt::format("{}:{}", host, port);
  instance.endpoints = {Endpoint(fmt::format("{}://{}:{}", scheme, host, port))};
  instance.version = take(instance.metadata, "version");
  instance.zone = take(instance.metadata, "zone");
  const auto group = instance.metadata.find("group");
  if (group != instance.metadata.end() && !group->second.empty()) out.service = group->second + "/";
  out.service += interface;
  if (!instance.version.empty() && instance.version != "0.0.0") {
    out.service += ":" + instance.version;
  }
  instance.name = out.service;
  return out;
}

api::Projection ProviderReader::projection() const {
  return api::Projection::keep({fmt::format("metadata.annotations['{}']", annotation_),
                                fmt::format("metadata.labels['{}']", registry::detail::kZoneLabel),
                                "metadata.deletionTimestamp", "status.phase",
                                "status.conditions.type", "status.conditions.status"});
}

std::string_view ProviderReader::records_of(const api::Object& pod) const {
  return pod.annotations()[annotation_].as_string();
}

void ProviderReader::services_of(const api::Object& pod, cache::IndexValues& services) const {
  std::string ignored;
  for (const auto& record : decode_records(records_of(pod)).records) {
    const auto provider = read_provider(record.key, ignored);
    if (provider &&
        std::ranges::find(services.values(), provider->service) == services.values().end()) {
      services.add(provider->service);
    }
  }
}

void ProviderReader::read(const api::Object& pod, std::string_view service,
                          std::vector<InstancePtr>& instances) const {
  // The address is in the record, so that a pod may say what it likes of itself, as in dubbo-go.
  const bool ready = registry::detail::pod_is_running(pod) && registry::detail::pod_is_ready(pod);
  if (!ready && !include_unready_) return;

  std::optional<ServiceInstance> found;
  std::string ignored;
  for (const auto& record : decode_records(records_of(pod)).records) {
    auto provider = read_provider(record.key, ignored);
    if (!provider || provider->service != service) continue;
    if (!found) {
      found = std::move(provider->instance);
      continue;
    }
    const Endpoint& endpoint = provider->instance.endpoints.front();
    if (std::ranges::find(found->endpoints, endpoint) == found->endpoints.end()) {
      found->endpoints.push_back(endpoint);
    }
    found->metadata.merge(provider->instance.metadata);
    if (found->zone.empty()) found->zone = provider->instance.zone;
  }
  if (!found) return;
  found->origin = pod.key();
  found->ready = ready;
  if (found->zone.empty()) found->zone = pod.labels()[registry::detail::kZoneLabel].as_string();
  instances.push_back(std::make_shared<const ServiceInstance>(*std::move(found)));
}

std::optional<std::string> ProviderReader::defect(const api::Object& pod) const {
  const Records records = decode_records(records_of(pod));
  std::vector<std::string> defects = records.defects;
  for (const auto& record : records.records) {
    std::string error;
    if (!read_provider(record.key, error) && !error.empty()) defects.push_back(std::move(error));
  }
  if (defects.empty()) return std::nullopt;
  return fmt::format("annotation {}: {}", annotation_, fmt::join(defects, "; "));
}

}  // namespace lookout::registry::dubbo
