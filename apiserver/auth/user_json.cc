#include "apiserver/auth/user_json.h"

#include <string>
#include <vector>

namespace lookout::apiserver::auth {
namespace {

json::Value list_of(const std::vector<std::string>& texts, json::Allocator& allocator) {
  json::Value out(rapidjson::kArrayType);
  for (const std::string& text : texts) out.PushBack(json::copy_text(text, allocator), allocator);
  return out;
}

}  // namespace

json::Value user_json(const User& user, json::Allocator& allocator) {
  json::Value out(rapidjson::kObjectType);
  json::set(out, "username", user.name, allocator);
  if (!user.uid.empty()) json::set(out, "uid", user.uid, allocator);
  if (!user.groups.empty()) json::set(out, "groups", list_of(user.groups, allocator), allocator);
  if (user.extra.empty()) return out;
  json::Value& extra = json::child(out, "extra", allocator);
  for (const auto& [key, values] : user.extra)
    json::set(extra, key, list_of(values, allocator), allocator);
  return out;
}

}  // namespace lookout::apiserver::auth
