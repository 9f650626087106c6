#include "scenario/random_world.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>

#include "patchbay/sdk/philox.hpp"

namespace patchbay::scenario {
namespace {

constexpr uint32_t kMaxDrain = 4000; // steps; a sound plugin needs a few hundred
constexpr uint32_t kMaxOwnTokens = 4; // after a shared prefix

class Draws {
  public:
    explicit Draws(uint64_t seed) : seed_(seed) {}
    uint32_t below(uint32_t n) { return draw(seed_, at_++, Stream::kTest, 1)[0] % n; }
    uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }
    bool one_in(uint32_t n) { return below(n) == 0; }
    uint32_t one_of(std::initializer_list<uint32_t> of) { return of.begin()[below(static_cast<uint32_t>(of.size()))]; }

  private:
    uint64_t seed_, at_ = 0;
};

// Of the longest sequence, so that each request fits alone, with all its beams.
uint32_t longest(const World& w) {
    const uint32_t tokens = w.block_size * w.num_blocks / 2;
    return w.chunked ? tokens : std::min(tokens, w.budget);
}

WorldRequest random_request(Draws& d, const World& w, uint32_t number) {
    WorldRequest r;
    const uint32_t max_length = longest(w);
    r.number = number;
    r.max_tokens = d.between(1, std::max(1u, std::min(24u, max_length / 4)));
    r.prompt = d.between(1, std::max(1u, std::min(max_length - r.max_tokens, d.one_of({4, 20, 80, 300}))));
    if (w.caching && d.one_in(2)) {
        r.family = d.between(1, 3);
        r.shared = r.prompt - std::min(r.prompt, d.between(1, kMaxOwnTokens));
    }
    if (d.one_in(8)) r.n = d.between(2, 3);
    r.priority = d.below(4);
    r.tenant = d.below(3);
    if (d.one_in(4)) r.deadline_ms = d.between(1, 400);
    if (d.one_in(3)) r.expected_output_tokens = d.between(1, 64);
    const uint32_t beams = d.between(2, 3), pages = (r.prompt + r.max_tokens) / w.block_size + 2;
    if (r.n == 1 && d.one_in(10) && beams <= w.seats && beams * pages < w.num_blocks) r.beam_width = beams;
    return r;
}

std::string word(bool x) { return x ? "true" : "false"; }

std::string text_of(const WorldRequest& r) {
    std::string out = "{id: r" + std::to_string(r.number) + ", prompt: ";
    if (r.shared > 0) { // tokens of its family, then one or a few that are its own
        std::string own;
        for (uint32_t i = r.shared; i < r.prompt; ++i)
            own += (own.empty() ? "" : ", ") + std::to_string(100 + r.number);
        out += "{repeat: [" + std::to_string(r.family) + ", " + std::to_string(r.shared) + "], then: [" + own + "]}";
    } else {
        out += std::to_string(r.prompt);
    }
    out += ", max_tokens: " + std::to_string(r.max_tokens);
    const auto add = [&](const char* key, uint32_t value, uint32_t usual) {
        if (value != usual) out += std::string(", ") + key + ": " + std::to_string(value);
    };
    add("n", r.n, 1);
    add("beam_width", r.beam_width, 0);
    add("priority", r.priority, 0);
    add("tenant", r.tenant, 0);
    add("deadline_ms", r.deadline_ms, 0);
    add("expected_output_tokens", r.expected_output_tokens, 0);
    return out + "}";
}

std::string text_of(const WorldEvent& e) {
    switch (e.what) {
        case WorldEvent::What::kAdd: return "add: [" + text_of(e.request) + "]";
        case WorldEvent::What::kAbort: return "abort: [r" + std::to_string(e.request.number) + "]";
        case WorldEvent::What::kWait: return "wait_ms: " + std::to_string(e.number);
        case WorldEvent::What::kRun: break;
    }
    return "run: " + std::to_string(e.number);
}

// Without these events, and without the aborts of requests that are not added any more.
World without(const World& w, size_t from, size_t count) {
    World out = w;
    const auto first = out.events.begin() + static_cast<ptrdiff_t>(from);
    out.events.erase(first, first + static_cast<ptrdiff_t>(count));
    std::set<uint32_t> added;
    std::erase_if(out.events, [&](const WorldEvent& e) {
        if (e.what == WorldEvent::What::kAdd) added.insert(e.request.number);
        return e.what == WorldEvent::What::kAbort && !added.contains(e.request.number);
    });
    return out;
}

void shrink_event(const World& w, size_t at, std::vector<World>& out) {
    const auto add = [&](const std::function<void(WorldEvent&)>& change) {
        World smaller = w;
        change(smaller.events[at]);
        if (text_of(smaller.events[at]) != text_of(w.events[at])) out.push_back(std::move(smaller));
    };
    if (w.events[at].what != WorldEvent::What::kAdd) {
        add([](WorldEvent& e) { e.number = std::max(1u, e.number / 2); });
        return;
    }
    add([](WorldEvent& e) { // a plain request of the same size
        e.request = {.number = e.request.number, .prompt = e.request.prompt, .max_tokens = e.request.max_tokens};
    });
    add([](WorldEvent& e) {
        const uint32_t own = e.request.prompt - e.request.shared;
        e.request.prompt = std::max(1u, e.request.prompt / 2);
        if (e.request.shared > 0) e.request.shared = e.request.prompt - std::min(own, e.request.prompt);
    });
    add([](WorldEvent& e) { e.request.max_tokens = std::max(1u, e.request.max_tokens / 2); });
    for (uint32_t WorldRequest::*field : {&WorldRequest::shared, &WorldRequest::beam_width, &WorldRequest::priority,
                                          &WorldRequest::tenant, &WorldRequest::deadline_ms,
                                          &WorldRequest::expected_output_tokens})
        add([&](WorldEvent& e) { e.request.*field = 0; });
    add([](WorldEvent& e) { e.request.n = 1; });
}

}  // namespace

