#include "apiserver/endpoints/patch_problems.h"

#include <fmt/format.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "lookout/api/detail/walk_json.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::size_t kMaxPatchProblems = 100;

class Finder : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Finder> {
 public:
  explicit Finder(PatchForm form) : form_(form) {}

  std::vector<std::string> problems;

  bool Default() {
    begin_value();
    return true;
  }
  bool StartObject() { return open(false); }
  bool EndObject(rapidjson::SizeType /*members*/) { return close(); }
  bool StartArray() { return open(true); }
  bool EndArray(rapidjson::SizeType /*elements*/) { return close(); }

  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    const std::string_view name(text, size);
    Frame& frame = frames_.back();
    path_.resize(frame.path);
    if (!path_.empty()) path_ += '.';
    path_ += name;
    if (!frame.names.emplace(name).second) {
      report("duplicate");
    } else if (is_operation() && std::ranges::find(kMembers, name) == kMembers.end()) {
      report("unknown");
    }
    return true;
  }

 private:
  static constexpr std::array<std::string_view, 4> kMembers = {"op", "path", "from", "value"};

  struct Frame {
    bool array = false;
    std::size_t path = 0;  // the length of this value's path in path_
    std::size_t next = 0;  // in an array: the index of the next element
    std::unordered_set<std::string> names;
  };

  /// Whether the innermost object is an element of the patch.
  bool is_operation() const { return form_ == PatchForm::kOperations && frames_.size() == 2; }

  void begin_value() {
    if (frames_.empty() || !frames_.back().array) return;
    Frame& frame = frames_.back();
    path_.resize(frame.path);
    path_ += fmt::format("[{}]", frame.next++);
  }
  bool open(bool array) {
    begin_value();
    frames_.push_back({.array = array, .path = path_.size(), .names = {}});
    return true;
  }
  bool close() {
    frames_.pop_back();
    return true;
  }

  void report(std::string_view what) {
    const std::string_view prefix = form_ == PatchForm::kOperations ? "json patch " : "";
    std::string problem = fmt::format("{}{} field \"{}\"", prefix, what, path_);
    if (problems.size() == kMaxPatchProblems ||
        std::ranges::find(problems, problem) != problems.end())
      return;
    problems.push_back(std::move(problem));
  }

  const PatchForm form_;
  std::vector<Frame> frames_;
  std::string path_;
};

}  // namespace

std::vector<std::string> find_patch_problems(std::string_view json, PatchForm form) {
  Finder finder(form);
  api::detail::walk_json(json, finder);
  return std::move(finder.problems);
}

}  // namespace lookout::apiserver::endpoints
