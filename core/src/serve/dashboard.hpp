// GET /dashboard: one page without further files that draws an engine's /metrics live, and swaps and sets plugins where
// it comes from the admin address. Written in dashboard/dashboard.html, which is compiled in.
#pragma once
#include "serve/http_message.hpp"

namespace patchbay::serve {

const std::string& dashboard_html();
HttpResponse dashboard_page();

}  // namespace patchbay::serve
