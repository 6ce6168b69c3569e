#include "registry/dubbo/provider_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <cstdint>
#include <map>
#include <utility>

#include "lookout/base/error.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/registry/dubbo/provider_url.h"
#include "lookout/registry/dubbo/record.h"
#include "registry/dubbo/escape.h"
#include "registry/pod_state.h"
#include "registry/url.h"

namespace lookout::registry::dubbo {
namespace {

std::string_view value_of(const ServiceInstance& instance, const char* name) {
  const auto found = instance.metadata.find(name);
  return found == instance.metadata.end() ? std::string_view() : found->second;
}

/// When a provider was announced, in seconds since 1970; 0 if unknown.
std::int64_t announced_at(const ServiceInstance& instance) {
  const std::string_view text = value_of(instance, "timestamp");
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

std::string service_with(ProviderUrl url, const std::string& group, const std::string& version) {
  url.group = group;
  url.version = version;
  return url.service();
}

/// A program that was restarted in its pod leaves stale records: those of the same protocol with
/// another pid, or of the same endpoint.
bool is_of_a_later_life(const ServiceInstance& one, const ServiceInstance& other) {
  const Endpoint& a = one.endpoints.front();
  const Endpoint& b = other.endpoints.front();
  return announced_at(one) > announced_at(other) &&
         (a == b || (a.scheme() == b.scheme() && value_of(one, "pid") != value_of(other, "pid")));
}

/// New records are appended: of two without an order of time, the last is the newest.
bool is_announced_again(const ServiceInstance& later, const ServiceInstance& one) {
  return later.endpoints.front() == one.endpoints.front() &&
         announced_at(later) == announced_at(one);
}

/// Merges all announcements of one pod for one service, in the order of its records.
ServiceInstance one_of(const std::vector<ServiceInstance>& all) {
  ServiceInstance out;
  for (auto one = all.begin(); one != all.end(); ++one) {
    if (std::ranges::any_of(
            all, [&](const ServiceInstance& other) { return is_of_a_later_life(other, *one); }) ||
        std::any_of(one + 1, all.end(),
                    [&](const ServiceInstance& later) { return is_announced_again(later, *one); }))
      continue;
    if (out.endpoints.empty()) {
      out = *one;
      continue;
    }
    // (Of one endpoint, only one announcement is left.)
    out.endpoints.push_back(one->endpoints.front());
    out.metadata.insert(one->metadata.begin(), one->metadata.end());
    if (out.zone.empty()) out.zone = one->zone;
  }
  return out;
}

/// Whether the host is 0.0.0.0 or ::, which a program listens on but cannot be called at.
bool is_any_host(std::string_view host) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  return !error && address.is_unspecified();
}

/// A provider that announces 0.0.0.0 means its pod: a caller would call itself. False if the pod has
/// no address yet.
bool give_address(ServiceInstance& provider, std::string_view pod_ip) {
  const Endpoint announced = provider.endpoints.front();
  if (!is_any_host(announced.host())) return true;
  if (pod_ip.empty()) return false;
  provider.endpoints = {Endpoint(announced.scheme(), pod_ip, announced.port())};
  provider.id = fmt::format("{}:{}", registry::detail::bracketed(pod_ip), announced.port());
  return true;
}

bool is_serving(const api::Object& pod) {
  return registry::detail::pod_is_running(pod) && registry::detail::pod_is_ready(pod);
}

template <class Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::ranges::end(names);
}

}  // namespace

