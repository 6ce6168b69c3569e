// The header in front of an object's body.
#pragma once

#include <atomic>
#include <cstdint>

namespace lookout::api::detail {

/// One malloc holds this header and, right after it, `size` bytes of body (an encoded object
/// value).
///
/// The offsets point from the start of the body to the values of fields that programs read most:
/// identity and labels, spec and status, and in these nodeName and podIP. (Their keys take one
/// byte.) 0 means absent. kFar means that the offset does not fit into 16 bits and the value must be
/// looked up.
struct ObjectHeader {
  static constexpr std::uint16_t kFar = 0xFFFF;

  mutable std::atomic<std::uint32_t> references{1};
  std::uint32_t size = 0;
  std::uint32_t key_hash = 0;
  std::uint16_t metadata = 0;
  std::uint16_t ns = 0;
  std::uint16_t name = 0;
  std::uint16_t uid = 0;
  std::uint16_t resource_version = 0;
  std::uint16_t labels = 0;
  std::uint16_t spec = 0;
  std::uint16_t status = 0;
  std::uint16_t node_name = 0;  // in spec
  std::uint16_t pod_ip = 0;     // in status

  const std::uint8_t* body() const { return reinterpret_cast<const std::uint8_t*>(this + 1); }
};
static_assert(sizeof(ObjectHeader) == 32);

}  // namespace lookout::api::detail
