#include "rest/warnings.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <utility>

#include "lookout/base/base64.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/numbers.h"

namespace lookout::rest::detail {
namespace {

// The code of Kubernetes' warnings; all others are for HTTP caches of older RFCs.
constexpr int kMiscellaneous = 299;
// The number of remembered texts, which come from outside. Then the set is cleared.
constexpr std::size_t kMostTold = 1000;

/// Reads a header from the start.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool at_end() const { return text_.empty(); }
  void skip_space() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// Up to a space.
  std::string_view word() {
    const std::string_view out = text_.substr(0, text_.find(' '));
    text_.remove_prefix(out.size());
    return out;
  }
  std::optional<std::string> quoted() {
    if (!take('"')) return std::nullopt;
    std::string out;
    while (!text_.empty()) {
      char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return out;
      if (c == '\\') {
        if (text_.empty()) break;
        c = text_.front();
        text_.remove_prefix(1);
      }
      out += c;
    }
    return std::nullopt;
  }

 private:
  std::string_view text_;
};

std::optional<std::string> decode_q(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') {
      out += ' ';
    } else if (text[i] == '=') {
      if (text.size() - i < 3) return std::nullopt;
      unsigned char byte = 0;
      const auto parsed = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
      if (parsed.ec != std::errc{} || parsed.ptr != text.data() + i + 3) return std::nullopt;
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Decodes "=?utf-8?q?...?=" at the start of the text (RFC 2047). Also returns its length.
std::optional<std::pair<std::string, std::size_t>> encoded_word(std::string_view text) {
  constexpr std::size_t kHead = 10;  // =?utf-8?q?
  if (text.size() < kHead + 2) return std::nullopt;
  std::string head(text.substr(0, kHead));
  std::transform(head.begin(), head.end(), head.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const bool q = head == "=?utf-8?q?";
  if (!q && head != "=?utf-8?b?") return std::nullopt;
  const std::size_t end = text.find("?=", kHead);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view body = text.substr(kHead, end - kHead);
  auto decoded = q ? decode_q(body) : decode_base64(body);
  if (!decoded) return std::nullopt;
  return std::pair(std::move(*decoded), end + 2);
}

std::string decode_words(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (const auto word = encoded_word(text)) {
      out += word->first;
      text.remove_prefix(word->second);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

bool printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

/// 299 - "text" "date"; the date is ignored.
std::optional<Warning> take_warning(Reader& reader) {
  Warning out;
  const std::string_view code = reader.word();
  out.code = base::parse_number<int>(code).value_or(-1);
  if (code.size() != 3 || out.code < 0) return std::nullopt;
  reader.skip_space();
  out.agent = reader.word();
  reader.skip_space();
  const auto text = reader.quoted();
  if (out.agent.empty() || !text) return std::nullopt;
  out.text = decode_words(*text);
  if (!printable(out.agent) || !printable(out.text)) return std::nullopt;
  reader.skip_space();
  reader.quoted();
  reader.skip_space();
  return out;
}

}  // namespace

std::vector<Warning> parse_warnings(std::string_view header) {
  std::vector<Warning> out;
  Reader reader(header);
  reader.skip_space();
  while (!reader.at_end()) {
    auto warning = take_warning(reader);
    if (!warning) break;
    out.push_back(std::move(*warning));
    if (!reader.take(',')) break;
    reader.skip_space();
  }
  return out;
}

bool Warnings::is_new(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (told_.size() >= kMostTold) told_.clear();
  return told_.insert(text).second;
}

void Warnings::tell(const std::vector<std::string>& headers, const std::string& request) {
  for (const std::string& header : headers) {
    for (Warning& warning : parse_warnings(header)) {
      if (warning.code != kMiscellaneous || warning.text.empty() || !is_new(warning.text)) continue;
      warning.request = request;
      if (!handler_) {
        log::warn("{}: the server warns: {}", request, warning.text);
        continue;
      }
      try {
        handler_(warning);
      } catch (const std::exception& e) {
        log::error("the warning handler threw: {}", e.what());
      } catch (...) {
        log::error("the warning handler threw");
      }
    }
  }
}

}  // namespace lookout::rest::detail
