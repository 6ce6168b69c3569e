#include "api/codegen/facts.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

#include "api/codegen/read_file.h"

namespace lookout::codegen {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be opened", path.string()));
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

rapidjson::Document read_json(const std::filesystem::path& path) {
  rapidjson::Document doc;
  doc.Parse(read_file(path).c_str());
  if (doc.HasParseError()) {
    throw std::runtime_error(fmt::format("{}: {} at byte {}", path.string(),
                                         rapidjson::GetParseError_En(doc.GetParseError()),
                                         doc.GetErrorOffset()));
  }
  return doc;
}

namespace {

std::string text(const rapidjson::Value& object, const char* key) {
  auto it = object.FindMember(key);
  return it != object.MemberEnd() && it->value.IsString() ? it->value.GetString() : "";
}

bool flag(const rapidjson::Value& object, const char* key) {
  auto it = object.FindMember(key);
  return it != object.MemberEnd() && it->value.IsBool() && it->value.GetBool();
}

std::vector<std::string> texts(const rapidjson::Value& object, const char* key) {
  std::vector<std::string> out;
  if (auto it = object.FindMember(key); it != object.MemberEnd()) {
    for (const auto& v : it->value.GetArray()) out.emplace_back(v.GetString());
  }
  return out;
}

GroupVersionKind read_gvk(const rapidjson::Value& object) {
  return {text(object, "group"), text(object, "version"), text(object, "kind")};
}

TypeRef read_type_ref(const rapidjson::Value& object, const std::string& where) {
  if (object.HasMember("scalar")) return {TypeRef::Kind::kScalar, text(object, "scalar"), {}};
  if (object.HasMember("ref")) return {TypeRef::Kind::kRef, text(object, "ref"), {}};
  if (object.HasMember("array"))
    return {TypeRef::Kind::kArray, "", {read_type_ref(object["array"], where)}};
  if (object.HasMember("map"))
    return {TypeRef::Kind::kMap, "", {read_type_ref(object["map"], where)}};
  throw std::runtime_error(fmt::format("{}: neither scalar, ref, array nor map", where));
}

Field read_field(const rapidjson::Value& object, const std::string& type_name) {
  Field field;
  field.name = text(object, "name");
  field.type = read_type_ref(object, type_name + "." + field.name);
  field.required = flag(object, "required");
  if (object.HasMember("number")) field.number = object["number"].GetInt();
  field.wire = text(object, "wire");
  field.pointer = flag(object, "pointer");
  field.always = flag(object, "always");
  field.typed = flag(object, "typed");
  field.patch_merge_key = text(object, "patchMergeKey");
  field.patch_strategy = text(object, "patchStrategy");
  field.list_type = text(object, "listType");
  field.list_map_keys = texts(object, "listMapKeys");
  field.map_type = text(object, "mapType");
  return field;
}

}  // namespace

Facts load_facts(const std::filesystem::path& path) {
  const rapidjson::Document doc = read_json(path);
  Facts facts;
  facts.kubernetes = text(doc, "kubernetes");
  for (const auto& r : doc["resources"].GetArray()) {
    facts.resources.push_back({read_gvk(r), text(r, "plural"), text(r, "singular"),
                               flag(r, "namespaced"), texts(r, "verbs"), texts(r, "shortNames"),
                               texts(r, "subresources")});
  }
  for (const auto& [key, value] : doc["types"].GetObject()) {
    Type type;
    type.name = key.GetString();
    if (value.HasMember("alias")) type.alias = text(value["alias"], "scalar");
    if (value.HasMember("gvk")) type.gvk = read_gvk(value["gvk"]);
    if (value.HasMember("fields")) {
      for (const auto& f : value["fields"].GetArray())
        type.fields.push_back(read_field(f, type.name));
    }
    if (value.HasMember("inlined")) {
      for (const auto& m : value["inlined"].GetArray())
        type.inlined.push_back({"", m["number"].GetInt(), text(m, "wire")});
    }
    facts.types.emplace(type.name, std::move(type));
  }
  for (const auto& [name, fields] : doc["wireMessages"].GetObject()) {
    auto& message = facts.wire_messages[name.GetString()];
    for (const auto& f : fields.GetArray())
      message.push_back({text(f, "name"), f["number"].GetInt(), text(f, "type")});
  }
  return facts;
}

WellKnown load_well_known(const std::filesystem::path& path) {
  WellKnown out;
  std::vector<std::string>* section = nullptr;
  std::istringstream in(read_file(path));
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    if (line == "[common-fields]") {
      section = &out.common_fields;
    } else if (line == "[common-strings]") {
      section = &out.common_strings;
    } else if (line == "[field-set-names]") {
      section = &out.field_set_names;
    } else if (line == "[strings]") {
      section = &out.strings;
    } else if (line == "[member-orders]") {
      section = &out.member_orders;
    } else if (section == nullptr) {
      throw std::runtime_error(
          fmt::format("{}:{}: a string before the first section", path.string(), number));
    } else {
      section->push_back(line);
    }
  }
  return out;
}

}  // namespace lookout::codegen
