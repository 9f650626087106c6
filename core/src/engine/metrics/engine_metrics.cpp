#include "engine/metrics/engine_metrics.hpp"

#include <algorithm>
#include <optional>

#include "engine/facts.hpp"
#include "engine/metrics/rank_metrics.hpp"
#include "engine/metrics/report_metrics.hpp"
#include "engine/metrics/request_metrics.hpp"
#include "engine/metrics/slot_metrics.hpp"
#include "engine/metrics/step_metrics.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

struct EngineMetrics::Parts {
    // Of a simulation: in virtual time, which every series says, as rates over wall time mean nothing.
    Parts(metrics::Metrics& m, const EngineFacts& facts)
        : in_virtual_time(facts.device_computes ? nullptr : m.labelled({{"time", "virtual"}})),
          all(in_virtual_time ? *in_virtual_time : m), ranks(all, facts.ranks), slots(all, m, facts.plugins),
          numbers(all, rows_of_steps(), report_at_load(facts)),
          computing(all, rows_of_computing_steps(), report_at_load(facts)) {
        if (std::ranges::any_of(facts.plugins, [](const host::Identity& p) { return p.kind == "proposer"; }))
            drafts.emplace(all, rows_of_drafts(!facts.draft.model.empty()), StepReport{});
    }

    const std::unique_ptr<metrics::Metrics> in_virtual_time;
    metrics::Metrics& all;
    RankMetrics ranks;
    SlotMetrics slots;
    StepMetrics steps{all};
    ReportMetrics numbers, computing;    // of each step; of those that were dispatched
    std::optional<ReportMetrics> drafts; // of those likewise; none: there is no proposer
    RequestMetrics requests{all};
};

EngineMetrics::EngineMetrics(metrics::Metrics& m, const EngineFacts& facts, const std::string& version)
    : parts_(std::make_unique<Parts>(m, facts)) {
    m.gauge("patchbay_build_info", {{"version", version}}).Set(1);
}

EngineMetrics::~EngineMetrics() = default;

void EngineMetrics::replaced_by(const EngineFacts& next) { parts_->slots.replaced_by(next.plugins); }

void EngineMetrics::on_request(RequestId id, uint64_t arrival_ns, uint32_t prompt_tokens, uint32_t n) {
    parts_->requests.on_request(id, arrival_ns, prompt_tokens, n);
}

void EngineMetrics::on_output(const RequestOutput& out) { parts_->requests.on_output(out); }

void EngineMetrics::on_end(const StepReport& r) {
    Parts& p = *parts_;
    p.slots.on_step(r);
    p.steps.on_step(r);
    p.numbers.on_step(r);
    if (r.work.scheduled_seqs == 0) return; // nothing was dispatched, and nothing drafted
    p.computing.on_step(r);
    if (p.drafts) p.drafts->on_step(r);
}

}  // namespace patchbay::engine
