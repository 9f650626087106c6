// Copies of pages that no step to come would make in time.
#pragma once
#include "engine/loop/batch_builder.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class PageCopies {
  public:
    PageCopies(BatchBuilder& batches, execution::Executor& executor, kv::KvCache& kv)
        : batches_(batches), executor_(executor), kv_(kv) {}

    Result<> flush() { // no step is in flight
        if (kv_.copies().copies().empty()) return {};
        batches_.build_copies();
        PB_CHECK(executor_.submit(batches_.input()));
        PB_TRY(const auto nothing, executor_.wait({}));
        static_cast<void>(nothing);
        kv_.copies().clear();
        return {};
    }

  private:
    BatchBuilder& batches_;
    execution::Executor& executor_;
    kv::KvCache& kv_;
};

}  // namespace patchbay::engine
