#include "experiment/sessions.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace patchbay::experiment {
namespace {

constexpr double kLongestThink = 1e9; // s

uint64_t think_ns(double seconds) {
    return static_cast<uint64_t>(std::llround(std::min(seconds, kLongestThink) * 1e9));
}

// As the trace has them. What follows a row before the window begins a session of its own.
std::vector<Turn> turns_of_rows(const WorkloadSpec& spec, const Draws& draws, std::span<const TraceRow> rows) {
    std::vector<Turn> turns(rows.size());
    std::map<uint32_t, uint32_t> last; // of each session
    uint32_t sessions = 0;
    for (uint32_t i = 0; i < rows.size(); ++i) {
        const auto before = rows[i].session > 0 ? last.find(rows[i].session) : last.end();
        if (rows[i].follows && before != last.end()) {
            const double given_s = rows[i].think_s;
            turns[i].follows = before->second;
            turns[i].session = turns[before->second].session;
            turns[i].continues = true;
            turns[i].think_ns =
                think_ns(std::isnan(given_s) ? draws.seconds(Purpose::kThink, i, spec.sessions.think) : given_s);
        } else {
            turns[i].session = sessions++;
        }
        if (rows[i].session > 0) last[rows[i].session] = i;
    }
    return turns;
}

// One session after another, each of as many turns as are drawn.
std::vector<Turn> drawn_turns(const WorkloadSpec& spec, const Draws& draws, uint32_t count) {
    std::vector<Turn> turns(count);
    const LengthSource lengths(spec.sessions.turns.value_or(FixedLength{1}));
    uint32_t left = 0, sessions = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (left == 0) {
            left = lengths.draw(draws, Purpose::kTurns, sessions);
            turns[i].session = sessions++;
        } else {
            turns[i].session = sessions - 1;
            turns[i].follows = i - 1;
            turns[i].continues = true;
            turns[i].think_ns = think_ns(draws.seconds(Purpose::kThink, i, spec.sessions.think));
        }
        left -= 1;
    }
    return turns;
}

// User u has sessions u, u + users, …: each begins after the one before it.
void close_loop(std::vector<Turn>& turns, const ClosedLoop& loop, const Draws& draws) {
    std::vector<uint32_t> last; // request of each session
    for (uint32_t i = 0; i < turns.size(); ++i) {
        last.resize(std::max<size_t>(last.size(), turns[i].session + 1));
        last[turns[i].session] = i;
    }
    for (Turn& turn : turns) {
        if (turn.follows || turn.session < loop.users) continue;
        turn.follows = last[turn.session - loop.users];
        turn.think_ns = think_ns(draws.seconds(Purpose::kUserThink, turn.session, loop.think));
    }
}

}  // namespace

std::vector<Turn> plan_turns(const WorkloadSpec& spec, const Draws& draws, std::span<const TraceRow> rows,
                             uint32_t count) {
    std::vector<Turn> turns = rows.empty() ? drawn_turns(spec, draws, count) : turns_of_rows(spec, draws, rows);
    if (const auto* loop = std::get_if<ClosedLoop>(&spec.arrivals)) close_loop(turns, *loop, draws);
    return turns;
}

}  // namespace patchbay::experiment
