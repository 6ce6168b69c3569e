// The page itself.
#pragma once

#include <string>
#include <string_view>

namespace lookout::cmd::registry_cmd {

/// page.html with its style sheet and its scripts, as they were when the program was built.
std::string_view page_html();

/// The Content-Security-Policy of the page: allows its script and its style sheet, by their hashes, and
/// requests to its own origin; requires trusted types, so that text cannot become markup.
std::string content_security_policy(std::string_view html);

}  // namespace lookout::cmd::registry_cmd
