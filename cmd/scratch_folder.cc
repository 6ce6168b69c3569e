#include "cmd/scratch_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "lookout/base/error.h"

namespace lookout::cmd {

ScratchFolder::ScratchFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "lookout-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw Error(fmt::format("{} cannot be made", name));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace lookout::cmd
