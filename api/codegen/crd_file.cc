// Reads CRD files and writes the header.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "api/codegen/crd.h"

namespace lookout::codegen {
namespace {

std::string read_all(std::istream& in) {
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string read_input(const std::string& path) {
  if (path == "-") return read_all(std::cin);
  const auto fail = [&](int why) {
    throw std::runtime_error(fmt::format("{} cannot be read: {}", path, std::strerror(why)));
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail(EISDIR);
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(errno);
  return read_all(in);
}

void write_output(const std::string& path, const std::string& text) {
  if (path.empty() || path == "-") {
    std::cout << text << std::flush;
    if (!std::cout)
      throw std::system_error(errno, std::generic_category(), "standard output cannot be written");
    return;
  }
  const auto fail = [&](const std::string& why) {
    throw std::runtime_error(fmt::format("{} cannot be written: {}", path, why));
  };
  const auto write = [&](const std::string& file) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    if (!out.flush()) fail(std::strerror(errno));
  };
  std::error_code error;
  // Do not replace a device or a pipe.
  if (std::filesystem::is_other(std::filesystem::status(path, error))) return write(path);
  if (std::filesystem::is_directory(path, error)) fail(std::strerror(EISDIR));
  // Write a temporary file first: a build must not see an incomplete header.
  const std::string partial = path + ".partial";
  try {
    write(partial);
    std::filesystem::rename(partial, path, error);
    if (error) fail(error.message());
  } catch (...) {
    std::filesystem::remove(partial, error);
    throw;
  }
}

}  // namespace

void write_crd_header(const std::vector<std::string>& inputs, const std::string& output,
                      const std::string& cpp_namespace) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (std::filesystem::equivalent(input, output, error))
      throw std::runtime_error(fmt::format("{} is read: it cannot be written, too", output));
  }
  std::vector<Crd> crds;
  CrdHeaderOptions options;
  options.cpp_namespace = cpp_namespace;
  for (const std::string& input : inputs) {
    const std::string shown = input == "-" ? "standard input" : input;
    for (Crd& crd : read_crds(read_input(input), shown)) crds.push_back(std::move(crd));
    // Only the file name: the folder differs between machines.
    options.source += (options.source.empty() ? "" : ", ") +
                      (input == "-" ? shown : std::filesystem::path(input).filename().string());
  }
  write_output(output, generate_crd_header(crds, options));
}

}  // namespace lookout::codegen
