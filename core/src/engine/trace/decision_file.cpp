#include "engine/trace/decision_file.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace patchbay::engine {

using Json = nlohmann::ordered_json;

namespace {

Failure cannot_write(const std::string& path) { return fail("cannot write " + path + ": " + std::strerror(errno)); }

}  // namespace

Result<std::unique_ptr<DecisionFile>> DecisionFile::create(const std::string& path, TraceOf of) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) return cannot_write(path);
    return std::unique_ptr<DecisionFile>(new DecisionFile(path, std::move(out), std::move(of)));
}

void DecisionFile::write(Json line) {
    if (!of_.name.empty()) {
        Json whose = {{"variant", of_.name}};
        whose.update(line);
        line = std::move(whose);
    }
    out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
}

double DecisionFile::time_ms(uint64_t ns) {
    if (!std::exchange(has_origin_, true)) of_.origin_ns = ns;
    return static_cast<double>(ns > of_.origin_ns ? ns - of_.origin_ns : 0) / 1e6;
}

Result<> DecisionFile::close() {
    out_.close();
    if (!out_) return cannot_write(path_);
    return {};
}

Result<> join_decisions(const std::vector<std::filesystem::path>& parts, const std::string& path) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) return cannot_write(path);
    for (const auto& part : parts) {
        std::ifstream in(part, std::ios::binary);
        if (!in) return fail("cannot read " + part.string() + ": " + std::strerror(errno));
        for (std::string line; std::getline(in, line);)
            if (Json::accept(line)) out << line << '\n';
    }
    out.close();
    if (!out) return cannot_write(path);
    return {};
}

}  // namespace patchbay::engine
