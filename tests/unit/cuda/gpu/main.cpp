// The kernels' tests on a GPU; exits with 77 where there is none.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    int count = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess || count == 0) {
        std::printf("skipped: no NVIDIA driver/GPU: %s\n", cudaGetErrorString(code));
        return 77;
    }
    return RUN_ALL_TESTS();
}
