// The status of certificate signing requests: conditions, and the certificate.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/pem.h"
#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/part_rules.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/time.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::array<std::string_view, 3> kFinal = {"Approved", "Denied", "Failed"};
constexpr std::array<std::string_view, 2> kDecisions = {"Approved", "Denied"};

std::size_t count_of(Value conditions, std::string_view type) {
  const auto elements = conditions.elements();
  return static_cast<std::size_t>(std::count_if(elements.begin(), elements.end(), [&](Value one) {
    return one["type"].as_string() == type;
  }));
}

/// The error in the certificates; empty if they are valid.
std::string fault_of(const std::string& pem) {
  if (pem.empty()) return {};
  const std::vector<PemBlock> blocks = read_pem(pem);
  for (const PemBlock& block : blocks) {
    if (block.name != "CERTIFICATE") {
      return fmt::format("only CERTIFICATE PEM blocks are allowed, found {}",
                         api::detail::quote(block.name));
    }
    if (!block.headers.empty()) return "no PEM block headers are permitted";
    const auto* const begin = reinterpret_cast<const unsigned char*>(block.data.data());
    const unsigned char* next = begin;
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        d2i_X509(nullptr, &next, static_cast<long>(block.data.size())), X509_free);
    ERR_clear_error();
    if (certificate == nullptr || next != begin + block.data.size())
      return "x509: malformed certificate";
  }
  return blocks.empty() ? "must contain at least one CERTIFICATE PEM block" : "";
}

std::string fault_of(Value certificate) {
  return fault_of(decode_base64(certificate.as_string()).value_or(std::string()));
}

void check_signing_conditions(const Field& conditions, Value before) {
  const auto old = before.elements();
  std::set<std::string_view> old_types;
  for (const Value one : old) old_types.insert(one["type"].as_string());
  // Existing violations are tolerated.
  const bool may_be_empty = old_types.contains("");
  const bool may_repeat = old_types.size() < before.size();
  const bool may_be_both = old_types.contains("Approved") && old_types.contains("Denied");
  std::set<std::string_view> seen;
  conditions.each([&](const Field& condition) {
    const Field type = condition["type"];
    const Field status = condition["status"];
    if (!may_be_empty) type.check_present();
    if (status.check_present()) {
      if (is_one_of(type.text(), kFinal)) {
        status.check_word({"True"});
      } else {
        status.check_word({"False", "True", "Unknown"});
      }
    }
    if (!may_be_both && is_one_of(type.text(), kDecisions) &&
        seen.contains(type.text() == "Approved" ? "Denied" : "Approved")) {
      type.named(conditions.path())
          .invalid_text("Approved and Denied conditions are mutually exclusive");
    }
    if (!seen.insert(type.text()).second && !may_repeat) type.duplicate();
  });
}

/// The rules for the status and for the approval.
void check_signing_status(const Object& request, const Object& old, bool approves, Causes& causes) {
  const Field status(request["status"], "status", causes);
  const Value before = old["status"];
  const Field conditions = status["conditions"];
  const Field certificate = status["certificate"];
  const Value old_certificate = before["certificate"];
  const bool same = certificate.text() == old_certificate.as_string();
  check_signing_conditions(conditions, before["conditions"]);
  if (!same && fault_of(old_certificate).empty()) {
    if (const std::string fault = fault_of(*certificate); !fault.empty())
      causes.push_back(rules::invalid(certificate.path(), "<certificate data>", fault));
  }
  for (const std::string_view type : kFinal) {
    if (count_of(*conditions, type) < count_of(before["conditions"], type)) {
      conditions.forbidden(fmt::format("updates may not remove a condition of type \"{}\"", type));
    }
  }
  if (approves) return;
  for (const std::string_view type : kDecisions) {
    if (count_of(*conditions, type) > count_of(before["conditions"], type))
      conditions.forbidden(fmt::format("updates may not add a condition of type \"{}\"", type));
  }
  if (!same && !old_certificate.as_string().empty())
    certificate.forbidden("updates may not modify existing certificate content");
}

std::vector<json::Value*> conditions_of(json::Value& request, std::string_view type) {
  std::vector<json::Value*> out;
  if (json::Value* status = json::find(request, "status");
      status != nullptr && status->IsObject()) {
    json::for_each(*status, "conditions", [&](json::Value& one) {
      if (one.IsObject() && (type.empty() || json::text(one, "type") == type)) out.push_back(&one);
    });
  }
  return out;
}

/// Sets missing times of conditions to the previous ones, or to the current time.
void set_times(json::Value& request, json::Value& old, Allocator& allocator) {
  const std::string now =
      api::format_time(std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  for (json::Value* condition : conditions_of(request, "")) {
    if (json::text(*condition, "lastUpdateTime").empty())
      json::set(*condition, "lastUpdateTime", now, allocator);
    if (!json::text(*condition, "lastTransitionTime").empty()) continue;
    std::string time = now;
    for (const json::Value* other : conditions_of(old, json::text(*condition, "type"))) {
      const std::string_view before = json::text(*other, "lastTransitionTime");
      if (json::text(*other, "status") != json::text(*condition, "status") || before.empty())
        continue;
      time = before;
      break;
    }
    json::set(*condition, "lastTransitionTime", time, allocator);
  }
}

void keep_all_but_conditions(json::Value& request, const json::Value& old, Allocator& allocator) {
  json::Value before = json::deep_copy(old, allocator);
  set_times(request, before, allocator);
  json::Value conditions(rapidjson::kNullType);
  if (json::Value* status = json::find(request, "status");
      status != nullptr && status->IsObject()) {
    if (json::Value* wanted = json::find(*status, "conditions")) conditions = std::move(*wanted);
  }
  json::take(request, old, "status", allocator);
  json::Value& status = json::child(request, "status", allocator);
  if (conditions.IsNull()) {
    json::erase(status, "conditions");
  } else {
    json::set(status, "conditions", std::move(conditions), allocator);
  }
}

void validate_approval(const Object& request, const Object& old, Causes& causes) {
  check_signing_status(request, old, true, causes);
}

}  // namespace

const PartRules approval_rules = {keep_all_but_conditions, validate_approval};

/// An update of the status cannot change the conditions that approve or deny the request.
void prepare_signing_request_status(json::Value& request, const json::Value& old,
                                    Allocator& allocator) {
  json::Value before = json::deep_copy(old, allocator);
  for (const std::string_view type : kDecisions) {
    const auto now = conditions_of(request, type);
    const auto then = conditions_of(before, type);
    if (now.size() != then.size()) continue;
    for (std::size_t i = 0; i < now.size(); ++i) *now[i] = json::deep_copy(*then[i], allocator);
  }
  set_times(request, before, allocator);
}

void validate_signing_request_status(const Object& request, const Object& old, Causes& causes) {
  check_signing_status(request, old, false, causes);
}

}  // namespace lookout::apiserver::resources
