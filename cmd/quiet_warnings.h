// QuietWarnings: suppresses warnings in the log.
#pragma once

#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// While it exists, warnings are not logged, unless the user has changed the log level from its default
/// (--log-level warn).
class QuietWarnings : public base::Pinned {
 public:
  QuietWarnings();
  ~QuietWarnings();

 private:
  bool changed_;
};

}  // namespace lookout::cmd
