#include "serve/dashboard.hpp"

namespace patchbay::serve {

HttpResponse dashboard_page() {
    HttpResponse out{200, dashboard_html(), "text/html; charset=utf-8"};
    // It loads nothing and sends nothing elsewhere, whatever a metric's label says.
    out.headers.emplace_back("Content-Security-Policy",
                             "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src "
                             "'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'");
    out.headers.emplace_back("X-Content-Type-Options", "nosniff");
    return out;
}

}  // namespace patchbay::serve