std::optional<Provider> read_provider(std::string_view key, std::string& error) {
  if (!key.starts_with('/')) return std::nullopt;
  std::string_view rest = key.substr(1);
  cut(rest, '/');
  const std::string interface = query_unescape(cut(rest, '/'));
  if (interface.empty() || cut(rest, '/') != "providers" || rest.empty()) return std::nullopt;
  if (!is_text(interface)) {
    error = fmt::format("{:?} is not the interface of a provider: it is not UTF-8 text", interface);
    return std::nullopt;
  }

  ProviderUrl url;
  try {
    const std::string text = query_unescape(rest);
    // dubbo's notation for "no provider".
    if (text.starts_with("empty:")) return std::nullopt;
    url = ProviderUrl::parse(text);
  } catch (const InvalidArgument& e) {
    error = e.what();
    return std::nullopt;
  }
  url.interface = interface;

  Provider out;
  out.service = url.service();
  out.wildcards = {service_with(url, "*", url.version), service_with(url, url.group, "*"),
                   service_with(url, "*", "*")};
  ServiceInstance& instance = out.instance;
  instance.name = out.service;
  instance.id = fmt::format("{}:{}", registry::detail::bracketed(url.host), url.port);
  instance.endpoints = {Endpoint(url.endpoint())};
  instance.version = url.version;
  instance.metadata = std::move(url.parameters);
  if (!url.group.empty()) instance.metadata["group"] = url.group;
  if (auto zone = instance.metadata.extract("zone")) instance.zone = std::move(zone.mapped());
  return out;
}

api::Projection ProviderReader::projection() const {
  return api::Projection::keep({fmt::format("metadata.annotations['{}']", annotation_),
                                fmt::format("metadata.labels['{}']", registry::detail::kZoneLabel),
                                "metadata.deletionTimestamp", "status.phase", "status.podIP",
                                "status.conditions.type", "status.conditions.status"});
}

std::string_view ProviderReader::records_of(const api::Object& pod) const {
  return pod.annotations()[annotation_].as_string();
}

void ProviderReader::services_of(const api::Object& pod, cache::IndexValues& services) const {
  const Records decoded = decode_records(records_of(pod));
  if (!decoded.readable) services.add(registry::detail::kUnreadable);
  std::string ignored;
  for (const auto& record : decoded.records) {
    const auto provider = read_provider(record.key, ignored);
    if (!provider || contains(services.values(), provider->service)) continue;
    services.add(provider->service);
    for (const auto& name : provider->wildcards) {
      if (!contains(services.values(), name)) services.add(name);
    }
  }
}

bool ProviderReader::is_listed(std::string_view service) const {
  return service != registry::detail::kUnreadable && !service.starts_with("*/") &&
         !service.ends_with(":*");
}

bool ProviderReader::read(const api::Object& pod, std::string_view service,
                          std::vector<InstancePtr>& instances) const {
  const Records decoded = decode_records(records_of(pod));
  if (!decoded.readable) return false;
  // As in dubbo-go, the address is the record's, so a pod can announce any address.
  const bool ready = is_serving(pod);
  if (!ready && !include_unready_) return true;

  const k8s::core::v1::Pod typed(pod);
  std::map<std::string, std::vector<ServiceInstance>> of_services;
  std::string ignored;
  for (const auto& record : decoded.records) {
    auto provider = read_provider(record.key, ignored);
    if (provider && (provider->service == service || contains(provider->wildcards, service)) &&
        give_address(provider->instance, typed.status().pod_ip()))
      of_services[provider->service].push_back(std::move(provider->instance));
  }
  if (of_services.empty()) return true;
  // A pod is one instance. If a wildcard matches several of its services, take the last one.
  ServiceInstance found = one_of(of_services.rbegin()->second);
  found.origin = pod.key();
  found.ready = ready;
  if (found.zone.empty()) found.zone = pod.labels()[registry::detail::kZoneLabel].as_string();
  instances.push_back(std::make_shared<const ServiceInstance>(std::move(found)));
  return true;
}

void ProviderReader::keep(const api::Object& pod, const std::vector<InstancePtr>& last,
                          std::vector<InstancePtr>& instances) const {
  const bool ready = is_serving(pod);
  if (!ready && !include_unready_) return;
  for (const InstancePtr& instance : last)
    instances.push_back(registry::detail::with_readiness(instance, ready));
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
