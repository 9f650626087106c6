#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

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

// Returns when `word` is no longer `old`.
void wait_while(const std::atomic<uint32_t>& word, uint32_t old) {
    for (int i = 0; i < kPauses + kYields; ++i) {
        if (word.load(std::memory_order_acquire) != old) return;
        if (i < kPauses) pause_core();
        else sched_yield();
    }
    word.wait(old, std::memory_order_acquire);
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

}  // namespace

// One job at a time. A task is claimed by a compare-and-swap on `ticket` (epoch << 32 | next index), so a worker that
// comes late with an old epoch claims nothing. The ticket is closed before a job's fields change: who has read a
// changed field has therefore seen the closed ticket, and its claim fails.
struct ThreadPool::Crew {
    alignas(64) std::atomic<uint64_t> ticket{kClosed};
    std::atomic<Task> task{nullptr};
    std::atomic<void*> arg{nullptr};
    std::atomic<uint32_t> count{0};
    alignas(64) std::atomic<uint32_t> done{0};   // tasks of this job that have returned
    alignas(64) std::atomic<uint32_t> signal{0}; // grows with each job; what idle workers wait on
    std::atomic<bool> stop{false};
    std::vector<std::thread> workers;
    std::mutex turn; // a component may be made beside a step
    pb_pool service{};

    void drain() {
        uint64_t seen = ticket.load(std::memory_order_acquire);
        for (;;) {
            const auto index = static_cast<uint32_t>(seen);
            const uint32_t n = count.load(std::memory_order_acquire);
            if (index >= n) return;
            const Task f = task.load(std::memory_order_acquire);
            void* const a = arg.load(std::memory_order_acquire);
            if (!ticket.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_acquire))
                continue;
            f(a, index);
            if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == n) done.notify_one();
            ++seen;
        }
    }

    void work() {
        for (;;) {
            const uint32_t before = signal.load(std::memory_order_acquire);
            if (stop.load(std::memory_order_acquire)) return;
            drain();
            wait_while(signal, before);
        }
    }

    void run(uint32_t n, Task f, void* a) {
        if (workers.empty() || n <= 1) {
            for (uint32_t i = 0; i < n; ++i) f(a, i);
            return;
        }
        const std::lock_guard lock(turn);
        const uint64_t epoch = (ticket.load(std::memory_order_relaxed) >> 32) + 1;
        ticket.store(epoch << 32 | kClosed, std::memory_order_seq_cst);
        done.store(0, std::memory_order_release);
        count.store(n, std::memory_order_release);
        task.store(f, std::memory_order_release);
        arg.store(a, std::memory_order_release);
        ticket.store(epoch << 32, std::memory_order_release);
        signal.fetch_add(1, std::memory_order_acq_rel);
        signal.notify_all();
        drain();
        for (uint32_t finished; (finished = done.load(std::memory_order_acquire)) != n;) wait_while(done, finished);
    }
};

ThreadPool::ThreadPool(uint32_t threads, Pinning pinning) : crew_(std::make_unique<Crew>()) {
    Crew& crew = *crew_;
    threads = std::max(threads, 1u);
    crew.service = {sizeof(pb_pool), threads, &crew, [](void* ctx, uint32_t count, Task task, void* arg) {
                        static_cast<Crew*>(ctx)->run(count, task, arg);
                    }};
    for (uint32_t i = 1; i < threads; ++i) {
        crew.workers.emplace_back([&crew] { crew.work(); });
        if (pinning == Pinning::kCores) pin(crew.workers.back(), i);
    }
}

ThreadPool::~ThreadPool() {
    Crew& crew = *crew_;
    crew.stop.store(true, std::memory_order_release);
    crew.signal.fetch_add(1, std::memory_order_acq_rel);
    crew.signal.notify_all();
    for (std::thread& worker : crew.workers) worker.join();
}

uint32_t ThreadPool::threads() const { return crew_->service.threads; }

void ThreadPool::run(uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
    crew_->run(count, task, arg);
}

const pb_pool& ThreadPool::service() const { return crew_->service; }

}  // namespace patchbay
