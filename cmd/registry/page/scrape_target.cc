#include "lookout/base/detail/asio.h"  // before Asio

#include "cmd/registry/page/scrape_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <cstdint>
#include <functional>
#include <string_view>

namespace lookout::cmd::registry_cmd {
namespace {

constexpr std::size_t kLongestPath = 200;

bool is_forbidden(const boost::asio::ip::address_v4& address) {
  constexpr std::uint32_t kLinkLocal = 0xA9FE0000;  // 169.254.0.0/16: cloud metadata services
  const std::uint32_t bits = address.to_uint();
  return address.is_loopback() || address.is_multicast() || (bits >> 24u) == 0 ||
         (bits & 0xFFFF0000u) == kLinkLocal || bits == 0xFFFFFFFFu;
}

bool is_forbidden(const boost::asio::ip::address_v6& address) {
  // ::, ::1, and the forms that embed IPv4 addresses.
  const auto bytes = address.to_bytes();
  const bool is_special = std::all_of(bytes.begin(), bytes.begin() + 10, std::logical_not<>());
  return is_special || address.is_multicast() || address.is_link_local();
}

/// The address in URL form; empty if it cannot be a pod's address.
std::string host_of(std::string_view text) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string(text), error);
  if (error) return {};
  if (address.is_v4()) return is_forbidden(address.to_v4()) ? "" : address.to_string();
  const auto v6 = address.to_v6();
  return is_forbidden(v6) || v6.scope_id() != 0 ? "" : fmt::format("[{}]", v6.to_string());
}

std::uint16_t port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : 0;
}

bool is_path(std::string_view text) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '#' && c != '\\'; };
  return text.starts_with('/') && text.size() <= kLongestPath &&
         std::ranges::all_of(text, is_plain);
}

}  // namespace

std::optional<ScrapeTarget> scrape_target(const api::Object& pod) {
  const auto annotation = [&](std::string_view name) {
    return pod["metadata"]["annotations"][name].as_string();
  };
  if (annotation("prometheus.io/scrape") != "true") return std::nullopt;
  if (pod["spec"]["hostNetwork"].as_bool() || pod["status"]["phase"].as_string() != "Running") {
    return std::nullopt;
  }
  const std::string host = host_of(pod["status"]["podIP"].as_string());
  const std::uint16_t port = port_of(annotation("prometheus.io/port"));
  std::string_view path = annotation("prometheus.io/path");
  if (path.empty()) path = "/metrics";
  if (host.empty() || port == 0 || !is_path(path)) return std::nullopt;
  return ScrapeTarget{pod.key(), fmt::format("http://{}:{}{}", host, port, path)};
}

}  // namespace lookout::cmd::registry_cmd
