#include "engine/trace/join_traces.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace patchbay::engine {

// TraceFile writes an event a line.
Result<> join_traces(const std::vector<std::filesystem::path>& parts, const std::string& path) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) return fail("cannot write " + path + ": " + std::strerror(errno));
    bool first = true;
    for (const auto& part : parts) {
        std::ifstream in(part, std::ios::binary);
        if (!in) return fail("cannot read " + part.string() + ": " + std::strerror(errno));
        for (std::string line; std::getline(in, line);) {
            if (line.ends_with(',')) line.pop_back();
            if (!line.starts_with('{') || !nlohmann::json::accept(line)) continue;
            out << (std::exchange(first, false) ? "[\n" : ",\n") << line;
        }
    }
    out << (first ? "[]\n" : "\n]\n");
    out.close();
    return out ? Result<>() : fail("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace patchbay::engine
