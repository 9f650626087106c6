#include "config/check_file.hpp"

#include "base/refusals.hpp"
#include "config/slots.hpp"

namespace patchbay::config {
namespace {

std::string summary_of(const EngineConfig& c) {
    std::string model = std::filesystem::path(c.model.path).filename().string();
    if (c.model.load_format == LoadFormat::kDummy)
        model = model.empty() ? "dummy weights" : model + " with dummy weights";
    std::string out = model;
    for (const SlotInfo& slot : slots())
        if (const PluginChoice* choice = slot.of(c)) out += ", " + slot.kind + " " + choice->plugin;
    return out;
}

bool is_experiment(const Node& root) { return root.find("workload") || root.find("variants") || root.find("factors"); }

}  // namespace

Result<Checked> check_file(const std::filesystem::path& file, const host::Registry& registry,
                           const CheckExperiment& check_experiment, const Explain& explain) {
    PB_TRY(const Document document, load_document(file));
    if (is_experiment(document.root)) {
        if (!check_experiment) return invalid(file.string() + " is an experiment, expected an engine configuration");
        return check_experiment(document, registry);
    }
    PB_TRY(Loaded loaded, load_engine_config(document.root, registry));
    if (explain) explain(loaded);
    return Checked{summary_of(loaded.config), {{"", std::move(loaded.effective)}}, std::move(loaded.warnings)};
}

}  // namespace patchbay::config
