// Decoding and encoding: pods of several sizes, and every kind recorded from a real server.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "bench/objects.h"
#include "lookout/api/json.h"
#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/protobuf.h"

namespace lookout {
namespace {

void report(benchmark::State& state, std::size_t json_bytes, std::size_t object_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(json_bytes));
  state.SetItemsProcessed(state.iterations());
  state.counters["json_bytes"] = static_cast<double>(json_bytes);
  state.counters["object_bytes"] = static_cast<double>(object_bytes);
}

void decode(benchmark::State& state, const std::string& json, const api::Projection& projection) {
  std::string text;
  std::size_t memory = 0;
  for (auto _ : state) {
    text.assign(json);  // decoding consumes the text
    // (A shared decoder would recognise the repeated text; decode_many() measures that.)
    api::JsonDecoder decoder(projection);
    const api::Object object = decoder.decode(text);
    if (!object) return state.SkipWithError(decoder.error().c_str());
    memory = object.memory_size();
    benchmark::DoNotOptimize(object.header());
  }
  report(state, json.size(), memory);
}

/// A thousand pods with the differences of a real cluster, one after another.
void decode_many(benchmark::State& state) {
  std::vector<std::string> texts;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < 1000; ++i) bytes += texts.emplace_back(bench::pod_json(i)).size();
  std::string text;
  for (auto _ : state) {
    api::JsonDecoder decoder;
    for (const auto& json : texts) {
      text.assign(json);
      const api::Object object = decoder.decode(text);
      benchmark::DoNotOptimize(object.header());
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(texts.size()));
}

void encode(benchmark::State& state, const std::string& json) {
  const api::Object object = api::Object::parse(json);
  std::size_t size = 0;
  for (auto _ : state) {
    const std::string out = object.to_json();
    size = out.size();
    benchmark::DoNotOptimize(out.data());
  }
  report(state, size, object.memory_size());
}

void report_protobuf(benchmark::State& state, std::size_t bytes, std::size_t object_bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.SetItemsProcessed(state.iterations());
  state.counters["protobuf_bytes"] = static_cast<double>(bytes);
  state.counters["object_bytes"] = static_cast<double>(object_bytes);
}

/// In its envelope, as in a watch; empty for kinds without protobuf.
std::string to_protobuf(const std::string& json) {
  api::ProtobufEncoder encoder;
  std::string out;
  encoder.encode(api::Object::parse(json), out);
  return out;
}

void decode_protobuf(benchmark::State& state, const std::string& bytes,
                     const api::Projection& projection) {
  api::ProtobufDecoder decoder(projection);
  std::size_t memory = 0;
  for (auto _ : state) {
    const api::Object object = decoder.decode(bytes);
    if (!object) return state.SkipWithError(decoder.error().c_str());
    memory = object.memory_size();
    benchmark::DoNotOptimize(object.header());
  }
  report_protobuf(state, bytes.size(), memory);
}

void encode_protobuf(benchmark::State& state, const std::string& json) {
  const api::Object object = api::Object::parse(json);
  api::ProtobufEncoder encoder;
  std::string out;
  for (auto _ : state) {
    out.clear();
    if (!encoder.encode(object, out)) return state.SkipWithError("it has no protobuf");
    benchmark::DoNotOptimize(out.data());
  }
  report_protobuf(state, out.size(), object.memory_size());
}

/// Decodes a list in pieces of curl's size (client-go: ReflectorList).
void decode_list(benchmark::State& state, const std::string& json, std::size_t count) {
  for (auto _ : state) {
    std::vector<api::Object> items;
    api::JsonListDecoder decoder(
        {}, [&](api::Object item) { items.push_back(std::move(item)); },
        [](const api::MalformedObject&) {});
    for (std::size_t at = 0; at < json.size(); at += 16384)
      decoder.feed(std::string_view(json).substr(at, 16384));
    if (!decoder.finish() || items.size() != count)
      return state.SkipWithError("the list did not decode");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(json.size()));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

const api::Projection& few_fields() {
  static const auto kProjection = api::Projection::keep(
      {"metadata.labels", "status.phase", "status.podIP", "spec.containers.ports"});
  return kProjection;
}

std::string first_item(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::string out;
  api::JsonListDecoder decoder(
      {},
      [&](const api::Object& item) {
        if (out.empty()) out = item.to_json();
      },
      [](const api::MalformedObject&) {});
  decoder.feed(text.str());
  return out;
}

/// Both encodings, with and without projection.
void register_codec(const std::string& suffix, const std::string& name, const std::string& json) {
  const auto add = [&](const std::string& what, auto f) {
    benchmark::RegisterBenchmark(fmt::format("{}{}/{}", what, suffix, name).c_str(), f);
  };
  const auto unmanaged = api::Projection::without_managed_fields();
  add("Decode", [=](benchmark::State& state) { decode(state, json, {}); });
  add("DecodeWithoutManagedFields",
      [=](benchmark::State& state) { decode(state, json, unmanaged); });
  add("DecodeFewFields", [=](benchmark::State& state) { decode(state, json, few_fields()); });
  add("Encode", [=](benchmark::State& state) { encode(state, json); });
  const std::string bytes = to_protobuf(json);
  if (bytes.empty()) return;
  add("DecodeProtobuf", [=](benchmark::State& state) { decode_protobuf(state, bytes, {}); });
  add("DecodeProtobufWithoutManagedFields",
      [=](benchmark::State& state) { decode_protobuf(state, bytes, unmanaged); });
  add("DecodeProtobufFewFields",
      [=](benchmark::State& state) { decode_protobuf(state, bytes, few_fields()); });
  add("EncodeProtobuf", [=](benchmark::State& state) { encode_protobuf(state, json); });
}

bool register_all() {
  for (const std::size_t bytes : {1000u, 6200u, 30000u}) {
    const std::string json = bench::pod_json(1, bytes);
    register_codec("", "pod_" + std::to_string(bytes), json);
  }
  const std::filesystem::path recorded = LOOKOUT_TESTDATA "/kube-1.36/list";
  for (const auto& entry : std::filesystem::directory_iterator(recorded)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || name.find('.', name.rfind('_')) != std::string::npos)
      continue;  // tables and metadata only
    const std::string json = first_item(entry.path());
    if (!json.empty()) register_codec("Recorded", name, json);
  }
  benchmark::RegisterBenchmark("DecodeMany/pod_6200", decode_many)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("ReflectorList/PodList", [](benchmark::State& state) {
    decode_list(state, bench::pod_list_json(1000), 1000);
  })->Unit(benchmark::kMillisecond);
  return true;
}

const bool registered = register_all();

}  // namespace
}  // namespace lookout
