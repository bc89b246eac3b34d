// Copies within a GPU by a matrix product: the source is a matrix of bytes with kSide columns, and
// is multiplied by the identity. It is a load on tensor cores and multiprocessors whose result can
// be verified like any copy. Surveys measure it beside copies, which shows what these take from a
// program's own products. It is not the product of a tuned library.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "executor/reach.hpp"
#include "gpu/gpu.hpp"
#include "gpu/launch.hpp"
#include "waywiser/executor.hpp"
#include "waywiser/memory.hpp"

#if defined(__CUDACC__)
#include <mma.h>
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 720
#pragma nv_diag_suppress 177  // what only the product uses, which prepare() does not start there
#endif

namespace waywiser {
namespace {

// The inner dimension, and the columns of the source, the identity and the result. Each byte that
// is read or written costs 1,024 operations, so that arithmetic limits the product, and memory does
// not.
constexpr std::size_t kSide = 1024;
// A block computes a tile of the result, and its warps parts of 32 x 64: enough to reuse what they
// load. Two blocks fit on a multiprocessor.
constexpr unsigned kThreads = 256;
constexpr std::size_t kTile = 128;
// Bytes of the inner dimension that are loaded at once, in slabs for one instruction each.
constexpr std::size_t kStep = 64;
constexpr std::size_t kSlab = 16;
// A product is a row of launches, as in programs, so that kernels of copies start between them. A
// launch has about one block for each place on an H200. A gate holds a limited number of launches.
constexpr std::size_t kRows = 4096;
constexpr std::size_t kMostLaunches = 64;

constexpr std::size_t rows_of(std::size_t bytes) { return (bytes + kSide - 1) / kSide; }

// A multiple of the tile.
constexpr std::size_t rows_of_launch(std::size_t bytes) {
    const std::size_t rows = (rows_of(bytes) + kMostLaunches - 1) / kMostLaunches;
    return std::max(kRows, (rows + kTile - 1) / kTile * kTile);
}

struct Identity {
    std::byte* to;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        for (std::size_t n = thread.index; n < kSide * kSide; n += thread.count) {
            to[n] = n / kSide == n % kSide ? std::byte{1} : std::byte{0};
        }
    }
};

// The last row may be a part of a row. A byte is a signed number; its product with 1, and zeros
// added, keep all of its bits.
struct Product {
    static constexpr unsigned kMostThreads = kThreads;

    std::byte* to;
    const std::byte* from;
    const std::byte* identity;
    std::size_t bytes;

    WAYWISER_ON_GPU void operator()(gpu::Thread thread) const {
        const std::size_t block = thread.index / kThreads;
        const auto own = static_cast<unsigned>(thread.index % kThreads);
        const std::size_t row = block / (kSide / kTile) * kTile;
        const std::size_t column = block % (kSide / kTile) * kTile;
#if defined(__CUDACC__)
        multiply(row, column, own);
#else
        // The result without the arithmetic: half a row of the tile for each thread.
        constexpr std::size_t kPart = kTile * kTile / kThreads;
        const std::size_t at = own * kPart;
        const std::size_t first = (row + at / kTile) * kSide + column + at % kTile;
        if (first >= bytes) return;
        std::memcpy(to + first, from + first, std::min(kPart, bytes - first));
#endif
    }

#if defined(__CUDACC__)
private:
    // The tiles of the source and of the identity, which is symmetric, so that its rows are its
    // columns. A slab has 16 bytes of each row, next to each other.
    static constexpr std::size_t kTileBytes = kTile * kStep;
    static constexpr unsigned kWarps = kThreads / 32;
    static constexpr std::size_t kLoads = kTileBytes / sizeof(uint4) / kThreads;
    static constexpr int kDown = 2;    // fragments of a warp, one below the other
    static constexpr int kAcross = 4;  // and one beside the other

