// A rank that is lost while the CPU devices connect: the others must not wait for it until Gloo's time is up.
#include <gtest/gtest.h>

#include <future>

#include "base/thread_pool.hpp"
#include "host/registry.hpp"
#include "parallel/thread_store.hpp"
#include "paths.hpp"

namespace patchbay::lost_rank_test {
namespace {

host::Device cpu_device(const ThreadPool& pool) {
    const auto registry = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    if (!registry) throw std::runtime_error(registry.error());
    auto device = registry->device("cpu", {}, {&pool.service(), nullptr, nullptr});
    if (!device) throw std::runtime_error(device.error());
    return *std::move(device);
}

// A rank's view of the store whose rank is lost once all are ready and it has published its address.
struct LostGroup {
    explicit LostGroup(const pb_group& whole) : group(whole) {}
    static pb_status set(void* ctx, const char* key, const void* value, uint64_t bytes) {
        const pb_group& g = static_cast<LostGroup*>(ctx)->group;
        return g.set(g.ctx, key, value, bytes);
    }
    static pb_status get(void* ctx, const char* key, void* out, uint64_t* bytes) {
        const pb_group& g = static_cast<LostGroup*>(ctx)->group;
        if (std::string_view(key).find("ready/") == std::string_view::npos) return PB_FAILED;
        return g.get(g.ctx, key, out, bytes);
    }
    pb_group group;
};

TEST(LostRank, EndsTheConnectingOfAnotherOneThatIsDisconnected) {
    ThreadPool pool(1);
    const host::Device first = cpu_device(pool), second = cpu_device(pool);
    parallel::ThreadStore store(2, 20'000);
    LostGroup lost(store.group(1));
    pb_group ours = store.group(0), theirs = lost.group;
    theirs.address = "127.0.0.2"; // of two that connect the lower address listens: it cannot notice that no one comes
    theirs.ctx = &lost;
    theirs.set = LostGroup::set;
    theirs.get = LostGroup::get;
    auto connecting = std::async([&] { return first.checked<&pb_device_collectives::connect>(&ours); });
    EXPECT_FALSE(second.checked<&pb_device_collectives::connect>(&theirs));
    first.call<&pb_device_collectives::disconnect>(); // as the host does when it knows of the loss
    EXPECT_EQ(connecting.get().error(), "device 'cpu': connect: given up, since another rank is gone");
}

}  // namespace
}  // namespace patchbay::lost_rank_test
