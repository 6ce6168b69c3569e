// The patterns in the schemas of custom resources.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Whether a pattern, in Go's syntax, occurs in a text. One that is none (in a definition of an older
/// server) refuses nothing. The time of a match grows with the length of the text alone, whatever
/// the pattern is. What was compiled is kept for the next calls, up to a limit. Any thread may call
/// it.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// Finds patterns in a schema, at any depth, that cannot be compiled, or only into more than a
/// match may cost.
void validate_patterns(api::Value schema, const std::string& path, Causes& causes);

}  // namespace lookout::apiserver::resources
