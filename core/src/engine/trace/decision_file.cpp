#include "engine/trace/decision_file.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/output_file.hpp"

namespace patchbay::engine {

using Json = nlohmann::ordered_json;

Result<std::unique_ptr<DecisionFile>> DecisionFile::create(const std::string& path, TraceOf of) {
    PB_TRY(std::ofstream out, open_output(path));
    return std::unique_ptr<DecisionFile>(new DecisionFile(path, std::move(out), std::move(of)));
}

void DecisionFile::write(Json line) {
    if (!of_.name.empty()) {
        Json whose = {{"variant", of_.name}};
        whose.update(line);
        line = std::move(whose);
    }
    out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n'
         << std::flush; // the step that ends the process is the one that is looked for
}

double DecisionFile::time_ms(uint64_t ns) {
    if (!std::exchange(has_origin_, true)) of_.origin_ns = ns;
    return static_cast<double>(ns > of_.origin_ns ? ns - of_.origin_ns : 0) / 1e6;
}

Result<> DecisionFile::close() { return close_output(out_, path_); }

}  // namespace patchbay::engine
