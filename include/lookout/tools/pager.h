// Long lists, page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "lookout/api/object.h"
#include "lookout/rest/client.h"
#include "lookout/rest/options.h"

namespace lookout::pager {

/// Asks for one page; rest::ResourceClient::list() in most programs. When a stop is requested
/// nobody wants the page any more: it should throw or return soon, as each_list_item() does not
/// return before it has.
using PageFunc = std::function<rest::List<>(const rest::ListOptions& options, std::stop_token)>;

struct PagerOptions {
  /// Items a page, unless the list options say so; 0: all at once.
  std::int64_t page_size = 500;
  /// Whether list() asks for everything at once when the pages took longer than the server keeps
  /// history.
  bool full_list_if_expired = true;
  /// How many pages each_list_item() reads ahead.
  std::size_t page_buffer_size = 5;
};

/// client-go's ListPager. (Informers make pages by themselves.) Blocking; not on the event loop.
class ListPager {
 public:
  explicit ListPager(PageFunc page, PagerOptions options = {});
  explicit ListPager(rest::ResourceClient client, PagerOptions options = {});

  struct Result {
    rest::List<> list;
    bool paginated = false;  ///< it came in several pages
  };
  /// All items. Throws what a page throws, and TransportError of kind kCancelled after a stop.
  Result list(rest::ListOptions options = {}, std::stop_token stop = {}) const;

  /// Calls `each` for all items, while the next pages come in on another thread. What `each` or a
  /// page throws ends it and is thrown; a page that has expired does so too, since what came before
  /// cannot be taken back.
  void each_list_item(rest::ListOptions options,
                      const std::function<void(const api::Object&)>& each,
                      std::stop_token stop = {}) const;

 private:
  const PageFunc page_;
  const PagerOptions options_;
};

}  // namespace lookout::pager
