// Stamp: an encoded object with placeholders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::bench {

/// An object in any encoding, to be sent many times under different names. The markers (objects.h)
/// are overwritten while it is copied, which costs little more than the copy.
class Stamp {
 public:
  struct Values {
    std::uint64_t number = 0;   ///< below 10^10
    std::uint64_t version = 0;  ///< below 10^10
    std::uint64_t ns = 0;       ///< below 10^4
    std::uint64_t sent = 0;     ///< microseconds since 1970
  };

  explicit Stamp(std::string encoded);

  std::size_t size() const { return encoded_.size(); }
  /// Appends the object with these values.
  void append(std::string& out, const Values& values) const;

 private:
  struct Place {
    std::size_t at;
    std::size_t digits;
    std::uint64_t Values::*value;
  };
  void find(std::string_view marker, std::size_t skip, std::uint64_t Values::*value);

  std::string encoded_;
  std::vector<Place> places_;
};

}  // namespace lookout::bench
