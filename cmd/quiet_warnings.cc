#include "cmd/quiet_warnings.h"

#include <spdlog/spdlog.h>

namespace lookout::cmd {

QuietWarnings::QuietWarnings()
    : changed_(spdlog::default_logger()->level() == spdlog::level::warn) {
  if (changed_) spdlog::default_logger()->set_level(spdlog::level::err);
}

QuietWarnings::~QuietWarnings() {
  if (changed_) spdlog::default_logger()->set_level(spdlog::level::warn);
}

}  // namespace lookout::cmd
