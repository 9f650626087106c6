// What a part of the engine keeps of those sequences whose requests ask for what it does: made then, dropped when the
// sequence ends. A sequence that asks for nothing has none.
#pragma once
#include <unordered_map>
#include <utility>

#include "engine/request/ids.hpp"

namespace patchbay::engine {

template <class T>
class SequenceRecords {
  public:
    T& add(RequestId id, T record = {}) { return records_.insert_or_assign(id, std::move(record)).first->second; }
    T* find(RequestId id) {
        if (records_.empty()) return nullptr;
        const auto at = records_.find(id);
        return at == records_.end() ? nullptr : &at->second;
    }
    const T* find(RequestId id) const { return const_cast<SequenceRecords&>(*this).find(id); }
    T& of(RequestId id) { return records_[id]; } // made if there is none
    void erase(RequestId id) { records_.erase(id); }
    bool empty() const { return records_.empty(); }

  private:
    std::unordered_map<RequestId, T> records_;
};

}  // namespace patchbay::engine
