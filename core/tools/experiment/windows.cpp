#include "experiment/windows.hpp"

#include <algorithm>
#include <cmath>

#include "base/refusals.hpp"
#include "experiment/draws.hpp"

namespace patchbay::experiment {
namespace {

std::string numbers(uint32_t rows, uint32_t window, uint32_t repeats, uint64_t needed) {
    return "the trace has " + std::to_string(rows) + " rows, " + std::to_string(repeats) + " windows of " +
           std::to_string(window) + " need " + std::to_string(needed);
}

}  // namespace

uint32_t disjoint_windows(std::vector<uint32_t> starts, uint32_t rows) {
    std::sort(starts.begin(), starts.end());
    uint32_t count = 0;
    uint64_t free = 0; // rows before it are taken
    for (const uint32_t start : starts)
        if (start >= free) {
            count += 1;
            free = uint64_t{start} + rows;
        }
    return count;
}

Result<WindowPlan> plan_windows(const Windows& windows, uint32_t rows, uint32_t asked, uint32_t repeats,
                                uint64_t seed) {
    WindowPlan plan;
    if (std::holds_alternative<SameWindow>(windows)) {
        plan.rows = asked > 0 ? asked : rows;
        if (plan.rows > rows) return invalid(numbers(rows, plan.rows, 1, plan.rows));
        plan.starts.assign(repeats, 0);
        plan.independent = repeats; // lengths and times are the same, what is not the same says so itself
        return plan;
    }
    plan.rows = asked > 0 ? asked : rows / repeats;
    const auto* drawn = std::get_if<DrawnWindows>(&windows);
    const double overlap = drawn ? drawn->overlap : 0;
    const auto step = std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(plan.rows * (1 - overlap))));
    const uint64_t needed = (repeats - 1) * step + plan.rows;
    if (plan.rows == 0 || needed > rows)
        return invalid(numbers(rows, std::max(1u, plan.rows), repeats, needed) +
                       "; ask for fewer requests or repeats, or let windows share rows with windows: {drawn: {overlap: "
                       "0.5}}, or take one for all repeats with windows: same");
    std::vector<uint64_t> slack(repeats, 0); // rows left out before a window, in all
    const Draws draws(seed, 0);
    if (drawn)
        for (uint32_t r = 0; r < repeats; ++r) slack[r] = draws.below(Purpose::kWindow, r, rows - needed + 1);
    std::sort(slack.begin(), slack.end());
    for (uint32_t r = 0; r < repeats; ++r) plan.starts.push_back(static_cast<uint32_t>(r * step + slack[r]));
    if (drawn) {
        const auto order = draws.permutation(Purpose::kWindowOrder, repeats);
        std::vector<uint32_t> shuffled;
        for (const uint32_t i : order) shuffled.push_back(plan.starts[i]);
        plan.starts = std::move(shuffled);
    }
    plan.independent = disjoint_windows(plan.starts, plan.rows);
    return plan;
}

}  // namespace patchbay::experiment
