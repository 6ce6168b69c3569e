// Files of facts.
#pragma once

#include <filesystem>
#include <string>

namespace lookout::codegen {

/// The content. Throws std::runtime_error naming the file.
std::string read_file(const std::filesystem::path& path);

}  // namespace lookout::codegen
