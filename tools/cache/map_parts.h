// The keys and the values of a map, copied.
#pragma once

#include <string>
#include <vector>

namespace lookout::cache::detail {

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> out;
  out.reserve(map.size());
  for (const auto& [key, value] : map) out.push_back(key);
  return out;
}

template <class Map>
std::vector<typename Map::mapped_type> values_of(const Map& map) {
  std::vector<typename Map::mapped_type> out;
  out.reserve(map.size());
  for (const auto& [key, value] : map) out.push_back(value);
  return out;
}

}  // namespace lookout::cache::detail
