// JSON from untrusted files, read with limits on size and depth; errors name the file, line and column.
// Used for model folders. Callers include <nlohmann/json.hpp> in their .cpp.
#pragma once
#include <cstdint>
#include <exception>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace patchbay {

struct JsonLimits {
    uint64_t bytes = 64ull << 20; // twice the largest tokenizer.json
    uint32_t depth = 64; // of nested arrays and objects
};

Result<std::string> read_whole_file(const std::filesystem::path&, uint64_t max_bytes);
// where: the file's name, for errors.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& where, const JsonLimits& = {});
// Turns "[json.exception.out_of_range.403] key 'name' not found" into "key 'name' not found", of readable length.
std::string json_reason(const std::exception& of_the_library);
// Empties a document when it goes out of scope, without memory. The library's own destructor allocates a list of what
// it has to destroy, and where there is no memory for that the process ends.
class EmptiesJson {
  public:
    explicit EmptiesJson(nlohmann::json& document) : document_(document) {}
    ~EmptiesJson();
    EmptiesJson(const EmptiesJson&) = delete;
    EmptiesJson& operator=(const EmptiesJson&) = delete;

  private:
    nlohmann::json& document_;
};
Result<nlohmann::json> read_json_file(const std::filesystem::path&, const JsonLimits& = {});

}  // namespace patchbay
