// The page itself.
#pragma once

#include <string>
#include <string_view>

namespace lookout::cmd::registry_cmd {

/// page.html with its style sheet and its scripts, as they were when the program was built.
std::string_view page_html();

/// What the browser lets the page do (a Content-Security-Policy): run the one script and use the
/// one style sheet that are in it, and talk to where it is from. Nothing else, from nowhere else;
/// and no text can become markup.
std::string content_security_policy(std::string_view html);

}  // namespace lookout::cmd::registry_cmd
