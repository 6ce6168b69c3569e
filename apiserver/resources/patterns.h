// The patterns in the schemas of custom resources.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "apiserver/resources/strategy.h"
#include "lookout/api/object.h"

namespace lookout::apiserver::resources {

/// Patterns in Go's syntax, each compiled once. The time of a match grows with the length of the
/// text alone, whatever the pattern is. Not to be shared between threads.
class Patterns {
 public:
  Patterns();
  ~Patterns();

  /// Whether the pattern occurs in the text. One that is none (in a definition of an older server)
  /// refuses nothing.
  bool match(std::string_view pattern, std::string_view text);

 private:
  struct Compiled;
  std::map<std::string, std::unique_ptr<Compiled>, std::less<>> compiled_;
};

/// Finds patterns in a schema, at any depth, that cannot be compiled, or only into more than a
/// match may cost.
void validate_patterns(api::Value schema, const std::string& path, Causes& causes);

}  // namespace lookout::apiserver::resources
