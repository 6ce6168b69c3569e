#include "bench/load/stamp.h"

#include <utility>

#include "bench/load/objects.h"

namespace lookout::bench {

Stamp::Stamp(std::string encoded) : encoded_(std::move(encoded)) {
  find(marker::kNumber, 0, &Values::number);
  find(marker::kVersion, 0, &Values::version);
  find(marker::kNamespace, 3, &Values::ns);
  find(marker::kSent, 0, &Values::sent);
}

void Stamp::find(std::string_view marker, std::size_t skip, std::uint64_t Values::*value) {
  for (std::size_t at = encoded_.find(marker); at != std::string::npos;
       at = encoded_.find(marker, at + marker.size())) {
    places_.push_back({at + skip, marker.size() - skip, value});
  }
}

void Stamp::append(std::string& out, const Values& values) const {
  const std::size_t begin = out.size();
  out += encoded_;
  for (const Place& place : places_) {
    std::uint64_t rest = values.*place.value;
    for (std::size_t digit = place.digits; digit > 0; --digit) {
      out[begin + place.at + digit - 1] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    }
  }
}

}  // namespace lookout::bench
