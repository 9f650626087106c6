#include "engine/placement/recomputation.hpp"

#include <vector>

namespace patchbay::engine {

void Recomputation::recompute_all() {
    const auto running = sequences_.running();
    const std::vector<Sequence*> all(running.begin(), running.end()); // beams leave together
    for (auto s = all.rbegin(); s != all.rend(); ++s) // each goes before all that wait
        if ((*s)->place == Place::kRunning) preemption_.compute_anew(**s);
    hints_.forget_all();
    kv_.prefixes().start_over(facts_.kv_identity());
    for (const auto& [id, s] : sequences_.all()) {
        if (!s->kv.swapped.empty()) kv_.swap().drop(s->kv.swapped);
        if (s->place == Place::kWaiting) hints_.refresh(*s);
    }
}

}  // namespace patchbay::engine