    __device__ void multiply(std::size_t row, std::size_t column, unsigned own) const {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 720
        using namespace nvcuda;
        __shared__ alignas(128) signed char tiles[2][2][kTileBytes];
        __shared__ alignas(128) int results[kWarps][kSlab * kSlab];
        const unsigned warp = own / 32;
        const std::size_t down = warp / 2 * kDown * kSlab;
        const std::size_t across = warp % 2 * kAcross * kSlab;
        wmma::fragment<wmma::accumulator, 16, 16, 16, int> sums[kDown][kAcross];
        for (auto& line : sums) {
            for (auto& sum : line) wmma::fill_fragment(sum, 0);
        }

        uint4 taken[2][kLoads];
        take(taken, row, column, 0, own);
        put(tiles[0], taken, own);
        __syncthreads();
        for (std::size_t k = 0, now = 0; k < kSide; k += kStep, now = 1 - now) {
            const bool more = k + kStep < kSide;
            if (more) take(taken, row, column, k + kStep, own);
#pragma unroll
            for (std::size_t slab = 0; slab < kStep / kSlab; ++slab) {
                const signed char* const a = tiles[now][0] + (slab * kTile + down) * kSlab;
                const signed char* const b = tiles[now][1] + (slab * kTile + across) * kSlab;
                wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major>
                    left[kDown];
                wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major>
                    right[kAcross];
#pragma unroll
                for (int i = 0; i < kDown; ++i) {
                    wmma::load_matrix_sync(left[i], a + i * kSlab * kSlab, kSlab);
                }
#pragma unroll
                for (int j = 0; j < kAcross; ++j) {
                    wmma::load_matrix_sync(right[j], b + j * kSlab * kSlab, kSlab);
                }
#pragma unroll
                for (int i = 0; i < kDown; ++i) {
#pragma unroll
                    for (int j = 0; j < kAcross; ++j) {
                        wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
                    }
                }
            }
            if (more) put(tiles[1 - now], taken, own);
            __syncthreads();
        }

#pragma unroll
        for (int i = 0; i < kDown; ++i) {
#pragma unroll
            for (int j = 0; j < kAcross; ++j) {
                wmma::store_matrix_sync(results[warp], sums[i][j], kSlab, wmma::mem_row_major);
                __syncwarp();
                write(results[warp], row + down + i * kSlab, column + across + j * kSlab, own % 32);
                __syncwarp();
            }
        }
#endif
    }

    // Loads 16 bytes of rows of both matrices, `k` bytes from the start of the row on.
    __device__ void take(uint4 (&taken)[2][kLoads], std::size_t row, std::size_t column,
                         std::size_t k, unsigned own) const {
#pragma unroll
        for (std::size_t n = 0; n < kLoads; ++n) {
            const std::size_t unit = own + n * kThreads;
            const std::size_t line = unit / (kStep / kSlab);
            const std::size_t at = k + unit % (kStep / kSlab) * kSlab;
            taken[0][n] = load((row + line) * kSide + at);
            taken[1][n] = *reinterpret_cast<const uint4*>(identity + (column + line) * kSide + at);
        }
    }
    static __device__ void put(signed char (&tiles)[2][kTileBytes], const uint4 (&taken)[2][kLoads],
                               unsigned own) {
#pragma unroll
        for (std::size_t n = 0; n < kLoads; ++n) {
            const std::size_t unit = own + n * kThreads;
            const std::size_t line = unit / (kStep / kSlab);
            const std::size_t slab = unit % (kStep / kSlab);
            for (int matrix = 0; matrix < 2; ++matrix) {
                *reinterpret_cast<uint4*>(tiles[matrix] + (slab * kTile + line) * kSlab) =
                    taken[matrix][n];
            }
        }
    }
    // Bytes behind the end are zeros.
    __device__ uint4 load(std::size_t offset) const {
        const std::byte* const first = from + offset;
        if (offset + sizeof(uint4) <= bytes &&
            reinterpret_cast<std::uintptr_t>(first) % sizeof(uint4) == 0) {
            return *reinterpret_cast<const uint4*>(first);
        }
        unsigned words[4] = {};
        for (unsigned n = 0; n < sizeof(uint4) && offset + n < bytes; ++n) {
            words[n / 4] |= static_cast<unsigned>(first[n]) << (n % 4 * 8);
        }
        return {words[0], words[1], words[2], words[3]};
    }
    // Each of the 32 threads of a warp writes half of a row of 16.
    __device__ void write(const int* results, std::size_t row, std::size_t column,
                          unsigned thread) const {
        constexpr unsigned kHalf = kSlab / 2;
        const int* const own = results + thread * kHalf;
        const std::size_t offset = (row + thread / 2) * kSide + column + thread % 2 * kHalf;
        std::byte* const first = to + offset;
        if (offset + kHalf <= bytes && reinterpret_cast<std::uintptr_t>(first) % kHalf == 0) {
            unsigned words[2] = {};
            for (unsigned n = 0; n < kHalf; ++n) {
                words[n / 4] |= (static_cast<unsigned>(own[n]) & 255U) << (n % 4 * 8);
            }
            *reinterpret_cast<uint2*>(first) = {words[0], words[1]};
        } else {
            for (unsigned n = 0; n < kHalf && offset + n < bytes; ++n) {
                first[n] = static_cast<std::byte>(static_cast<unsigned>(own[n]) & 255U);
            }
        }
    }
#endif
};

class ProductExecution final : public Execution {
public:
    ProductExecution(std::size_t bytes, gpu::Stream& stream)
        : rows_(rows_of_launch(bytes)),
          launches_((rows_of(bytes) + rows_ - 1) / rows_),
          stream_(stream),
          identity_(stream.device(), kSide * kSide) {
        gpu::launch(stream_, {.blocks = kSide, .threads = kThreads}, Identity{identity_.data()});
        stream_.synchronize();
    }

