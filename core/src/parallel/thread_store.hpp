// The store and groups of ranks that are threads of one process, for the checks of devices.
#pragma once
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "parallel/store_limits.hpp"
#include "patchbay/abi/device.h"

namespace patchbay::parallel {

class ThreadStore {
  public:
    ThreadStore(uint32_t size, uint32_t timeout_ms) : size_(size), timeout_ms_(timeout_ms) {}

    // For one rank; the store must outlive it.
    pb_group group(uint32_t rank) {
        return {sizeof(pb_group), rank, size_, timeout_ms_, "127.0.0.1", this, set, get};
    }
    void close() { // as when a rank is gone, or cannot connect: releases the waiting ranks
        const std::lock_guard lock(mutex_);
        closed_ = true;
        changed_.notify_all();
    }

  private:
    static pb_status set(void* ctx, const char* key, const void* value, uint64_t bytes) {
        auto& self = *static_cast<ThreadStore*>(ctx);
        if (!may_be_stored(key, bytes)) return PB_INVALID;
        const std::lock_guard lock(self.mutex_);
        self.values_.emplace(key, std::string(static_cast<const char*>(value), bytes));
        self.changed_.notify_all();
        return PB_OK;
    }
    static pb_status get(void* ctx, const char* key, void* out, uint64_t* bytes) {
        auto& self = *static_cast<ThreadStore*>(ctx);
        if (!is_device_key(key)) return PB_INVALID;
        std::unique_lock lock(self.mutex_);
        self.changed_.wait(lock, [&] { return self.closed_ || self.values_.contains(key); });
        if (self.closed_) return PB_FAILED;
        const std::string& value = self.values_.at(key);
        if (value.size() > *bytes) return PB_INVALID;
        value.copy(static_cast<char*>(out), value.size());
        *bytes = value.size();
        return PB_OK;
    }

    const uint32_t size_, timeout_ms_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::string, std::string> values_;
    bool closed_ = false;
};

}  // namespace patchbay::parallel