World random_world(uint64_t seed) {
    Draws d(seed);
    World w;
    w.block_size = d.one_of({1, 4, 16});
    w.num_blocks = d.between(64 / w.block_size + 2, 640 / w.block_size);
    w.budget = d.one_of({8, 24, 64, 256});
    w.seats = std::min(w.budget, d.one_of({1, 3, 8, 32}));
    w.threshold = d.one_of({0, 0, 0, 5, 16});
    w.watermark = d.one_of({0, 0, 5}) * 0.01;
    w.chunked = !d.one_in(5);
    if (!w.chunked) w.threshold = 0;
    w.caching = !d.one_in(3);
    w.offloads = d.one_in(3);
    w.reserves = d.one_in(6);
    w.overlaps = d.one_in(4);
    uint32_t added = 0;
    for (uint32_t n = d.between(6, 40); n > 0; --n) {
        const uint32_t what = d.below(10);
        WorldEvent e;
        if (added == 0 || what < 6) {
            e.what = WorldEvent::What::kAdd;
            e.request = random_request(d, w, ++added);
        } else if (what < 9) {
            e.number = d.between(1, 6);
        } else if (d.one_in(2)) {
            e.what = WorldEvent::What::kWait;
            e.number = d.between(1, 2000);
        } else {
            e.what = WorldEvent::What::kAbort;
            e.request.number = d.between(1, added);
        }
        w.events.push_back(e);
    }
    return w;
}

std::string text_of(const World& w, const std::string& kind, const std::string& name, const std::string& remark) {
    std::string out = "# " + remark + "\n" + (kind == "scheduler" ? "policy: " : "kv_policy: ") + name + "\n";
    out += "engine: {block_size: " + std::to_string(w.block_size) + ", num_blocks: " + std::to_string(w.num_blocks) +
           ", max_num_batched_tokens: " + std::to_string(w.budget) + ", max_num_seqs: " + std::to_string(w.seats) +
           ",\n         enable_chunked_prefill: " + word(w.chunked) +
           ", long_prefill_token_threshold: " + std::to_string(w.threshold) +
           ", enable_prefix_caching: " + word(w.caching) +
           ",\n         watermark: " + (w.watermark > 0 ? "0.05" : "0") +
           ", preemption_mode: " + (w.offloads ? "swap" : "recompute") +
           ", reserve_full_sequence: " + word(w.reserves) + ", async_scheduling: " +
           (w.overlaps ? "on" : "off") + "}\n";
    out += "steps:\n";
    for (const WorldEvent& e : w.events) out += "  - " + text_of(e) + "\n";
    out += "  - drain: " + std::to_string(kMaxDrain) + "\n";
    return out + "  - expect: {" + (kind == "scheduler" ? "plan_faults" : "kv_policy_faults") + ": 0}\n";
}

std::vector<World> smaller_worlds(const World& w) {
    std::vector<World> out;
    for (size_t count = w.events.size() / 2; count > 0; count /= 2)
        for (size_t from = 0; from + count <= w.events.size(); from += count) out.push_back(without(w, from, count));
    for (bool World::*field : {&World::overlaps, &World::offloads, &World::reserves, &World::caching, &World::chunked})
        if (w.*field != (field == &World::chunked)) {
            out.push_back(w);
            out.back().*field = field == &World::chunked;
        }
    if (w.threshold > 0) out.push_back(w), out.back().threshold = 0;
    if (w.watermark > 0) out.push_back(w), out.back().watermark = 0;
    for (size_t i = 0; i < w.events.size(); ++i) shrink_event(w, i, out);
    return out;
}

}  // namespace patchbay::scenario
