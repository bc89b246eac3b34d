// The gate: a stream wait on a value, or a spinning kernel if the driver does not support that.
#include <atomic>

#include "cuda_call.hpp"

namespace waywiser::gpu {

using cuda::check;
using cuda::raw;
using cuda::use;

namespace {

using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

// The driver's stream wait on a value, or nullptr if it has none.
WaitValue wait_value() {
    static const auto function = cuda::driver_function<WaitValue>("cuStreamWaitValue32");
    return function;
}

__global__ void spin_until(const volatile unsigned* word, unsigned epoch) {
    while (static_cast<int>(*word - epoch) < 0) {
    }
}

}  // namespace

struct Gate::State {
    explicit State(int device) : word(sizeof(unsigned), HostUse::portable, device) {}

    HostBuffer word;
    std::atomic<unsigned> epoch{0};  // the value that opens the gate
    std::atomic<bool> closed{false};
    bool by_value = wait_value() != nullptr;

    std::atomic_ref<unsigned> value() {
        return std::atomic_ref<unsigned>(*reinterpret_cast<unsigned*>(word.data()));
    }
};

Gate::Gate(int device) : state_(std::make_unique<State>(device)) { state_->value().store(0); }
Gate::~Gate() { open(); }

void Gate::close(const Stream& stream) {
    use(stream.device());
    if (!state_->closed.exchange(true)) ++state_->epoch;
    const unsigned epoch = state_->epoch;
    auto* word = reinterpret_cast<unsigned*>(state_->word.data());  // also the devices' address
    if (state_->by_value) {
        const CUresult code = wait_value()(raw(stream), reinterpret_cast<CUdeviceptr>(word), epoch,
                                           CU_STREAM_WAIT_VALUE_GEQ);
        if (code == CUDA_SUCCESS) return;
        if (code != CUDA_ERROR_NOT_SUPPORTED && code != CUDA_ERROR_INVALID_VALUE) {
            check(code, "cuStreamWaitValue32");
        }
        state_->by_value = false;
    }
    spin_until<<<1, 1, 0, raw(stream)>>>(word, epoch);
    WAYWISER_CUDA(cudaGetLastError());
}

void Gate::open() noexcept {
    state_->value().store(state_->epoch, std::memory_order_seq_cst);
    state_->closed.store(false);
}

std::string Gate::kind() const { return state_->by_value ? "stream-wait-value" : "spin-kernel"; }

}  // namespace waywiser::gpu
