// The seed of key_hash().
#pragma once

#include <cstdint>

namespace lookout::api::detail {

/// Fixes the seed, for programs in which everything must happen in the same order each time, such
/// as simulations: stores keep objects in the order of their hashes. Other programs have a random
/// seed. Works only before the first hash, so before the first object: call it in the constructor
/// of a static object. `seed` must not be 0.
void fix_hash_seed(std::uint64_t seed);

}  // namespace lookout::api::detail
