#include "lookout/base/prometheus_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "lookout/base/enum_names.h"

namespace lookout::metrics {
namespace {

using Type = Sample::Type;

std::string_view name_of(Type type) {
  static constexpr auto kNames = base::enum_names<Type>({{Type::kCounter, "counter"},
                                                         {Type::kGauge, "gauge"},
                                                         {Type::kSummary, "summary"},
                                                         {Type::kHistogram, "histogram"}});
  return kNames.name_of(type, "untyped");
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

/// Adds another component's sample: counters are summed; a gauge takes the last value.
void add(Sample& to, const Sample& more) {
  if (to.type == Type::kGauge) {
    to.value = more.value;
    return;
  }
  to.value += more.value;
  to.count += more.count;
  to.sum += more.sum;
  for (std::size_t i = 0; i < std::min(to.buckets.size(), more.buckets.size()); ++i)
    to.buckets[i].second += more.buckets[i].second;
}

/// Merges samples with equal labels, which Prometheus rejects. (Two webhook servers of a manager have
/// the same counters.)
std::vector<Sample> merged(const std::vector<const Sample*>& samples) {
  std::vector<Sample> out;
  std::map<decltype(Sample::labels), std::size_t> places;
  for (const Sample* sample : samples) {
    const auto [place, is_new] = places.try_emplace(sample->labels, out.size());
    if (is_new) {
      out.push_back(*sample);
    } else {
      add(out[place->second], *sample);
    }
  }
  return out;
}

class Writer {
 public:
  void family(const std::vector<Sample>& samples) {
    const Sample& first = samples.front();
    fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", first.name,
                   escaped(first.help, false), first.name, name_of(first.type));
    for (const Sample& sample : samples) write(sample);
  }
  std::string take() { return std::move(out_); }

 private:
  void write(const Sample& sample) {
    if (sample.type == Type::kCounter || sample.type == Type::kGauge)
      return line(sample, "", number(sample.value));
    if (sample.type == Type::kHistogram) {
      for (const auto& [bound, count] : sample.buckets)
        line(sample, "_bucket", std::to_string(count), number(bound));
      line(sample, "_bucket", std::to_string(sample.count), "+Inf");
    }
    line(sample, "_sum", number(sample.sum));
    line(sample, "_count", std::to_string(sample.count));
  }

  void line(const Sample& sample, std::string_view suffix, const std::string& value,
            const std::string& bound = {}) {
    out_ += sample.name;
    out_ += suffix;
    char before = '{';
    const auto label = [&](std::string_view name, std::string_view text) {
      fmt::format_to(std::back_inserter(out_), "{}{}=\"{}\"", before, name, escaped(text, true));
      before = ',';
    };
    for (const auto& [name, text] : sample.labels) label(name, text);
    if (!bound.empty()) label("le", bound);
    if (before == ',') out_ += '}';
    fmt::format_to(std::back_inserter(out_), " {}\n", value);
  }

  std::string out_;
};

}  // namespace

std::string prometheus_text(const std::vector<Sample>& samples) {
  std::map<std::string_view, std::vector<const Sample*>> families;
  for (const auto& sample : samples) families[sample.name].push_back(&sample);
  Writer writer;
  for (const auto& [name, members] : families) writer.family(merged(members));
  return writer.take();
}

}  // namespace lookout::metrics
