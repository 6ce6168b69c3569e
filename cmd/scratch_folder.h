// ScratchFolder: a folder for as long as something runs.
#pragma once

#include <string>

#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// A new folder for temporary files, which goes with this object. Throws lookout::Error if it
/// cannot be made.
class ScratchFolder : public base::Pinned {
 public:
  ScratchFolder();
  ~ScratchFolder();

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lookout::cmd
