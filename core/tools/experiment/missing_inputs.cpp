#include "experiment/missing_inputs.hpp"

#include <filesystem>

#include "experiment/variants_table.hpp"

namespace patchbay::experiment {
namespace {

namespace fs = std::filesystem;

// As the reader looks for it: beside the file that names it, then in the current folder.
bool is_there(const config::Node& named) {
    std::error_code error;
    const auto& origin = named.origin;
    if (origin.kind == config::Origin::Kind::kFile && origin.name &&
        fs::exists(fs::path(*origin.name).parent_path() / named.text, error))
        return true;
    return fs::exists(named.text, error);
}

}  // namespace

void check_inputs(const config::Node& document, config::Faults& faults) {
    const auto check = [&](const config::Node* path) {
        if (path && path->kind == config::NodeKind::kScalar && !path->text.empty() && !is_there(*path))
            faults.add(path->origin, "there is no file '" + config::printable(path->text) +
                                         "', neither beside this file nor in the current folder");
    };
    const auto check_prompts = [&](const config::Node& keys) {
        if (const config::Node* const prompts = keys.at("workload.prompts"))
            for (const config::Entry& kind : prompts->entries) check(kind.value.find("path"));
    };
    check(document.at("quality.text"));
    check_prompts(document);
    for (const VariantSpec& v : readable_variants(document)) check_prompts(v.patch);
}

}  // namespace patchbay::experiment
