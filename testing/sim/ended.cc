#include "testing/sim/ended.h"

#include <cstring>

#include "lookout/base/error.h"

namespace lookout::sim {
namespace {

class Writer {
 public:
  void put(std::uint64_t number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put(std::string_view text) {
    put(text.size());
    out_ += text;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) {}

  std::uint64_t number() {
    std::uint64_t out = 0;
    std::memcpy(&out, take(sizeof out).data(), sizeof out);
    return out;
  }
  std::string text() { return std::string(take(number())); }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) throw Error("the result of a world is truncated");
    const std::string_view out = left_.substr(0, size);
    left_.remove_prefix(size);
    return out;
  }

  std::string_view left_;
};

std::uint64_t bits(std::int64_t number) { return static_cast<std::uint64_t>(number); }

void put(Writer& out, const Fault& fault) {
  out.put(static_cast<std::uint64_t>(fault.kind));
  out.put(fault.process);
  out.put(fault.at);
  out.put(bits(fault.status));
  out.put(bits(fault.duration.count()));
  out.put(fault.call);
}

Fault fault_in(Reader& in) {
  Fault out;
  out.kind = static_cast<FaultKind>(in.number());
  out.process = in.text();
  out.at = in.number();
  out.status = static_cast<int>(in.number());
  out.duration = std::chrono::milliseconds(static_cast<std::int64_t>(in.number()));
  out.call = in.text();
  return out;
}

}  // namespace

std::string encode(const Ended& ended) {
  Writer out;
  out.put(ended.violation ? 1 : 0);
  out.put(ended.violation.value_or(""));
  out.put(ended.struck.size());
  for (const Fault& fault : ended.struck) put(out, fault);
  out.put(ended.story);
  out.put(ended.state.size());
  for (const auto& [key, json] : ended.state) {
    out.put(key);
    out.put(json);
  }
  out.put(ended.digest);
  out.put(ended.requests);
  out.put(bits(ended.simulated.count()));
  out.put(ended.trace.size());
  for (const Traced& request : ended.trace) {
    out.put(request.process);
    out.put(request.number);
    out.put(request.method);
    out.put(request.target);
    out.put(bits(request.time.count()));
  }
  return out.take();
}

std::string encode(const Fault& fault) {
  Writer out;
  put(out, fault);
  return out.take();
}

Plan decode_faults(std::string_view text) {
  Plan out;
  for (Reader in(text); !in.at_end();) out.push_back(fault_in(in));
  return out;
}

Ended decode(std::string_view text) {
  Reader in(text);
  Ended out;
  const bool violated = in.number() != 0;
  std::string violation = in.text();
  if (violated) out.violation = std::move(violation);
  for (std::uint64_t left = in.number(); left > 0; --left) out.struck.push_back(fault_in(in));
  out.story = in.text();
  for (std::uint64_t left = in.number(); left > 0; --left) {
    std::string key = in.text();
    out.state.emplace(std::move(key), in.text());
  }
  out.digest = in.number();
  out.requests = in.number();
  out.simulated = Time(static_cast<std::int64_t>(in.number()));
  for (std::uint64_t left = in.number(); left > 0; --left) {
    Traced request;
    request.process = in.text();
    request.number = in.number();
    request.method = in.text();
    request.target = in.text();
    request.time = Time(static_cast<std::int64_t>(in.number()));
    out.trace.push_back(std::move(request));
  }
  return out;
}

}  // namespace lookout::sim
