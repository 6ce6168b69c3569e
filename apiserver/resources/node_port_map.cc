#include "apiserver/resources/node_port_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::size_t kBitsOfByte = 8;

}  // namespace

NodePortMap::NodePortMap(const api::Object& allocation) {
  const std::string range(allocation["range"].as_string());
  const std::int64_t first =
      api::detail::parse_int(range.substr(0, range.find('-'))).value_or(kFirst);
  const std::string bytes = decode_base64(allocation["data"].as_string()).value_or(std::string());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - 1 - i]);
    for (std::size_t bit = 0; bit < kBitsOfByte; ++bit) {
      if ((byte >> bit & 1) != 0)
        set(first + static_cast<std::int64_t>(i * kBitsOfByte + bit), true);
    }
  }
}

int NodePortMap::free_from(std::uint32_t start) const {
  for (int i = 0; i < kCount; ++i) {
    const int port = kFirst + (static_cast<int>(start) + i) % kCount;
    if (!is_taken(port)) return port;
  }
  return 0;
}

std::set<std::int64_t> NodePortMap::taken() const {
  std::set<std::int64_t> out;
  for (std::int64_t port = kFirst; covers(port); ++port) {
    if (is_taken(port)) out.insert(port);
  }
  return out;
}

api::Object NodePortMap::object() const {
  std::string bytes((kCount + kBitsOfByte - 1) / kBitsOfByte, '\0');
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    if (!bits_[i]) continue;
    char& byte = bytes[bytes.size() - 1 - i / kBitsOfByte];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1u << i % kBitsOfByte);
  }
  bytes.erase(0, std::min(bytes.find_first_not_of('\0'), bytes.size()));
  return api::Object::parse(fmt::format(
      R"({{"kind":"RangeAllocation","apiVersion":"v1","metadata":{{"name":"{}"}},"range":"{}",)"
      R"("data":"{}"}})",
      kKey, kRange, encode_base64(bytes)));
}

}  // namespace lookout::apiserver::resources
