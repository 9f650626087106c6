#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

#include "base/crash_report.hpp"
#include "base/plugin_call.hpp"

namespace patchbay {
namespace {

using Task = void (*)(void* arg, uint32_t index);

// A waiter spins so long before it sleeps: about as long as the host takes between two ops of a step. Rounds past
// kPauses give the core away, since other processes may want it.
constexpr int kPauses = 400;
constexpr int kYields = 40;

void pause_core() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Whether done() before the time to sleep.
template <class Done>
bool spin_until(Done&& done) {
    for (int i = 0; i < kPauses + kYields; ++i) {
        if (done()) return true;
        if (i < kPauses) pause_core();
        else sched_yield();
    }
    return done();
}

// The n-th of the cores that this process may use, in turn. Where the system refuses, the thread moves freely.
void pin(std::thread& thread, uint32_t n) {
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    const auto count = static_cast<uint32_t>(CPU_COUNT(&allowed));
    uint32_t seen = 0;
    for (uint32_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &allowed) || seen++ != n % count) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        (void)pthread_setaffinity_np(thread.native_handle(), sizeof one, &one);
        return;
    }
#else
    (void)thread, (void)n;
#endif
}

constexpr uint32_t kClosed = UINT32_MAX; // as a ticket's index: no job may be claimed

uint32_t epoch_of(uint64_t ticket) { return static_cast<uint32_t>(ticket >> 32); }
uint32_t index_of(uint64_t ticket) { return static_cast<uint32_t>(ticket); }

}  // namespace

// One job at a time. A task is claimed by a compare-and-swap on `ticket` (epoch << 32 | next index), so a worker that
// comes late with an old epoch claims nothing. The ticket is closed before a job's fields change: who has read a
// changed field has therefore seen the closed ticket, and its claim fails.
//
// The cost of a short job is cache lines that move from core to core. Idle workers poll the line that describes the
// job and add up what they have done; a job is signalled only if a worker sleeps.
struct ThreadPool::Workers {
    alignas(64) std::atomic<uint64_t> ticket{kClosed};
    std::atomic<Task> task{nullptr};
    std::atomic<void*> arg{nullptr};
    std::atomic<const CallRecord*> call{nullptr}; // that run() was called in
    std::atomic<uint32_t> count{0};
    alignas(64) std::atomic<uint32_t> done{0};     // tasks of all jobs that have returned in workers
    alignas(64) std::atomic<uint32_t> sleepers{0}; // workers that sleep, or are about to
    std::atomic<uint32_t> wake{0};                 // grows when sleepers are to look
    std::atomic<bool> stop{false};
    alignas(64) std::mutex turn; // a component may be made beside a step
    uint32_t expected = 0;       // of done, under turn
    std::vector<std::thread> workers;
    pb_pool service{};

    struct Drained {
        uint32_t tasks; // that were run
        uint64_t ticket; // as it was seen last: nothing to claim
    };

    Drained drain() {
        uint64_t seen = ticket.load(std::memory_order_acquire);
        for (uint32_t ran = 0;;) {
            const uint32_t index = index_of(seen), n = count.load(std::memory_order_acquire);
            if (index >= n) return {ran, seen};
            const Task f = task.load(std::memory_order_acquire);
            void* const a = arg.load(std::memory_order_acquire);
            const CallRecord* const c = call.load(std::memory_order_acquire);
            if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire))
                continue;
            if (ran == 0) current_call() = *c;
            f(a, index);
            ++ran;
            seen = ticket.load(std::memory_order_acquire);
        }
    }

    // Returns when there is a job after that of ticket `old`, or the pool stops.
    void await_job(uint64_t old) {
        const auto has_job = [&] {
            const uint64_t now = ticket.load(std::memory_order_seq_cst);
            return index_of(now) != kClosed && epoch_of(now) != epoch_of(old);
        };
        if (spin_until(has_job)) return;
        // Before it looks once more: run() publishes a job, then counts the sleepers.
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        const uint32_t before = wake.load(std::memory_order_acquire);
        if (!has_job() && !stop.load(std::memory_order_acquire)) wake.wait(before, std::memory_order_acquire);
        sleepers.fetch_sub(1, std::memory_order_relaxed);
    }

    void work() {
        for (uint64_t seen = kClosed; !stop.load(std::memory_order_acquire);) {
            await_job(seen);
            const Drained drained = drain();
            if (index_of(drained.ticket) != kClosed) seen = drained.ticket;
            if (drained.tasks == 0) continue;
            current_call() = {};
            done.fetch_add(drained.tasks, std::memory_order_acq_rel);
            done.notify_one();
        }
    }

    void run(uint32_t n, Task f, void* a) {
        if (workers.empty() || n <= 1) {
            for (uint32_t i = 0; i < n; ++i) f(a, i);
            return;
        }
        const std::lock_guard lock(turn);
        const CallRecord in = current_call(); // tasks of this thread may note others in its place
        const uint64_t epoch = uint64_t{epoch_of(ticket.load(std::memory_order_relaxed)) + 1} << 32;
        ticket.store(epoch | kClosed, std::memory_order_release);
        count.store(n, std::memory_order_release);
        task.store(f, std::memory_order_release);
        arg.store(a, std::memory_order_release);
        call.store(&in, std::memory_order_release);
        ticket.store(epoch, std::memory_order_seq_cst);
        if (sleepers.load(std::memory_order_seq_cst) > 0) {
            wake.fetch_add(1, std::memory_order_release);
            wake.notify_all();
        }
        expected += n - drain().tasks;
        uint32_t finished = 0;
        const auto all_done = [&] { return (finished = done.load(std::memory_order_acquire)) == expected; };
        while (!spin_until(all_done)) done.wait(finished, std::memory_order_acquire);
    }
};

ThreadPool::ThreadPool(uint32_t threads, Pinning pinning) : workers_(std::make_unique<Workers>()) {
    Workers& workers = *workers_;
    threads = std::max(threads, 1u);
    workers.service = {sizeof(pb_pool), PB_POOL_REVISION, threads, 0, &workers,
                       [](void* ctx, uint32_t count, Task task, void* arg) {
                        static_cast<Workers*>(ctx)->run(count, task, arg);
                    }};
    for (uint32_t i = 1; i < threads; ++i) {
        workers.workers.emplace_back([&workers] {
            const SignalStack stack;
            workers.work();
        });
        if (pinning == Pinning::kCores) pin(workers.workers.back(), i);
    }
}

ThreadPool::~ThreadPool() {
    Workers& workers = *workers_;
    workers.stop.store(true, std::memory_order_release);
    workers.wake.fetch_add(1, std::memory_order_release);
    workers.wake.notify_all();
    for (std::thread& worker : workers.workers) worker.join();
}

uint32_t ThreadPool::threads() const { return workers_->service.threads; }

void ThreadPool::run(uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
    workers_->run(count, task, arg);
}

const pb_pool& ThreadPool::service() const { return workers_->service; }

}  // namespace patchbay
