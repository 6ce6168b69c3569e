// The roles and bindings that every cluster has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::apiserver::bootstrap {

/// An object and its resource.
struct Entry {
  std::string group;
  std::string plural;
  api::Object object;
};

/// The objects that a table in the form of apiserver/bootstrap/policy.txt describes. Throws
/// lookout::Error with the number of the line.
std::vector<Entry> parse_policy(std::string_view text);

/// The text of apiserver/bootstrap/policy.txt.
std::string_view policy_text();

}  // namespace lookout::apiserver::bootstrap
