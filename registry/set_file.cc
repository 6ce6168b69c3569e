#include "lookout/registry/set_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "lookout/base/detail/log.h"
#include "lookout/base/json_text.h"

namespace lookout::registry {
namespace {

constexpr int kFormat = 1;
constexpr off_t kMaxSize = 64 << 20;
/// In nanoseconds, later times overflow (year 2262).
constexpr std::int64_t kLastMs = std::numeric_limits<std::int64_t>::max() / 1'000'000;

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

std::string encode(const InstanceSet& set) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  writer.Key("format");
  writer.Int(kFormat);
  base::write_text(writer, "service", set.service());
  writer.Key("written");  // in milliseconds since 1970
  writer.Int64(std::chrono::duration_cast<std::chrono::milliseconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count());
  writer.Key("instances");
  writer.StartArray();
  for (const auto& instance : set) {
    writer.StartObject();
    base::write_text(writer, "id", instance.id);
    base::write_text(writer, "name", instance.name);
    base::write_text(writer, "version", instance.version);
    base::write_text(writer, "origin", instance.origin);
    base::write_text(writer, "zone", instance.zone);
    writer.Key("ready");
    writer.Bool(instance.ready);
    writer.Key("metadata");
    writer.StartObject();
    for (const auto& [key, value] : instance.metadata) base::write_text(writer, key, value);
    writer.EndObject();
    writer.Key("endpoints");
    writer.StartArray();
    for (const auto& endpoint : instance.endpoints) {
      writer.StartObject();
      base::write_text(writer, "url", endpoint.text());
      writer.Key("announced");
      writer.Bool(endpoint.announced());
      writer.EndObject();
    }
    writer.EndArray();
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

class FileFreshness : public FreshnessSource {
 public:
  FileFreshness(std::chrono::system_clock::time_point written, const std::string& path)
      : known_{false, written,
               "the API server has not answered yet: the set was read from " + path} {}
  Freshness freshness() const override { return known_; }

 private:
  const Freshness known_;
};

using Value = rapidjson::Value;

std::string text_of(const Value& text) { return {text.GetString(), text.GetStringLength()}; }

std::string text_of(const Value& object, const char* name) {
  const auto it = object.FindMember(name);
  return it == object.MemberEnd() || !it->value.IsString() ? std::string() : text_of(it->value);
}

bool bool_of(const Value& object, const char* name, bool otherwise) {
  const auto it = object.FindMember(name);
  return it == object.MemberEnd() || !it->value.IsBool() ? otherwise : it->value.GetBool();
}

ServiceInstance instance_of(const Value& value) {
  ServiceInstance out;
  out.id = text_of(value, "id");
  out.name = text_of(value, "name");
  out.version = text_of(value, "version");
  out.origin = text_of(value, "origin");
  out.zone = text_of(value, "zone");
  out.ready = bool_of(value, "ready", true);
  if (const auto it = value.FindMember("metadata");
      it != value.MemberEnd() && it->value.IsObject()) {
    for (const auto& member : it->value.GetObject()) {
      if (member.value.IsString()) out.metadata[text_of(member.name)] = text_of(member.value);
    }
  }
  if (const auto it = value.FindMember("endpoints");
      it != value.MemberEnd() && it->value.IsArray()) {
    for (const auto& endpoint : it->value.GetArray()) {
      if (!endpoint.IsObject()) continue;
      out.endpoints.emplace_back(text_of(endpoint, "url"));
      out.endpoints.back().set_announced(bool_of(endpoint, "announced", true));
    }
  }
  return out;
}

/// nullopt if the file does not exist.
std::optional<std::string> contents(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return std::nullopt;
    throw Error(std::strerror(errno));
  }
  struct Close {
    int file;
    ~Close() { ::close(file); }
  } const close{file};
  struct stat about {};
  if (::fstat(file, &about) != 0) throw Error(std::strerror(errno));
  if (!S_ISREG(about.st_mode) || about.st_size > kMaxSize)
    throw Error("it is not a regular file, or it is too large");
  std::string out(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t read = 0;
  while (read < out.size()) {
    const auto count = ::read(file, out.data() + read, out.size() - read);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(std::strerror(errno));
    if (count == 0) break;
    read += static_cast<std::size_t>(count);
  }
  out.resize(read);
  return out;
}

InstanceSetPtr decode(const std::string& text, const std::string& path,
                      const std::string& service) {
  rapidjson::Document document;
  // (Iterative, as the file may have any content.)
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) throw Error("it is not a JSON object");
  const auto format = document.FindMember("format");
  if (format == document.MemberEnd() || !format->value.IsInt() ||
      format->value.GetInt() != kFormat) {
    throw Error(fmt::format("its format is not {}", kFormat));
  }
  if (text_of(document, "service") != service) throw Error("it belongs to another service");
  const auto written = document.FindMember("written");
  const auto instances = document.FindMember("instances");
  if (written == document.MemberEnd() || !written->value.IsInt64() ||
      instances == document.MemberEnd() || !instances->value.IsArray()) {
    throw Error("a part of it is missing");
  }
  if (written->value.GetInt64() < 0 || written->value.GetInt64() > kLastMs) {
    throw Error("its time of writing is invalid");
  }
  std::vector<InstancePtr> out;
  for (const auto& value : instances->value.GetArray()) {
    if (!value.IsObject()) throw Error("an instance is not an object");
    out.push_back(std::make_shared<const ServiceInstance>(instance_of(value)));
  }
  const std::chrono::system_clock::time_point when{
      std::chrono::milliseconds(written->value.GetInt64())};
  return InstanceSet::make(service, 0, std::move(out),
                           std::make_shared<const FileFreshness>(when, path));
}

}  // namespace

InstanceSetPtr read_set_file(const std::string& path, const std::string& service) {
  try {
    const auto text = contents(path);
    return text ? decode(*text, path, service) : nullptr;
  } catch (const Error& e) {
    log::warn("registry: cannot use {}: {}", path, e.what());
    return nullptr;
  }
}

void write_set_file(const std::string& path, const InstanceSet& set) {
  const std::string text = encode(set);
  // A temporary file per writer, as several balancers may use the same file.
  constexpr std::string_view kSuffix = ".new";
  std::string beside = fmt::format("{}.XXXXXX{}", path, kSuffix);
  const auto failed = [&](const char* what) {
    const std::string why = std::strerror(errno);
    ::unlink(beside.c_str());
    throw Error(fmt::format("cannot {} {}: {}", what, beside, why));
  };
  const int file = ::mkostemps(beside.data(), static_cast<int>(kSuffix.size()), O_CLOEXEC);
  if (file < 0) failed("open");
  ::fchmod(file, 0644);
  std::size_t done = 0;
  while (done < text.size()) {
    const auto count = ::write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error = errno;
      ::close(file);
      errno = error;
      failed("write");
    }
    done += static_cast<std::size_t>(count);
  }
  const bool synced = ::fsync(file) == 0;
  const int error = errno;
  const bool closed = ::close(file) == 0;
  if (!synced) errno = error;
  if (!synced || !closed) failed("write");
  if (::rename(beside.c_str(), path.c_str()) != 0) failed("rename");
}

SetFile::SetFile(Discovery& discovery, std::string service, std::string path)
    : subscription_(discovery.subscribe(service, [path =
                                                      std::move(path)](const InstanceSetPtr& set) {
        if (std::none_of(set->begin(), set->end(), [](const auto& one) { return one.ready; }))
          return;
        try {
          write_set_file(path, *set);
        } catch (const Error& e) {
          log::warn("registry: the instances of {} are not saved: {}", set->service(), e.what());
        }
      })) {}

}  // namespace lookout::registry
