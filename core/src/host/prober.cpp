#include "host/prober.hpp"

#include "base/refusals.hpp"

namespace patchbay::host {

Result<> Prober::try_out(const Manifest& plugin, const ProbedComponent& component) {
    constexpr size_t kMaxKept = 1024;
    std::string key = plugin.sha256 + " " + component.kind + "/" + component.name;
    for (const auto& [name, value] : component.settings) key += "\n" + name + "=" + value;
    {
        const std::lock_guard lock(mutex_);
        if (passed_.contains(key)) return {};
    }
    ProbeOptions options = options_;
    options.only = component;
    options.only->sha256 = plugin.sha256;
    PB_TRY(const ProbeReport report, probe(plugin.library, options));
    if (report.verdict == Verdict::kRefused) return invalid(report.check + ": " + report.reason);
    if (report.verdict == Verdict::kUnavailable)
        return fail(StatusCode::kUnavailable, "not available on this machine: " + report.reason);
    if (report.manifest->sha256 != plugin.sha256)
        return invalid(plugin.library.string() + " changed since it was probed (run `patchbay plugin test " +
                       plugin.library.string() + "`)");
    const std::lock_guard lock(mutex_);
    if (passed_.size() < kMaxKept) passed_.insert(std::move(key));
    return {};
}

}  // namespace patchbay::host
