// Encoded objects, ready to be sent.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "bench/load/objects.h"
#include "bench/load/stamp.h"

namespace lookout::bench {

/// The variants of a type of object at one size, encoded once.
struct Corpus {
  std::vector<Stamp> json;
  /// As the items of a list are: without envelope. Empty if the type has no protobuf encoding, or
  /// nothing here encodes it.
  std::vector<Stamp> protobuf;
};

/// Protobuf for the objects that have it: takes them as JSON, gives them back in their envelopes.
using ProtobufEncoder =
    std::function<std::vector<std::string>(const std::vector<std::string>& json)>;

/// A program that reads JSON, one object a line, and writes each in protobuf after its length in
/// four bytes: `client-go-peer encode`.
ProtobufEncoder encoder_program(std::string command);

/// All there are, made when they are first asked for. May be used from any thread.
class Corpora {
 public:
  explicit Corpora(ProtobufEncoder encoder) : encoder_(std::move(encoder)) {}

  std::shared_ptr<const Corpus> get(const ObjectType& type, std::size_t bytes, bool protobuf);

 private:
  struct Key {
    const ObjectType* type;
    std::size_t bytes;
    bool protobuf;
    auto operator<=>(const Key&) const = default;
  };

  const ProtobufEncoder encoder_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Corpus>> made_;
};

}  // namespace lookout::bench
