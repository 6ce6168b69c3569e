#include "apiserver/resources/ip_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "lookout/api/detail/go_text.h"

namespace lookout::apiserver::resources {
namespace {

int system_family(int family) { return family == 4 ? AF_INET : AF_INET6; }

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string terminated(text);
  for (const int family : {4, 6}) {
    IpAddress out;
    out.family = family;
    if (inet_pton(system_family(family), terminated.c_str(), out.bytes.data()) == 1) return out;
  }
  return std::nullopt;
}

bool IpAddress::is_mapped() const {
  constexpr std::size_t kZeros = 10;
  return family == 6 &&
         std::all_of(bytes.begin(), bytes.begin() + kZeros,
                     [](std::uint8_t byte) { return byte == 0; }) &&
         bytes[kZeros] == 0xFF && bytes[kZeros + 1] == 0xFF;
}

IpAddress IpAddress::masked(std::size_t length) const {
  IpAddress out = *this;
  for (std::size_t bit = length; bit < bits(); ++bit)
    out.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80u >> (bit % 8)));
  return out;
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(system_family(family), bytes.data(), text.data(), text.size());
  return text.data();
}

std::optional<IpRange> IpRange::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto address = IpAddress::parse(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  const auto length = api::detail::parse_int(digits);
  if (!address || !length || digits.front() == '+' || digits.front() == '-') return std::nullopt;
  if (static_cast<std::uint64_t>(*length) > address->bits()) return std::nullopt;
  return IpRange{*address, static_cast<std::size_t>(*length)};
}

bool IpRange::contains(const IpAddress& other) const {
  return address.family == other.family && address.masked(length) == other.masked(length);
}

std::string IpRange::to_string() const { return fmt::format("{}/{}", address.to_string(), length); }

std::string without_leading_zeros(std::string_view text) {
  std::string out;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    const bool more = i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (!in_number && text[i] == '0' && more) continue;
    in_number = digit;
    out += text[i];
  }
  return out;
}

}  // namespace lookout::apiserver::resources
