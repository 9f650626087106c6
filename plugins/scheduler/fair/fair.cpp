// fair - the least served tenant is admitted first, by a token counter for each tenant.
#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "patchbay/sdk/step_packer.hpp"

namespace {

using Queues = std::map<uint32_t, std::deque<const pb_sequence*>>; // waiting requests by tenant, in order of arrival

class Fair {
  public:
    static constexpr pb_param kParams[] = {
        patchbay::param::real("prompt_weight", "1", 0, 1e6, "", "what a prompt's token counts", PB_PARAM_HOT),
        patchbay::param::real("output_weight", "2", 0, 1e6, "", "what an output's token counts", PB_PARAM_HOT)};

    explicit Fair(const patchbay::Context& context) { configure(context); }
    void configure(const patchbay::Context& context) {
        const auto prompt = context.get<double>("prompt_weight"), output = context.get<double>("output_weight");
        if (prompt == 0 && output == 0)
            throw patchbay::Error(PB_INVALID, "prompt_weight and output_weight are both 0");
        prompt_weight_ = prompt;
        output_weight_ = output;
    }

    void plan(const patchbay::SchedulerStep& step, patchbay::Plan& plan) {
        patchbay::StepPacker packer(step, plan);
        Queues queues;
        for (const auto& [tenant, sequences] : sequences_of_) queues[tenant]; // active, though none may be shown
        for (const pb_sequence& s : step.waiting) queues[s.tenant].push_back(&s);
        for (const pb_sequence& s : step.running) {
            queues[s.tenant];
            if (seen_.try_emplace(s.id, Seen{s.tenant, s.output_tokens}).second) charged_.insert(s.group);
            charge_output(s.id, s.output_tokens);
        }
        lift(queues);
        forget_ended(step);
        packer.keep_running(patchbay::arrived_later);
        if (!packer.preempted_any()) admit(queues, packer);
    }

    void arrived(const pb_sequence& s) {
        if (tenant_of_.try_emplace(s.id, s.tenant).second) sequences_of_[s.tenant] += 1;
    }
    void finished(const pb_finished& f) {
        charge_output(f.id, f.output_tokens);
        seen_.erase(f.id);
        const auto node = tenant_of_.extract(f.id);
        if (node.empty()) return;
        const auto at = sequences_of_.find(node.mapped());
        if (--at->second == 0) sequences_of_.erase(at);
    }
    void resync(const patchbay::SchedulerStep& step) {
        tenant_of_.clear();
        sequences_of_.clear();
        for (const auto* all : {&step.running, &step.waiting})
            for (const pb_sequence& s : *all) arrived(s);
    }

  private:
    struct Seen {
        uint32_t tenant, output;
    };

    void admit(Queues& queues, patchbay::StepPacker& packer) {
        std::set<std::pair<double, uint32_t>> order; // tenants with waiting requests, by what they were served
        for (const auto& [tenant, queue] : queues)
            if (!queue.empty()) order.emplace(served_[tenant], tenant);
        while (!order.empty()) {
            const uint32_t tenant = order.begin()->second;
            std::deque<const pb_sequence*>& queue = queues[tenant];
            const pb_sequence& s = *queue.front();
            if (!packer.admit(s)) return;
            queue.pop_front();
            const bool first = seen_.try_emplace(s.id, Seen{s.tenant, s.output_tokens}).second;
            if (first) charge_prompt(s); // a preempted one was charged before
            order.erase(order.begin());
            if (!queue.empty()) order.emplace(served_[tenant], tenant);
        }
    }

    // A request pays for its prompt once; its further outputs for what of the prompt they compute again.
    void charge_prompt(const pb_sequence& s) {
        const bool pays = charged_.insert(s.group).second;
        served_[s.tenant] += prompt_weight_ * (pays ? s.prompt_tokens : patchbay::uncached(s));
    }

    void charge_output(uint64_t id, uint32_t tokens) {
        const auto at = seen_.find(id);
        if (at == seen_.end()) return;
        served_[at->second.tenant] += output_weight_ * (tokens - std::min(tokens, at->second.output));
        at->second.output = tokens;
    }

    // A tenant that returns is lifted to the least served of those that stayed or, where all have left, to the
    // most served of those that left last: idleness earns nothing.
    void lift(const Queues& queues) {
        double least = 0, last = floor_;
        bool any = false;
        for (const uint32_t t : active_) {
            const double served = served_[t];
            last = std::max(last, served);
            if (queues.contains(t)) least = any ? std::min(least, served) : served, any = true;
        }
        floor_ = any ? least : last;
        std::vector<uint32_t> now;
        for (const auto& [tenant, queue] : queues) {
            now.push_back(tenant);
            const bool stayed = std::binary_search(active_.begin(), active_.end(), tenant);
            if (!stayed) served_[tenant] = std::max(served_[tenant], floor_);
        }
        active_ = std::move(now);
        // Tenants that would be lifted anyway need not be remembered.
        std::erase_if(served_, [&](const auto& t) { return !queues.contains(t.first) && t.second <= floor_; });
    }

    // Requests that neither run nor wait. Now and then, as it looks at all.
    void forget_ended(const patchbay::SchedulerStep& step) {
        constexpr size_t kFew = 1024;
        if (charged_.size() <= kFew + 2 * (step.running.size() + step.waiting.size())) return;
        std::unordered_set<uint64_t> kept;
        for (const auto* all : {&step.running, &step.waiting})
            for (const pb_sequence& s : *all)
                if (charged_.contains(s.group)) kept.insert(s.group);
        charged_ = std::move(kept);
    }

    double prompt_weight_, output_weight_;
    std::map<uint32_t, double> served_;                // weighted tokens, by tenant
    std::vector<uint32_t> active_;                     // tenants with a request, in the step before; ascending
    double floor_ = 0;                                 // the counter with which a tenant joins
    std::unordered_map<uint64_t, uint32_t> tenant_of_; // by sequence that arrived and has not ended
    std::map<uint32_t, uint32_t> sequences_of_;        // the number of these, by tenant
    std::unordered_map<uint64_t, Seen> seen_;          // sequences that were admitted
    std::unordered_set<uint64_t> charged_;             // groups whose prompt is paid for
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Fair>(
    {.name = "fair", .version = "1.0.0", .summary = "the least served tenant first, by a virtual token counter"}))
