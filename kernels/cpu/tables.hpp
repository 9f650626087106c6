// The table of a level, and how an op is split over the workers. For the files of this folder.
#pragma once
#include <algorithm>
#include <type_traits>

#include "cpu/table.hpp"
#include "kernels/cpu.hpp"

namespace patchbay::kernels {

inline const Table& table_of(Isa isa) {
#if defined(__x86_64__)
    if (isa >= Isa::Avx512) return kAvx512Table;
    if (isa == Isa::Avx2) return kAvx2Table;
#endif
    (void)isa;
    return kPlainTable;
}

// nullptr: this level has no such table.
inline const TileTable* tiles_of(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::Amx) return &kAmxTiles;
#endif
    (void)isa;
    return nullptr;
}

inline const TileAttend* tile_attend_of(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::Amx) return &kAmxAttend;
#endif
    (void)isa;
    return nullptr;
}

// Row i of (rows, n), or j of row i of (rows, k, n), f32.
inline float* row_of(const pb_tensor& t, int64_t i, int64_t j = 0) {
    return static_cast<float*>(t.data) + i * t.strides[0] + (t.rank == 3 ? j * t.strides[1] : 0);
}

inline PanelShape panel_shape(const PackedMatrix& w) {
    return {int64_t(w.layout().panel_bytes), w.layout().group, int64_t(w.layout().scale_bytes)};
}

template <class F>
void run_tasks(const Workers& workers, int64_t count, F&& f) {
    if (workers.threads > 1 && count > 1) {
        auto task = [](void* arg, uint32_t i) { (*static_cast<std::remove_reference_t<F>*>(arg))(int64_t(i)); };
        workers.run(workers.ctx, uint32_t(count), task, const_cast<void*>(static_cast<const void*>(&f)));
    } else {
        for (int64_t i = 0; i < count; ++i) f(i);
    }
}

// Calls f(begin, end) over [0, rows) in pieces worth a dispatch, which costs microseconds.
template <class F>
void split_rows(const Workers& workers, int64_t rows, int64_t work_per_row, F&& f) {
    constexpr int64_t kTaskWork = 32 * 1024; // elements: about as long as waking a thread takes
    const int64_t max_tasks = std::min<int64_t>(rows, int64_t(workers.threads) * 2);
    const int64_t tasks = std::clamp<int64_t>(rows * work_per_row / kTaskWork, 1, std::max<int64_t>(max_tasks, 1));
    run_tasks(workers, tasks, [&](int64_t i) { f(rows * i / tasks, rows * (i + 1) / tasks); });
}

}  // namespace patchbay::kernels
