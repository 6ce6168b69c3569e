#include "cmd/sim/test_program.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cmd/start_program.h"
#include "lookout/base/error.h"
#include "lookout/base/numbers.h"

extern char** environ;

namespace lookout::cmd::sim {
namespace {

constexpr std::size_t kLogShown = 6'000;

std::string read(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string end_of(std::string log) {
  return log.size() > kLogShown ? "..." + log.substr(log.size() - kLogShown) : log;
}

/// This process's environment with these seeds only.
std::vector<std::string> environment(const std::optional<Seeds>& seeds) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view one = *at;
    if (!one.starts_with("LOOKOUT_SIM_SEED") && !one.starts_with("GTEST_")) out.emplace_back(one);
  }
  if (seeds) out.push_back("LOOKOUT_SIM_SEEDS=" + seeds->text());
  return out;
}

/// Describes how a process has ended; empty for status 0.
std::string describe(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({}) ended it", WTERMSIG(status), strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 127) return "it cannot be run";
  if (WEXITSTATUS(status) != 0) return fmt::format("it ended with status {}", WEXITSTATUS(status));
  return {};
}

/// Reports of explore() begin with "NAME: seed 17: ...", messages of the simulator with "sim: seed 17: ...".
std::optional<std::uint64_t> seed_in(std::string_view text) {
  constexpr std::string_view kBefore = "seed ";
  for (std::size_t at = text.find(kBefore); at != std::string_view::npos;
       at = text.find(kBefore, at + 1)) {
    const char* begin = text.data() + at + kBefore.size();
    std::uint64_t out = 0;
    const auto parsed = std::from_chars(begin, text.data() + text.size(), out);
    if (parsed.ec == std::errc{} && parsed.ptr < text.data() + text.size() && *parsed.ptr == ':')
      return out;
  }
  return std::nullopt;
}

std::uint64_t number(const rapidjson::Value& test, const char* name) {
  const auto found = test.FindMember(name);
  if (found == test.MemberEnd() || !found->value.IsString()) return 0;
  const std::string_view text(found->value.GetString(), found->value.GetStringLength());
  return base::parse_number<std::uint64_t>(text).value_or(0);
}

/// The test in GoogleTest's list of suites; null if it has not run.
const rapidjson::Value* find_test(const rapidjson::Value& document) {
  const auto suites = document.FindMember("testsuites");
  if (suites == document.MemberEnd() || !suites->value.IsArray()) return nullptr;
  for (const auto& suite : suites->value.GetArray()) {
    const auto tests = suite.FindMember("testsuite");
    if (tests == suite.MemberEnd() || !tests->value.IsArray()) continue;
    for (const auto& test : tests->value.GetArray()) {
      if (test.IsObject()) return &test;
    }
  }
  return nullptr;
}

/// Removes the source location, which is the macro's.
std::string without_place(std::string message) {
  constexpr std::string_view kFailed = "\nFailed\n";
  const std::size_t at = message.find(kFailed);
  if (at != std::string::npos && message.find('\n') == at) message.erase(0, at + kFailed.size());
  return message;
}

}  // namespace

TestRun::TestRun(const std::string& program, const std::string& test, Seeds seeds,
                 const std::string& folder)
    : test_(test),
      seeds_(seeds),
      log_(fmt::format("{}/{}-{}.log", folder, std::hash<std::string>()(test), seeds.first)),
      json_(fmt::format("{}/{}-{}.json", folder, std::hash<std::string>()(test), seeds.first)) {
  child_ = start_program(
      {program, "--gtest_filter=" + test, "--gtest_output=json:" + json_, "--gtest_color=no"}, log_,
      environment(seeds));
}

TestRun::~TestRun() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  unlink(log_.c_str());
  unlink(json_.c_str());
}

std::optional<TestResult> TestRun::poll() {
  int status = 0;
  if (child_ < 0 || waitpid(child_, &status, WNOHANG) != child_) return std::nullopt;
  child_ = -1;
  TestResult out = parse_result(read(json_));
  // A world that crashed has printed its reason to the log.
  constexpr std::string_view kLastWords = "last output is above";
  if (out.report.find(kLastWords) != std::string::npos)
    out.report = end_of(read(log_)) + "\n" + out.report;
  if (!out.passed && out.report.empty()) {
    // The program has crashed or printed no result.
    out.has_worlds = true;
    const std::string log = end_of(read(log_));
    const std::string why = describe(status);
    out.seed = seed_in(log);
    out.report = fmt::format("{}: seeds {}: {}; it has printed:\n\n{}", test_, seeds_.text(),
                             why.empty() ? "it is not a GoogleTest program" : why, log);
  }
  return out;
}

std::vector<std::string> list_tests(const std::string& program, const std::string& filter,
                                    const std::string& folder) {
  const std::string log = folder + "/tests";
  const pid_t child = start_program({program, "--gtest_list_tests", "--gtest_filter=" + filter},
                                    log, environment(std::nullopt));
  int status = 0;
  waitpid(child, &status, 0);
  const std::string printed = read(log);
  const std::string why = describe(status);
  if (!why.empty())
    throw Error(fmt::format("{} does not list its tests: {}\n{}", program, why,
                            printed.substr(0, kLogShown)));
  return parse_list(printed);
}

std::vector<std::string> parse_list(std::string_view text) {
  std::vector<std::string> out;
  std::string suite;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    // After it: the type or the value of a parameter.
    line = line.substr(0, line.find("  #"));
    if (line.starts_with("  ")) {
      if (!suite.empty()) out.push_back(suite + std::string(line.substr(2)));
    } else if (line.ends_with('.') && line.find(' ') == std::string_view::npos) {
      suite = line;
    } else {
      suite.clear();
    }
  }
  return out;
}

TestResult parse_result(const std::string& json) {
  TestResult out;
  rapidjson::Document document;
  document.Parse(json.c_str(), json.size());
  if (document.HasParseError() || !document.IsObject()) return out;
  const rapidjson::Value* test = find_test(document);
  if (test == nullptr) return out;
  out.has_worlds = test->HasMember("worlds");
  out.worlds = number(*test, "worlds");
  out.requests = number(*test, "requests");
  const auto failures = test->FindMember("failures");
  if (failures == test->MemberEnd() || !failures->value.IsArray()) {
    out.passed = true;
    return out;
  }
  for (const auto& one : failures->value.GetArray()) {
    const auto message = one.FindMember("failure");
    if (message != one.MemberEnd() && message->value.IsString())
      out.report += without_place(message->value.GetString());
  }
  out.seed = seed_in(out.report);
  out.without_faults = out.report.find(": without any fault: ") != std::string::npos;
  return out;
}

}  // namespace lookout::cmd::sim
