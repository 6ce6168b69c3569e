// The patterns in the schemas of custom resources.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Whether a pattern in Go's syntax matches a part of a text. An invalid pattern (in a definition from
/// an older server) matches everything. Matching takes time linear in the text's length. Caches
/// compiled patterns up to a limit. Thread-safe.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// Reports the patterns in a schema, at any depth, that cannot be compiled, or whose matching would
/// cost too much.
void validate_patterns(api::Value schema, const std::string& path, Causes& causes);

}  // namespace lookout::apiserver::resources