    void start(const View& source, const View& destination) override {
        for (std::size_t first = 0; first < source.bytes; first += rows_ * kSide) {
            const std::size_t bytes = std::min(rows_ * kSide, source.bytes - first);
            const std::size_t tiles = (rows_of(bytes) + kTile - 1) / kTile * (kSide / kTile);
            gpu::launch(
                stream_, {.blocks = static_cast<unsigned>(tiles), .threads = kThreads},
                Product{destination.data + first, source.data + first, identity_.data(), bytes});
        }
    }

    void finish() override { stream_.synchronize(); }

    [[nodiscard]] std::size_t entries() const override { return launches_; }

private:
    const std::size_t rows_;
    const std::size_t launches_;
    gpu::Stream& stream_;
    const gpu::DeviceBuffer identity_;
};

class MatrixProduct final : public Executor {
public:
    [[nodiscard]] const Info& info() const override {
        static const Info info{
            .name = "matrix-product",
            .description =
                "a load to measure beside copies: the source as a matrix of 8-bit integers with "
                "1,024 columns, multiplied by the identity on tensor cores (mma)",
            .parameters = {},
            .source =
                "Markidis et al., NVIDIA Tensor Core Programmability, Performance & "
                "Precision, IPDPSW 2018 (warp matrix functions)"};
        return info;
    }

    [[nodiscard]] Traits traits() const override {
        return {
            .bystander = true,
            .family = Family::kernel,
            .shares = {.links = false, .host_memory = false, .cpus = false, .file_system = false},
            .calls = {{.text = "8-bit matrix product (mma)"}}};
    }

    [[nodiscard]] std::optional<std::string> unsupported_reason(const Transfer& transfer,
                                                                const Machine&) const override {
        const Path& path = transfer.path;
        if (!path.source.on_gpu() || path.source.place != path.destination.place) {
            return "a matrix product reads and writes memory of one GPU";
        }
        return std::nullopt;
    }

    [[nodiscard]] std::vector<Parameter> parameters(const Transfer&,
                                                    const Machine&) const override {
        return {};
    }
    [[nodiscard]] TimingMode timing(const Transfer&, const Machine&) const override {
        return TimingMode::device;
    }
    [[nodiscard]] std::vector<int> lanes(const Transfer& transfer, const Machine&) const override {
        return {transfer.path.source.place.index};
    }

    // The identity.
    [[nodiscard]] Requirements requirements(const Transfer& transfer,
                                            const Machine& machine) const override {
        Requirements needs = Executor::requirements(transfer, machine);
        needs.device_bytes[transfer.path.source.place.index] = kSide * kSide;
        return needs;
    }

    [[nodiscard]] std::unique_ptr<Execution> prepare(const Transfer& transfer, const Machine&,
                                                     const std::vector<gpu::Stream*>& lanes,
                                                     transfer::Engine&) const override {
        const gpu::Device device = gpu::device(lanes.front()->device());
        if (device.compute_major * 10 + device.compute_minor < 72) {
            throw NotSupported("tensor cores of compute capability " +
                               std::to_string(device.compute_major) + "." +
                               std::to_string(device.compute_minor) +
                               " do not multiply 8-bit integers: 7.2 and later do");
        }
        return std::make_unique<ProductExecution>(transfer.bytes, *lanes.front());
    }
};

const Registered<Executor, MatrixProduct> registered;

}  // namespace
}  // namespace waywiser
