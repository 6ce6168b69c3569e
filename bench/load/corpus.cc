#include "bench/load/corpus.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "bench/load/protobuf_wire.h"
#include "lookout/api/error.h"

namespace lookout::bench {

ProtobufEncoder encoder_program(std::string command) {
  return [command = std::move(command)](const std::vector<std::string>& json) {
    // Uses a file: with two pipes, both ends would have to be served concurrently.
    char name[] = "/tmp/lookout-bench-XXXXXX";
    const int fd = mkstemp(name);
    std::FILE* in = fd < 0 ? nullptr : fdopen(fd, "w");
    if (in == nullptr) throw Error("no temporary file can be made in /tmp");
    for (const auto& object : json) fmt::print(in, "{}\n", object);
    std::fclose(in);
    std::vector<std::string> out;
    std::FILE* encoded = popen(fmt::format("{} <{}", command, name).c_str(), "r");
    unsigned char length[4];
    while (encoded != nullptr && std::fread(length, 1, 4, encoded) == 4) {
      const std::size_t size = std::size_t{length[0]} << 24 | std::size_t{length[1]} << 16 |
                               std::size_t{length[2]} << 8 | length[3];
      std::string object(size, '\0');
      if (std::fread(object.data(), 1, size, encoded) != size) break;
      out.push_back(std::move(object));
    }
    const int status = encoded == nullptr ? -1 : pclose(encoded);
    unlink(name);
    if (status != 0 || out.size() != json.size())
      throw Error(fmt::format("\"{}\" did not encode the objects", command));
    return out;
  };
}

std::shared_ptr<const Corpus> Corpora::get(const ObjectType& type, std::size_t bytes,
                                           bool protobuf) {
  const std::lock_guard lock(mutex_);
  auto& place = made_[{&type, bytes, protobuf}];
  if (place) return place;
  std::vector<std::string> objects;
  for (std::size_t i = 0; i < kVariants; ++i) objects.push_back(type.json(i, bytes));
  auto corpus = std::make_shared<Corpus>();
  const bool built_in = type.group_version.find("example.com") == std::string_view::npos;
  if (protobuf && built_in && encoder_) {
    for (const auto& encoded : encoder_(objects)) {
      auto object = without_envelope(encoded);
      if (!object) throw Error("the encoder did not write the Kubernetes protobuf encoding");
      corpus->protobuf.emplace_back(std::move(*object));
    }
  }
  for (auto& object : objects) corpus->json.emplace_back(std::move(object));
  return place = std::move(corpus);
}

}  // namespace lookout::bench
