#include "lookout/registry/dubbo/provider_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "lookout/base/error.h"
#include "registry/dubbo/escape.h"
#include "registry/url.h"

namespace lookout::registry::dubbo {
namespace {

using registry::detail::Url;

std::map<std::string, std::string> parse_parameters(std::string_view query) {
  std::map<std::string, std::string> out;
  while (!query.empty()) {
    std::string_view pair = cut(query, '&');
    const std::string_view name = cut(pair, '=');
    if (!name.empty()) out[query_unescape(name)] = query_unescape(pair);
  }
  return out;
}

std::string take(std::map<std::string, std::string>& parameters, const char* name) {
  auto node = parameters.extract(name);
  return node.empty() ? std::string() : std::move(node.mapped());
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw InvalidArgument(fmt::format("{:?} is not the URL of a provider: {}",
                                    registry::detail::without_secrets(text), why));
}

bool are_text(const std::map<std::string, std::string>& parameters) {
  return std::ranges::all_of(parameters, [](const auto& parameter) {
    return is_text(parameter.first) && is_text(parameter.second);
  });
}

}  // namespace

ProviderUrl ProviderUrl::parse(std::string_view text) {
  if (!is_text(text)) refuse(text, "it is not UTF-8 text");
  const Url url{std::string(text)};
  if (!url.valid()) refuse(text, url.defect());
  ProviderUrl out;
  out.protocol = url.part(CURLUPART_SCHEME);
  out.host = url.part(CURLUPART_HOST);
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty()) refuse(text, "it has no host");
  const std::string port = url.part(CURLUPART_PORT);
  if (port.empty()) refuse(text, "it has no port");
  std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (out.port == 0) refuse(text, "its port is 0");
  out.path = url.part(CURLUPART_PATH);
  if (out.path.starts_with('/')) out.path.erase(0, 1);
  out.parameters = parse_parameters(url.part(CURLUPART_QUERY));
  if (!is_text(out.host) || !are_text(out.parameters))
    refuse(text, "its escapes do not stand for UTF-8 text");
  out.interface = take(out.parameters, "interface");
  if (out.interface.empty()) out.interface = out.path;
  if (out.path == out.interface) out.path.clear();
  out.group = take(out.parameters, "group");
  out.version = take(out.parameters, "version");
  return out;
}

std::string ProviderUrl::to_string() const {
  std::map<std::string, std::string> all = parameters;
  all["interface"] = interface;
  if (!group.empty()) all["group"] = group;
  if (!version.empty()) all["version"] = version;
  std::string out = fmt::format("{}/{}", endpoint(), path.empty() ? interface : path);
  char separator = '?';
  for (const auto& [name, value] : all) {
    out += fmt::format("{}{}={}", separator, query_escape(name), query_escape(value));
    separator = '&';
  }
  return out;
}

std::string ProviderUrl::key(std::string_view root) const {
  if (interface.empty()) throw InvalidArgument("a provider needs an interface");
  if (host.empty())
    throw InvalidArgument(fmt::format("provider of {}: it needs a host", interface));
  if (port == 0) throw InvalidArgument(fmt::format("provider of {}: it needs a port", interface));
  return fmt::format("/{}/{}/providers/{}", root, interface, query_escape(to_string()));
}

std::string ProviderUrl::service() const {
  std::string out = group.empty() ? interface : fmt::format("{}/{}", group, interface);
  if (!version.empty() && version != "0.0.0") out += ":" + version;
  return out;
}

std::string ProviderUrl::endpoint() const {
  return fmt::format("{}://{}:{}", protocol, registry::detail::bracketed(host), port);
}

}  // namespace lookout::registry::dubbo
