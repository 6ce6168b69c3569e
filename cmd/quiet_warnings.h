// QuietWarnings: warnings are not logged for a while.
#pragma once

#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// While it lives, nothing below errors is logged, unless the user wants more than the default
/// (--log-level warn).
class QuietWarnings : public base::Pinned {
 public:
  QuietWarnings();
  ~QuietWarnings();

 private:
  bool changed_;
};

}  // namespace lookout::cmd
