// Client certificates and their keys.
#pragma once

#include <string>

namespace lookout::rest::detail {

/// Why these PEM texts are not a certificate with its key; empty if they are. Repeats nothing of the
/// texts.
std::string key_pair_error(const std::string& certificate, const std::string& key);

}  // namespace lookout::rest::detail
