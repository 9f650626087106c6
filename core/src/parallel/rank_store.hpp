// The store of a session, which all ranks share: texts by key, each set once. A rank that reads a key which is not
// set yet gets its answer when it is. Part of HubState.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "parallel/peers.hpp"

namespace patchbay::parallel {

class RankStore {
  public:
    explicit RankStore(Peers& peers) : peers_(peers) {}

    void clear(); // with the questions that wait
    bool contains(const std::string& key) const { return values_.contains(key); }
    void set(const std::string& key, std::string value); // the first value stays
    const std::string& get(const std::string& key) const { return values_.at(key); }
    std::string take(const std::string& key) { return std::move(values_.extract(key).mapped()); }

    void forget(std::string_view prefix); // all keys that begin so

    // Messages of a rank. open: during a session; else it stores nothing, and answers that there is no value.
    Result<> on_set(std::string_view message, bool open);
    Result<> on_get(Peer&, std::string_view message, bool open);

  private:
    Peers& peers_;
    std::map<std::string, std::string> values_;
};

}  // namespace patchbay::parallel
