// Reads files.
#pragma once

#include <rapidjson/document.h>

#include <filesystem>
#include <string>

namespace lookout::codegen {

/// The file's content. Throws std::runtime_error with the file's name.
std::string read_file(const std::filesystem::path& path);
/// The same for JSON, also if the file is malformed.
rapidjson::Document read_json(const std::filesystem::path& path);

}  // namespace lookout::codegen
