// --dry-run, as in kubectl.
#pragma once

#include <string>

#include "cmd/cli.h"

namespace lookout::cmd {

/// --dry-run and --dry-run=server; --dry-run=none is the same as no flag. The checks of a client
/// (--dry-run=client) are not supported.
class DryRunFlag {
 public:
  void add_to(CLI::App& app, const std::string& description);
  bool is_set() const;

 private:
  std::string value_;
};

}  // namespace lookout::cmd
