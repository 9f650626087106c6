// KV blocks as a scenario names them, without their ids: `a/3` is block 3 of request a, counted from 0, and `a/3/1` the
// same of KV group 1. A block that requests share has a name of each. Used by scenario/player.cpp.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"
#include "kv/kv_cache.hpp"
#include "scenario/scenario.hpp"

namespace patchbay::scenario {

struct BlockName {
    std::string request;
    uint32_t block = 0, group = 0;
};

// Nothing where the text is no such name. `known`: whether there is a request of that id, which may have slashes too.
std::optional<BlockName> block_name(const std::string& text, const std::function<bool(const std::string&)>& known);

// Which requests' tokens the cached blocks hold, and what has entered and left the prefix cache.
class Blocks {
  public:
    static constexpr size_t kMaxListed = 4096; // events of a kind; further ones are counted

    void follow(engine::Engine&); // from now on; the engine outlives this
    void note(const std::string& request, engine::RequestId); // it is planned: its blocks have their names

    // How many requests hold the block; nothing: it is neither held nor cached.
    std::optional<uint64_t> references(const std::string& name) const;
    // Cached blocks that no request holds, the first to be evicted first: so many, by the names that are expected.
    Names evicted_next(const Names& expected) const;
    KvEvents events(const KvEvents& expected) const; // since forget_events()
    void forget_events();

  private:
    struct Request {
        engine::RequestId id = 0;
        std::vector<kv::BlockKey> keys; // of its full blocks
    };
    struct Kind {
        uint64_t count = 0;
        std::vector<kv::BlockKey> listed;
    };
    struct KeyHash {
        size_t operator()(const kv::BlockKey& k) const { return k.low; }
    };
    std::optional<BlockName> parse(const std::string& name) const;
    std::optional<kv::BlockKey> key_of(const std::string& name) const;
    std::string name_of(const kv::BlockKey&, const Names& expected, size_t at) const;

    const engine::Engine* engine_ = nullptr; // null: no expectation needs this
    std::map<std::string, Request> requests_;
    std::unordered_map<kv::BlockKey, std::string, KeyHash> first_names_;
    std::map<std::string, Kind> events_; // stored, removed, cleared
};

}  // namespace patchbay::scenario
