#include "controller/reconcile_ids.h"

#include <fmt/format.h>

#include <random>

namespace lookout::controller::detail {
namespace {

std::uint64_t random_bits() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32U) | random();
}

constexpr unsigned kBits = 60;
constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;

/// A bijection of numbers of 60 bits, so that no two reconciles of a controller share an id.
std::uint64_t mix(std::uint64_t value) {
  value &= kMask;
  value = (value * 0x9e3779b97f4a7c15U) & kMask;
  value ^= value >> 31U;
  value = (value * 0xbf58476d1ce4e5b9U) & kMask;
  return value ^ (value >> 29U);
}

}  // namespace

std::string ReconcileIds::id(std::uint64_t number) const {
  std::call_once(seeded_, [this] {
    first_ = random_bits();
    second_ = random_bits();
  });
  const std::uint64_t head = mix(first_ + number);
  // RFC 9562, version 4.
  const std::uint64_t tail = (second_ & 0x3fffffffffffffffU) | 0x8000000000000000U;
  return fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", head >> 28U, (head >> 12U) & 0xffffU,
                     head & 0xfffU, tail >> 48U, tail & 0xffffffffffffU);
}

Logger ReconcileIds::logger(const std::string& controller, const Request& request,
                            std::uint64_t number) const {
  return {fmt::format("controller {}: {}", controller, request.key()), "reconcileID=" + id(number)};
}

}  // namespace lookout::controller::detail
