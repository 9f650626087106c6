#include "bench/kv_bench.hpp"

#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "bench/times.hpp"
#include "kv/kv_cache.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::bench {
namespace {

struct Part {
    const char* name;
    const char* description;
    double KvCosts::*cost;
};
constexpr Part kParts[] = {
    {"prompt", "blocks for a prompt", &KvCosts::prompt},
    {"name", "identities of its full blocks", &KvCosts::name},
    {"hit", "looking up a prompt that is cached", &KvCosts::hit},
    {"miss", "looking up one that is not", &KvCosts::miss},
    {"adopt", "taking a hit and giving it back", &KvCosts::adopt},
    {"decode", "one token more, of each sequence in turn", &KvCosts::decode},
    {"release", "giving blocks back", &KvCosts::release},
    {"evict", "blocks for a prompt, all of them cached before", &KvCosts::evict},
};

using Prompt = std::vector<int32_t>;

std::vector<Prompt> prompts_of(const KvCase& asked, uint32_t salt) {
    std::vector<Prompt> out(asked.sequences);
    for (uint32_t s = 0; s < asked.sequences; ++s)
        for (uint32_t t = 0; t < asked.prompt; ++t)
            out[s].push_back(static_cast<int32_t>(draw(salt, s, Stream::kTest, t)[0] % 128'000));
    return out;
}

class Round {
  public:
    Round(const KvCase& asked, const Clock& clock)
        : asked_(asked), clock_(clock),
          kv_(asked.groups * asked.sequences * blocks(2 * asked.prompt), asked.block_size, kv::PrefixCaching::kOn,
              "bench", std::vector<kv::GroupSpec>(asked.groups)),
          tables_(asked.sequences) {}

    Result<KvCosts> run() {
        const auto first = prompts_of(asked_, 1), other = prompts_of(asked_, 2);
        KvCosts out;
        out.prompt = timed([&](size_t s) { return kv_.tables().grow(tables_[s], asked_.prompt); });
        out.name = timed([&](size_t s) { return kv_.prefixes().cache_full_blocks(tables_[s], first[s]), true; });
        const uint32_t cached = (asked_.prompt - 1) / asked_.block_size * asked_.block_size;
        out.hit = timed([&](size_t s) { return kv_.prefixes().count_cached(first[s]) == cached; });
        out.miss = timed([&](size_t s) { return kv_.prefixes().count_cached(other[s]) == 0; });
        out.adopt = timed([&](size_t s) {
            kv::BlockTable table;
            const bool all = kv_.prefixes().adopt(table, first[s]) == cached;
            kv_.tables().release(table);
            return all;
        });
        std::vector<Prompt> longer = first;
        for (Prompt& p : longer) p.resize(2 * asked_.prompt, 7);
        out.decode = timed_all([&] {
            bool fits = true;
            for (uint32_t t = asked_.prompt; t < 2 * asked_.prompt; ++t)
                for (size_t s = 0; s < tables_.size(); ++s) {
                    fits &= kv_.tables().grow(tables_[s], t + 1);
                    kv_.prefixes().cache_full_blocks(tables_[s], {longer[s].data(), t + 1});
                }
            return fits;
        });
        out.release = timed([&](size_t s) { return kv_.tables().release(tables_[s]), true; }) / 2; // twice the prompt
        const uint64_t before = kv_.pool().eviction().evictions();
        out.evict = timed([&](size_t s) { return kv_.tables().grow(tables_[s], asked_.prompt); });
        if (kv_.pool().eviction().evictions() == before) works_ = false;
        for (kv::BlockTable& t : tables_) kv_.tables().release(t);
        if (!works_ || kv_.pool().used() != 0) return broken("the KV cache does not do what is timed");
        return out;
    }

  private:
    uint32_t blocks(uint32_t tokens) const { return (tokens + asked_.block_size - 1) / asked_.block_size; }

    template <class F>
    double timed_all(F&& f) { // seconds a token, of as many as all prompts have
        const uint64_t start = clock_.now_ns();
        works_ &= f();
        return static_cast<double>(clock_.now_ns() - start) * 1e-9 / asked_.prompt / asked_.sequences;
    }
    template <class F>
    double timed(F&& f) {
        return timed_all([&] {
            bool works = true;
            for (size_t s = 0; s < tables_.size(); ++s) works &= f(s);
            return works;
        });
    }

    const KvCase asked_;
    const Clock& clock_;
    kv::KvCache kv_;
    std::vector<kv::BlockTable> tables_;
    bool works_ = true;
};

}  // namespace

Result<KvResult> bench_kv(const KvCase& asked, const Clock& clock) {
    std::vector<KvCosts> rounds;
    for (uint32_t i = 0; i < asked.repeats; ++i) {
        PB_TRY(const KvCosts costs, Round(asked, clock).run());
        rounds.push_back(costs);
    }
    KvResult out{asked, {}};
    for (const Part& part : kParts) {
        std::vector<double> values;
        for (const KvCosts& costs : rounds) values.push_back(costs.*part.cost);
        out.median.*part.cost = at_share(std::move(values), 0.5);
    }
    return out;
}

std::string table_of(const std::vector<KvResult>& results) {
    std::string out = "ns a token, medians\n\n";
    out += printed("%-48s", "block size, prompt, sequences, groups:");
    for (const KvResult& r : results) {
        const KvCase& c = r.asked;
        out += printed("  %4u, %u, %u, %u", c.block_size, c.prompt, c.sequences, c.groups);
    }
    out += '\n';
    for (const Part& part : kParts) {
        out += printed("%-48s", part.description);
        for (const KvResult& r : results) {
            out += printed("  %*.2f", 17, r.median.*part.cost * 1e9);
        }
        out += '\n';
    }
    return out;
}

std::string json_of(const std::vector<KvResult>& results) {
    nlohmann::json out = {{"cases", nlohmann::json::array()}};
    for (const KvResult& r : results) {
        nlohmann::json one = {{"block_size", r.asked.block_size},
                              {"prompt", r.asked.prompt},
                              {"sequences", r.asked.sequences},
                              {"groups", r.asked.groups}};
        for (const Part& part : kParts) one[std::string(part.name) + "_seconds_per_token"] = r.median.*part.cost;
        out["cases"].push_back(std::move(one));
    }
    return out.dump(2);
}

}  // namespace patchbay::bench
