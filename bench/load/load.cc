#include "bench/load/load.h"

#include <fmt/format.h>

#include <charconv>

namespace lookout::bench {
namespace {

/// Removes and returns the part of `text` before the separator.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view piece = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return piece;
}

template <class Number>
bool read(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<Load> Load::parse(std::string_view text) {
  Load load;
  while (!text.empty()) {
    std::string_view value = cut(text, ',');
    const std::string_view key = cut(value, '=');
    bool good = true;
    if (key == "count") {
      good = read(value, load.count);
    } else if (key == "bytes") {
      good = read(value, load.bytes);
    } else if (key == "events") {
      good = read(value, load.events);
    } else if (key == "rate") {
      good = read(value, load.rate);
    } else if (key == "delay") {
      good = read(value, load.delay);
    } else if (key == "encoding") {
      load.json_only = value == "json";
    } else {
      good = false;
    }
    if (!good) return std::nullopt;
  }
  return load;
}

std::string Load::path() const {
  return fmt::format("/load/count={},bytes={},events={},rate={},delay={},encoding={}", count, bytes,
                     events, rate, delay, json_only ? "json" : "any");
}

std::optional<LoadRequest> LoadRequest::parse(std::string_view target, std::string_view accept) {
  LoadRequest request;
  std::string_view query = target;
  std::string_view path = cut(query, '?');
  constexpr std::string_view kLoad = "/load/";
  if (path.starts_with(kLoad)) {
    path.remove_prefix(kLoad.size());
    const auto load = Load::parse(cut(path, '/'));
    if (!load) return std::nullopt;
    request.load = *load;
  }
  // .../namespaces/NAME/PLURAL or .../PLURAL
  std::string_view before, last;
  while (!path.empty()) {
    const std::string_view part = cut(path, '/');
    if (before == "namespaces") request.ns = last;
    before = last;
    last = part;
  }
  request.type = object_type(last);
  if (request.type == nullptr) return std::nullopt;
  while (!query.empty()) {
    std::string_view value = cut(query, '&');
    const std::string_view key = cut(value, '=');
    bool good = true;
    if (key == "watch") {
      request.watch = value == "true" || value == "1";
    } else if (key == "sendInitialEvents") {
      request.initial_events = value == "true";
    } else if (key == "limit") {
      good = read(value, request.limit);
    } else if (key == "continue" && !value.empty()) {
      good = read(value, request.offset);
    }
    if (!good) return std::nullopt;
  }
  request.protobuf = !request.load.json_only &&
                     accept.find("application/vnd.kubernetes.protobuf") != std::string_view::npos;
  return request;
}

}  // namespace lookout::bench
