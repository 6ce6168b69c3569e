// Decoding, encoding, selectors.
#include <benchmark/benchmark.h>

#include <string>

#include "bench/pods.h"
#include "lookout/api/json.h"
#include "lookout/api/labels.h"
#include "lookout/api/object.h"

namespace lookout {
namespace {

void decode(benchmark::State& state, const api::Projection& projection) {
  const std::string json = bench::pod_json(1);
  api::JsonDecoder decoder(projection);
  std::string text;
  std::size_t memory = 0;
  for (auto _ : state) {
    text.assign(json);  // decoding uses the text up
    const api::Object object = decoder.decode(text);
    memory = object.memory_size();
    benchmark::DoNotOptimize(object.header());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(json.size()));
  state.SetItemsProcessed(state.iterations());
  state.counters["json_bytes"] = static_cast<double>(json.size());
  state.counters["object_bytes"] = static_cast<double>(memory);
}

void BM_Decode(benchmark::State& state) { decode(state, {}); }
BENCHMARK(BM_Decode);

void BM_DecodeWithoutManagedFields(benchmark::State& state) {
  decode(state, api::Projection::without_managed_fields());
}
BENCHMARK(BM_DecodeWithoutManagedFields);

void BM_DecodeFewFields(benchmark::State& state) {
  decode(state, api::Projection::keep(
                    {"metadata.labels", "status.phase", "status.podIP", "spec.containers.ports"}));
}
BENCHMARK(BM_DecodeFewFields);

void BM_ListStream(benchmark::State& state) {
  const std::string json = bench::pod_list_json(1000);
  for (auto _ : state) {
    std::vector<api::Object> items;
    api::JsonListDecoder decoder(
        {}, [&](api::Object item) { items.push_back(std::move(item)); },
        [](const api::MalformedObject&) {});
    for (std::size_t at = 0; at < json.size(); at += 16384) {
      decoder.feed(std::string_view(json).substr(at, 16384));
    }
    if (!decoder.finish() || items.size() != 1000) state.SkipWithError("the list did not decode");
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(json.size()));
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(BM_ListStream)->Unit(benchmark::kMillisecond);

void BM_Encode(benchmark::State& state) {
  const api::Object& pod = bench::pods(1)[0];
  std::size_t size = 0;
  for (auto _ : state) {
    const std::string json = pod.to_json();
    size = json.size();
    benchmark::DoNotOptimize(json.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(size));
}
BENCHMARK(BM_Encode);

void BM_SelectorParse(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(api::labels::parse("app in (web,api),tier=front,!canary"));
}
BENCHMARK(BM_SelectorParse);

void BM_SelectorMatch(benchmark::State& state) {
  const auto& pods = bench::pods(1000);
  const auto selector = api::labels::parse("app in (web,api),tier=front,!canary");
  std::size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(selector.matches(pods[i++ % pods.size()]));
}
BENCHMARK(BM_SelectorMatch);

}  // namespace
}  // namespace lookout
