// What precompiled.hpp says is compiled elsewhere.
#include "precompiled.hpp"

#ifdef PATCHBAY_FMT_IS_COMPILED_ONCE
template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                            fmt::detail::locale_ref);
#endif
PATCHBAY_JSON_TEMPLATES(, nlohmann::basic_json<>);
PATCHBAY_JSON_TEMPLATES(, nlohmann::basic_json<nlohmann::ordered_map>);
