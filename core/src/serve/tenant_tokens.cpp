#include "serve/tenant_tokens.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace patchbay::serve {

TenantTokens::Series& TenantTokens::series_of(uint32_t tenant) {
    const uint32_t at = std::min(tenant, kMaxTenants);
    if (series_.size() <= at) series_.resize(size_t{at} + 1);
    Series& s = series_[at];
    if (s.prompt) return s;
    const std::string name = at < kMaxTenants ? std::to_string(at) : "other";
    const auto counter = [&](const char* kind) {
        return &all_.counter("patchbay_tenant_tokens_total", {{"tenant", name}, {"kind", kind}});
    };
    return s = {counter("prompt"), counter("generation")};
}

void TenantTokens::on_request(engine::RequestId id, const engine::Request& r) {
    open_[id] = {series_of(r.tenant), static_cast<uint32_t>(r.prompt.size()), r.sampling.n};
}

void TenantTokens::on_output(const engine::RequestOutput& out) {
    const auto at = open_.find(out.id);
    if (at == open_.end()) return;
    Open& r = at->second;
    const bool computed = !out.tokens.empty() || !out.embedding.empty();
    if (computed && !std::exchange(r.prefilled, true)) r.series.prompt->Increment(r.prompt_tokens);
    r.series.generation->Increment(static_cast<double>(out.tokens.size()));
    if (out.finish != engine::FinishReason::kNone && --r.outputs == 0) open_.erase(at);
}

}  // namespace patchbay::serve
