#include "apiserver/endpoints/indentation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "apiserver/endpoints/negotiation.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::size_t kIndentWidth = 2;
constexpr std::string_view kIndentable = "application/json";

/// A list that is indented while it is sent.
class IndentedStream final : public http::BodyStream {
 public:
  explicit IndentedStream(std::unique_ptr<http::BodyStream> source) : source_(std::move(source)) {}

  Awaitable<bool> next(std::vector<http::Piece>& pieces) override {
    if (!source_->cut_off) source_->cut_off = cut_off;
    const bool more = co_await source_->next(pieces);
    for (http::Piece& piece : pieces) {
      auto indented = std::make_shared<std::string>();
      indenter_.add(*piece, *indented);
      piece = std::move(indented);
    }
    co_return more;
  }
  void end() override { source_->end(); }
  void on_slow_client() override { source_->on_slow_client(); }

 private:
  const std::unique_ptr<http::BodyStream> source_;
  JsonIndenter indenter_;
};

}  // namespace

bool wants_indentation(const http::Request& request) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "true", "True", "TRUE"};
  if (const auto pretty = request.parameter("pretty"); pretty && !pretty->empty())
    return std::ranges::find(kTrue, *pretty) != kTrue.end();
  const std::string_view agent = request.header("user-agent");
  if (agent.starts_with("curl") || agent.starts_with("Wget") || agent.starts_with("Mozilla/5.0"))
    return true;
  const std::vector<MediaRange> ranges = parse_accept(request.header("accept"));
  const auto json =
      std::ranges::find_if(ranges, [](const MediaRange& range) { return covers_json(range.type); });
  return json != ranges.end() && json->parameter("pretty") == "1";
}

void JsonIndenter::begin_line(std::string& out) const {
  out += '\n';
  out.append(depth_ * kIndentWidth, ' ');
}

void JsonIndenter::add(std::string_view json, std::string& out) {
  for (const char c : json) {
    if (in_string_) {
      out += c;
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    const bool closes = c == '}' || c == ']';
    const bool empty = std::exchange(opened_, false);
    if (closes) --depth_;
    if (closes != empty) begin_line(out);
    out += c;
    if (c == '{' || c == '[') {
      ++depth_;
      opened_ = true;
    } else if (c == ',') {
      begin_line(out);
    } else if (c == ':') {
      out += ' ';
    } else if (c == '"') {
      in_string_ = true;
    }
  }
}

void indent(http::Response& response) {
  if (!response.content_type.starts_with(kIndentable)) return;
  if (response.stream != nullptr) {
    if (response.stream->is_open_ended()) return;
    response.stream = std::make_unique<IndentedStream>(std::move(response.stream));
    return;
  }
  std::string out;
  JsonIndenter().add(response.body, out);
  response.body = std::move(out);
}

}  // namespace lookout::apiserver::endpoints
