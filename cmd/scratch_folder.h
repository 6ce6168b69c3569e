// ScratchFolder: a temporary folder.
#pragma once

#include <string>

#include "lookout/base/pinned.h"

namespace lookout::cmd {

/// A new folder for temporary files. The destructor removes it. Throws lookout::Error if it cannot
/// be created.
class ScratchFolder : public base::Pinned {
 public:
  ScratchFolder();
  ~ScratchFolder();

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace lookout::cmd
