// The headers that most files of the host read, compiled once before them (cmake/Modules.cmake). Each file still
// includes what it uses: the sanitizers' builds go without this.
#pragma once
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// Templates that are compiled once, in precompiled.cpp, and not again in each file that logs or reads JSON: a quarter of
// the time of many.
#if FMT_VERSION / 10000 == 9
#define PATCHBAY_FMT_IS_COMPILED_ONCE
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view, fmt::format_args,
                                                   fmt::detail::locale_ref);
#endif

namespace patchbay {
using JsonText = decltype(nlohmann::detail::input_adapter(std::declval<const std::string&>()));
}

#define PATCHBAY_JSON_TEMPLATES(EXTERN, ...)                                                                            \
    EXTERN template class __VA_ARGS__;                                                                                  \
    EXTERN template class nlohmann::detail::serializer<__VA_ARGS__>;                                                    \
    EXTERN template class nlohmann::detail::json_sax_dom_parser<__VA_ARGS__>;                                           \
    EXTERN template class nlohmann::detail::json_sax_dom_callback_parser<__VA_ARGS__>;                                  \
    EXTERN template class nlohmann::detail::lexer<__VA_ARGS__, patchbay::JsonText>;                                     \
    EXTERN template class nlohmann::detail::parser<__VA_ARGS__, patchbay::JsonText>
PATCHBAY_JSON_TEMPLATES(extern, nlohmann::basic_json<>);
PATCHBAY_JSON_TEMPLATES(extern, nlohmann::basic_json<nlohmann::ordered_map>);
