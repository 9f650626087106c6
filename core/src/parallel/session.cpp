#include "parallel/session.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "kv/block_table.hpp"
#include "parallel/bytes.hpp"

namespace patchbay::parallel {

constexpr uint32_t kMaxItems = 1 << 20; // of any list: far below the limit of a message

std::string bytes_of(const Begin& b) {
    ByteWriter out;
    out.put(std::string_view(b.configuration));
    out.put(static_cast<uint32_t>(b.plugin_dirs.size()));
    for (const std::string& dir : b.plugin_dirs) out.put(std::string_view(dir));
    out.put(b.connect_ms);
    return std::string(out.bytes());
}

Result<Begin> read_begin(std::string_view bytes) {
    ByteReader in(bytes);
    Begin out;
    out.configuration = in.text();
    for (auto n = std::min(in.get<uint32_t>(), kMaxItems); n > 0 && !in.torn(); --n)
        out.plugin_dirs.push_back(in.text());
    out.connect_ms = in.get<uint64_t>();
    PB_CHECK(in.done("the beginning of a session"));
    return out;
}

std::string bytes_of(const std::vector<Fact>& facts) {
    ByteWriter out;
    out.put(static_cast<uint32_t>(facts.size()));
    for (const Fact& f : facts) {
        out.put(std::string_view(f.name));
        out.put(std::string_view(f.value));
    }
    return std::string(out.bytes());
}

Result<std::vector<Fact>> read_facts(std::string_view bytes) {
    ByteReader in(bytes);
    std::vector<Fact> out;
    for (auto n = std::min(in.get<uint32_t>(), kMaxItems); n > 0 && !in.torn(); --n) {
        std::string name = in.text();
        out.push_back({std::move(name), in.text()});
    }
    PB_CHECK(in.done("what a rank loads"));
    return out;
}

std::string difference(const std::vector<Fact>& ours, const std::vector<Fact>& theirs) {
    for (size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
        if (i >= ours.size()) return "it has a " + theirs[i].name + ", rank 0 has none";
        if (i >= theirs.size() || theirs[i].name != ours[i].name) return "it has no " + ours[i].name;
        if (theirs[i].value != ours[i].value)
            return ours[i].name + " is " + theirs[i].value + " there, " + ours[i].value + " on rank 0";
    }
    return "";
}

std::string bytes_of(const RankSwap& s) {
    ByteWriter out;
    out.put(s.number);
    out.put(static_cast<uint8_t>(s.slot));
    out.put(static_cast<uint8_t>(s.verb));
    out.put(s.candidate);
    for (const std::string* text : {&s.plugin, &s.library, &s.sha256, &s.weights, &s.identity})
        out.put(std::string_view(*text));
    out.put(static_cast<uint32_t>(s.settings.size()));
    for (const auto& [key, value] : s.settings) {
        out.put(std::string_view(key));
        out.put(std::string_view(value));
    }
    return std::string(out.bytes());
}

Result<RankSwap> read_swap(std::string_view bytes) {
    ByteReader in(bytes);
    RankSwap out;
    out.number = in.get<uint64_t>();
    const auto slot = in.get<uint8_t>(), verb = in.get<uint8_t>();
    out.candidate = in.get<uint64_t>();
    for (std::string* text : {&out.plugin, &out.library, &out.sha256, &out.weights, &out.identity}) *text = in.text();
    for (auto n = std::min(in.get<uint32_t>(), kMaxItems); n > 0 && !in.torn(); --n) {
        std::string key = in.text();
        out.settings[std::move(key)] = in.text();
    }
    PB_CHECK(in.done("a swap"));
    if (slot > static_cast<uint8_t>(RankSwap::Slot::kModel) || verb > static_cast<uint8_t>(RankSwap::Verb::kDrop))
        return invalid("a swap is of slot " + std::to_string(slot) + " and verb " + std::to_string(verb));
    out.slot = static_cast<RankSwap::Slot>(slot);
    out.verb = static_cast<RankSwap::Verb>(verb);
    return out;
}

std::string answer_to_swap(const Result<>& done) {
    ByteWriter out;
    if (!done) out.put(done.failure());
    return std::string(out.bytes());
}

Result<> read_swap_answer(std::string_view bytes) {
    if (bytes.empty()) return {};
    ByteReader in(bytes);
    Failure why = in.failure();
    PB_CHECK(in.done("the answer to a swap"));
    return why;
}

std::string bytes_of(const std::vector<runner::BatchRow>& rows, std::span<const kv::PageCopy> copies) {
    ByteWriter out;
    out.put(static_cast<uint32_t>(copies.size()));
    for (const kv::PageCopy& page : copies) {
        out.put(page.to);
        out.put(page.from);
        out.put(static_cast<uint8_t>(page.way));
    }
    out.put(static_cast<uint32_t>(rows.size()));
    for (const runner::BatchRow& row : rows) {
        out.put(row.tokens);
        out.put(row.computed);
        out.put(row.logit_rows);
        out.put(static_cast<uint32_t>(row.table.pages.size()));
        for (const auto& group : row.table.pages) out.put(std::span<const kv::BlockId>(group));
    }
    return std::string(out.bytes());
}

Result<> read_step(std::string_view bytes, StepRows& out) {
    struct Numbers {
        uint32_t computed, logit_rows;
    };
    ByteReader in(bytes);
    out.rows_.clear();
    out.tokens_.clear();
    out.tables_.clear();
    out.copies_.clear();
    for (auto n = std::min(in.get<uint32_t>(), kMaxItems); n > 0 && !in.torn(); --n) {
        const auto to = in.get<kv::BlockId>();
        const auto from = in.get<kv::BlockId>();
        out.copies_.push_back({to, from, static_cast<kv::Way>(in.get<uint8_t>())});
    }
    std::vector<Numbers> numbers;
    for (auto n = std::min(in.get<uint32_t>(), kMaxItems); n > 0 && !in.torn(); --n) {
        in.values(out.tokens_.emplace_back());
        const auto computed = in.get<uint32_t>();
        numbers.push_back({computed, in.get<uint32_t>()});
        kv::BlockTable& table = out.tables_.emplace_back();
        for (auto groups = std::min(in.get<uint32_t>(), kMaxItems); groups > 0 && !in.torn(); --groups)
            in.values(table.pages.emplace_back());
    }
    PB_CHECK(in.done("a step"));
    for (size_t i = 0; i < numbers.size(); ++i)
        out.rows_.push_back({out.tokens_[i], numbers[i].computed, numbers[i].logit_rows, out.tables_[i]});
    return {};
}

namespace {

// Of one group, for tokens [computed, end): blocks outside the window have no page.
Result<> check_pages(const std::vector<kv::BlockId>& pages, uint64_t computed, uint64_t end, const StepLimits& limits) {
    const uint64_t block = limits.form.block_size, wanted = (end + block - 1) / block;
    if (pages.size() < wanted) return invalid("a step has too few pages for its tokens");
    for (uint64_t i = 0; i < pages.size(); ++i) {
        if (pages[i] == kv::kNoBlock && (i + 1) * block <= computed) continue;
        if (pages[i] < 0 || static_cast<uint32_t>(pages[i]) >= limits.num_blocks)
            return invalid("a step uses page " + std::to_string(pages[i]) + " of " + std::to_string(limits.num_blocks));
    }
    return {};
}

Result<> check_copied(kv::BlockId id, uint32_t count) {
    if (id >= 0 && static_cast<uint32_t>(id) < count) return {};
    return invalid("a step copies page " + std::to_string(id) + " of " + std::to_string(count));
}

}  // namespace

Result<> check_step(const std::vector<runner::BatchRow>& rows, std::span<const kv::PageCopy> copies,
                    const StepLimits& limits) {
    for (const kv::PageCopy& page : copies) {
        if (page.way > kv::Way::kZeroSlot)
            return invalid("a step copies a page in way " + std::to_string(static_cast<int>(page.way)));
        if (!limits.zeroes && (page.way == kv::Way::kZeroPage || page.way == kv::Way::kZeroSlot))
            return invalid("a step overwrites a page with zeros, which zero_freed_blocks does not ask for");
        const bool to_slot = page.way == kv::Way::kToHost || page.way == kv::Way::kZeroSlot;
        const bool from_slot = page.way == kv::Way::kToDevice || page.way == kv::Way::kZeroSlot;
        PB_CHECK(check_copied(page.to, to_slot ? limits.swap_slots : limits.num_blocks));
        PB_CHECK(check_copied(page.from, from_slot ? limits.swap_slots : limits.num_blocks));
    }
    const uint32_t groups = limits.form.token_groups + limits.form.state_groups;
    for (const runner::BatchRow& row : rows) {
        const uint64_t end = uint64_t{row.computed} + row.tokens.size();
        if (row.tokens.empty() || row.logit_rows > row.tokens.size()) return invalid("a step has a row without tokens");
        if (end > limits.max_position)
            return invalid("a step computes position " + std::to_string(end) + " of " +
                           std::to_string(limits.max_position));
        for (const int32_t id : row.tokens)
            if (id < 0 || static_cast<uint32_t>(id) >= limits.vocab_size)
                return invalid("a step computes token " + std::to_string(id) + " of " +
                               std::to_string(limits.vocab_size));
        if (row.table.pages.size() != groups)
            return invalid("a step has pages of " + std::to_string(row.table.pages.size()) + " KV groups, here are " +
                           std::to_string(groups));
        for (uint32_t g = 0; g < groups; ++g) {
            const bool states = g >= limits.form.token_groups;
            PB_CHECK(check_pages(row.table.pages[g], states ? 0 : row.computed, states ? 1 : end, limits));
        }
    }
    return {};
}

}  // namespace patchbay::parallel
