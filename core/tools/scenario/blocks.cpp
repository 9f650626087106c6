#include "scenario/blocks.hpp"

#include <algorithm>

#include "base/numbers.hpp"

namespace patchbay::scenario {
namespace {

// The number after the last slash, which is cut off with it.
std::optional<uint32_t> take_number(std::string& text) {
    const size_t slash = text.rfind('/');
    if (slash == std::string::npos) return std::nullopt;
    const std::string digits = text.substr(slash + 1);
    const auto number = parse_number<uint32_t>(digits);
    if (!number || std::to_string(*number) != digits) return std::nullopt;
    text.resize(slash);
    return number;
}

std::string text_of(const BlockName& name) {
    return name.request + "/" + std::to_string(name.block) + (name.group > 0 ? "/" + std::to_string(name.group) : "");
}

const char* word_of(kv::CacheEvent::Kind kind) {
    using Kind = kv::CacheEvent::Kind;
    return kind == Kind::kStored ? "stored" : kind == Kind::kRemoved ? "removed" : "cleared";
}

}  // namespace

std::optional<BlockName> block_name(const std::string& text, const std::function<bool(const std::string&)>& known) {
    std::string rest = text;
    const auto last = take_number(rest);
    if (!last) return std::nullopt;
    if (known(rest)) return BlockName{rest, *last, 0};
    const auto block = take_number(rest);
    if (!block || !known(rest)) return std::nullopt;
    return BlockName{rest, *block, *last};
}

void Blocks::follow(engine::Engine& engine) {
    engine_ = &engine;
    engine.on_kv_events([this](std::span<const kv::CacheEvent> events, uint64_t) {
        for (const kv::CacheEvent& e : events) {
            Kind& kind = events_[word_of(e.kind)];
            kind.count += 1;
            if (kind.listed.size() < kMaxListed) kind.listed.push_back(e.key);
        }
    });
}

void Blocks::note(const std::string& name, engine::RequestId id) {
    const kv::BlockTable* table = engine_ ? engine_->table_of(id) : nullptr;
    if (!table) return;
    Request& r = requests_[name];
    r.id = id;
    const size_t same = r.keys.size();
    if (same > table->keys.size() || (same > 0 && !(table->keys[same - 1] == r.keys.back()))) r.keys.clear();
    for (size_t i = r.keys.size(); i < table->keys.size(); ++i) {
        r.keys.push_back(table->keys[i]);
        for (uint32_t g = 0; g < engine_->kv().shape().windows().size(); ++g)
            first_names_.emplace(kv::in_group(table->keys[i], g), text_of({name, static_cast<uint32_t>(i), g}));
    }
}

std::optional<BlockName> Blocks::parse(const std::string& name) const {
    return block_name(name, [this](const std::string& request) { return requests_.contains(request); });
}

std::optional<kv::BlockKey> Blocks::key_of(const std::string& text) const {
    const auto name = parse(text);
    if (!name) return std::nullopt;
    const auto& keys = requests_.at(name->request).keys;
    return name->block < keys.size() ? std::optional(kv::in_group(keys[name->block], name->group)) : std::nullopt;
}

std::optional<uint64_t> Blocks::references(const std::string& text) const {
    const auto name = parse(text);
    if (!name) return std::nullopt;
    const kv::BlockPool& pool = engine_->kv().pool();
    if (const kv::BlockTable* table = engine_->table_of(requests_.at(name->request).id); table && table->held > 0)
        if (name->group < table->pages.size() && name->block < table->pages[name->group].size())
            if (const kv::BlockId page = table->pages[name->group][name->block]; page != kv::kNoBlock)
                return pool.references(page);
    const auto key = key_of(text);
    std::optional<uint64_t> held;
    for (uint32_t b = 0; key && b < pool.total(); ++b)
        if (const kv::BlockKey* of = pool.identities().key_of(static_cast<kv::BlockId>(b)); of && *of == *key)
            held = std::max<uint64_t>(held.value_or(0), pool.references(static_cast<kv::BlockId>(b)));
    return held;
}

// As it is expected in this place, if that is a name of the block.
std::string Blocks::name_of(const kv::BlockKey& key, const Names& expected, size_t at) const {
    if (at < expected.size())
        if (const auto wanted = key_of(expected[at]); wanted && *wanted == key) return expected[at];
    const auto first = first_names_.find(key);
    return first == first_names_.end() ? "?" : first->second;
}

Names Blocks::evicted_next(const Names& expected) const {
    Names out;
    for (const kv::BlockId page : engine_->kv().pool().free_list().all()) {
        if (out.size() == expected.size()) break;
        if (const kv::BlockKey* key = engine_->kv().pool().identities().key_of(page))
            out.push_back(name_of(*key, expected, out.size()));
    }
    return out;
}

KvEvents Blocks::events(const KvEvents& expected) const {
    KvEvents out;
    for (const auto& [kind, amount] : expected.by_kind) {
        const auto at = events_.find(kind);
        const auto* names = std::get_if<Names>(&amount);
        if (!names) {
            out.by_kind[kind] = Number(at == events_.end() ? 0 : at->second.count);
            continue;
        }
        Names got;
        for (size_t i = 0; at != events_.end() && i < at->second.listed.size(); ++i)
            got.push_back(name_of(at->second.listed[i], *names, i));
        if (at != events_.end() && at->second.count > got.size())
            got.push_back("and " + std::to_string(at->second.count - got.size()) + " more");
        out.by_kind[kind] = std::move(got);
    }
    return out;
}

void Blocks::forget_events() { events_.clear(); }

}  // namespace patchbay::scenario
