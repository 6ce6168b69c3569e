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

/// The encoded variants of a type of object at one size.
struct Corpus {
  std::vector<Stamp> json;
  /// Without envelope, like list items. Empty if the type has no protobuf encoding, or there is no
  /// encoder.
  std::vector<Stamp> protobuf;
};

/// Encodes JSON objects in protobuf, with their envelopes.
using ProtobufEncoder =
    std::function<std::vector<std::string>(const std::vector<std::string>& json)>;

/// A program that reads JSON, one object per line, and writes each object in protobuf, preceded by
/// its length in four bytes: `client-go-peer encode`.
ProtobufEncoder encoder_program(std::string command);

/// All corpora, created on first use. Thread-safe.
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
