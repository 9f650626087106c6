// A store and groups for ranks that are threads of one process.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "patchbay/abi/device.h"

namespace patchbay::test {

class StoreGroup {
  public:
    explicit StoreGroup(uint32_t size) : size_(size) {}

    pb_group of(uint32_t rank) { return {sizeof(pb_group), rank, size_, 20'000, "127.0.0.1", this, set, get}; }
    void close() { // as when a rank is gone
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

  private:
    static pb_status set(void* ctx, const char* key, const void* value, uint64_t bytes) {
        auto& self = *static_cast<StoreGroup*>(ctx);
        const std::lock_guard lock(self.mutex_);
        self.values_.emplace(key, std::string(static_cast<const char*>(value), bytes));
        self.changed_.notify_all();
        return PB_OK;
    }
    static pb_status get(void* ctx, const char* key, void* out, uint64_t* bytes) {
        auto& self = *static_cast<StoreGroup*>(ctx);
        std::unique_lock lock(self.mutex_);
        self.changed_.wait(lock, [&] { return self.closed_ || self.values_.contains(key); });
        if (self.closed_) return PB_FAILED;
        const std::string& value = self.values_.at(key);
        if (value.size() > *bytes) return PB_INVALID;
        value.copy(static_cast<char*>(out), value.size());
        *bytes = value.size();
        return PB_OK;
    }

    const uint32_t size_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
    bool closed_ = false;
};

}  // namespace patchbay::test
