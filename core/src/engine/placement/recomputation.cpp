#include "engine/placement/recomputation.hpp"

#include <vector>

namespace patchbay::engine {

void Recomputation::recompute_all() {
    const auto running = sequences_.running();
    const std::vector<Sequence*> all(running.begin(), running.end()); // beams leave together
    for (auto s = all.rbegin(); s != all.rend(); ++s) // each goes before all that wait
        if ((*s)->place == Place::kRunning) preemption_.compute_anew(**s);
    kv_.prefixes().forget_all();
    for (const auto& [id, s] : sequences_.all()) {
        if (s->kv.swapped.empty()) continue;
        kv_.swap().drop(s->kv.swapped);
        hints_.refresh(*s);
    }
}

}  // namespace patchbay::engine
