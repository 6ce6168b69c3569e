#include "cmd/yaml.h"

#include <yaml-cpp/yaml.h>

#include <regex>

namespace lookout::cmd {
namespace {

/// Whether a plain scalar of this text would be read as something else than a string.
bool needs_quotes(const std::string& text) {
  static const std::regex kOther(
      // null, booleans (YAML 1.1's, which kubectl reads), numbers in all their forms, timestamps
      "~|null|Null|NULL|y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|"
      "Off|OFF|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])*(\\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+]?\\.[0-9_]+"
      "([eE][-+]?[0-9]+)?|0[xXoObB][0-9a-fA-F_]+|[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)|=|<<|"
      "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*");
  return text.empty() || std::regex_match(text, kOther);
}

void emit(YAML::Emitter& out, api::Value value) {
  switch (value.kind()) {
    case api::Value::Kind::kObject:
      if (value.empty()) {
        out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
        return;
      }
      out << YAML::BeginMap;
      for (const auto& [name, member] : value.members()) {
        const std::string key(name);
        out << YAML::Key;
        if (needs_quotes(key)) out << YAML::DoubleQuoted;
        out << key << YAML::Value;
        emit(out, member);
      }
      out << YAML::EndMap;
      return;
    case api::Value::Kind::kArray:
      if (value.empty()) {
        out << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
        return;
      }
      out << YAML::BeginSeq;
      for (const api::Value element : value.elements()) emit(out, element);
      out << YAML::EndSeq;
      return;
    case api::Value::Kind::kString: {
      const std::string text(value.as_string());
      const bool block = text.find('\n') != std::string::npos && text.back() == '\n' &&
                         text.find_first_not_of('\n') != std::string::npos &&
                         text.find("\n ") == std::string::npos && text.front() != ' ' &&
                         text.find_first_of("\t\r") == std::string::npos && !text.ends_with("\n\n");
      if (block) {
        out << YAML::Literal << text;
      } else if (needs_quotes(text) || text.find('\n') != std::string::npos) {
        out << YAML::DoubleQuoted << text;
      } else {
        out << text;
      }
      return;
    }
    default:
      out << value.to_json();  // null, booleans and numbers are spelled the same
  }
}

}  // namespace

std::string to_yaml(api::Value value) {
  YAML::Emitter out;
  emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace lookout::cmd
