#include "engine/trace/join_traces.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/output_file.hpp"
#include "base/refusals.hpp"

namespace patchbay::engine {
namespace {

// All kinds of files have an object a line; a trace has a comma after it.
template <class Take>
Result<> each_object(const std::vector<std::filesystem::path>& parts, const Take& take) {
    for (const auto& part : parts) {
        std::ifstream in(part, std::ios::binary);
        if (!in) return fail(code_of_open(errno), "cannot read " + part.string() + ": " + std::strerror(errno));
        for (std::string line; std::getline(in, line);) {
            if (line.ends_with(',')) line.pop_back();
            if (line.starts_with('{') && nlohmann::json::accept(line)) take(line);
        }
    }
    return {};
}

}  // namespace

Result<> join_traces(const std::vector<std::filesystem::path>& parts, const std::string& path) {
    PB_TRY(std::ofstream out, open_output(path));
    bool first = true;
    PB_CHECK(each_object(parts, [&](const std::string& event) {
        out << (std::exchange(first, false) ? "[\n" : ",\n") << event;
    }));
    out << (first ? "[]\n" : "\n]\n");
    return close_output(out, path);
}

Result<> join_lines(const std::vector<std::filesystem::path>& parts, const std::string& path) {
    PB_TRY(std::ofstream out, open_output(path));
    PB_CHECK(each_object(parts, [&](const std::string& line) { out << line << '\n'; }));
    return close_output(out, path);
}

}  // namespace patchbay::engine
