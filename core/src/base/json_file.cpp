#include "base/json_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/refusals.hpp"

namespace patchbay {
namespace {

std::string place(std::string_view text, size_t byte, const std::string& where) {
    const std::string_view before = text.substr(0, std::min(byte, text.size()));
    const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t newline = before.rfind('\n');
    const size_t column = newline == before.npos ? before.size() : before.size() - newline - 1;
    return where + ":" + std::to_string(line) + ":" + std::to_string(std::max<size_t>(column, 1));
}

// The byte after the bracket that opens one level too many. The library's tree has no limit of its own.
size_t first_too_deep(std::string_view text, uint32_t max_depth) {
    uint32_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > max_depth) return i + 1;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        }
    }
    return std::string_view::npos;
}

// As deep as the document is, which is bounded. What is left has no parts, and goes without an allocation.
void empty(nlohmann::json& value) {
    if (!value.is_structured()) return;
    for (nlohmann::json& part : value) empty(part);
    value.clear();
}

}  // namespace

EmptiesJson::~EmptiesJson() { empty(document_); }

// A fault of syntax names its place first: "[json.exception.parse_error.101] parse error at line 1, column 2: reason".
std::string json_reason(const std::exception& of_the_library) {
    std::string_view what = of_the_library.what();
    const size_t column = what.find("column ");
    const size_t colon = column == what.npos ? what.find("] ") : what.find(": ", column);
    if (colon != what.npos) what.remove_prefix(colon + 2);
    return printable(what, 200);
}

Result<std::string> read_whole_file(const std::filesystem::path& path, uint64_t max_bytes) {
    std::error_code error;
    if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
        return invalid(path.string() + " is not a regular file"); // reading a pipe would wait for ever
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        const int why = errno;
        return fail(code_of_open(why), "cannot read " + path.string() + ": " + std::strerror(why));
    }
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error) return fail("cannot read " + path.string() + ": " + error.message());
    if (size > max_bytes)
        return invalid(path.string() + " has " + std::to_string(size) + " bytes, more than the " +
                       std::to_string(max_bytes) + " that are read of such a file");
    std::string out(size, '\0');
    in.read(out.data(), static_cast<std::streamsize>(size));
    if (static_cast<uint64_t>(in.gcount()) != size) return fail(path.string() + " changed while it was read");
    return out;
}

Result<nlohmann::json> parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
    if (text.size() > limits.bytes)
        return invalid(where + ": " + std::to_string(text.size()) + " bytes of JSON, more than " +
                       std::to_string(limits.bytes));
    if (const size_t at = first_too_deep(text, limits.depth); at != text.npos)
        return invalid(place(text, at, where) + ": JSON nested more than " + std::to_string(limits.depth) +
                       " levels deep");
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        return invalid(place(text, error.byte, where) + ": invalid JSON: " + json_reason(error));
    } catch (const nlohmann::json::exception& error) { // a number that no double holds
        return invalid(where + ": invalid JSON: " + json_reason(error));
    }
}

Result<nlohmann::json> read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
    PB_TRY(const std::string text, read_whole_file(path, limits.bytes));
    return parse_json(text, path.string(), limits);
}

}  // namespace patchbay
