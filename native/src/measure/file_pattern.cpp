#include "measure/file_pattern.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/gpu.hpp"
#include "host/files.hpp"
#include "measure/pattern_words.hpp"
#include "waywiser/memory.hpp"

namespace waywiser::measure {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // a multiple of the pattern's word

// The offset in the view of its n-th byte, and the number of contiguous bytes from there.
std::pair<std::size_t, std::size_t> run_at(const View& view, std::size_t n) {
    if (view.arrangement == nullptr) return {n, view.bytes - n};
    const std::size_t within = n % view.arrangement->run;
    return {view.arrangement->offset(n / view.arrangement->run) + within,
            view.arrangement->run - within};
}

// Some bytes of a view in memory that the CPU can access.
void fetch(const View& view, std::size_t offset, std::byte* to, std::size_t bytes,
           const Machine& machine) {
    if (view.data == nullptr) {
        host::read_fully(view.file, to, bytes, view.offset + offset);
        return;
    }
    const MemoryKind* kind = Memories::instance().find(view.memory->kind);
    if (kind != nullptr && kind->cpu_accessible()) {
        std::memcpy(to, view.data + offset, bytes);
        return;
    }
    const int gpu = view.memory->on_gpu() ? view.memory->place.index : machine.gpus.front().index;
    gpu::copy_sync(to, view.data + offset, bytes, gpu);
}

void note(Mismatch& found, std::size_t at) {
    if (found.count++ == 0) found.first = at;
}

}  // namespace

void write_file(const View& view, std::uint64_t seed, Content content) {
    const Word flip = content == Content::pattern ? 0 : ~Word{0};
    const auto piece = host::page_aligned(kPiece);
    for (std::size_t done = 0; done < view.bytes; done += kPiece) {
        const std::size_t bytes = std::min(kPiece, view.bytes - done);
        for (std::size_t at = 0; at < bytes; at += kWord) {
            const Word word = word_at(seed, (done + at) / kWord) ^ flip;
            std::memcpy(piece.get() + at, &word, std::min(kWord, bytes - at));
        }
        host::write_fully(view.file, piece.get(), bytes, view.offset + done);
    }
}

Mismatch check_file(const View& view, std::uint64_t seed) {
    host::drop(view.file, view.offset, view.bytes);
    Mismatch found;
    const auto piece = host::page_aligned(kPiece);
    for (std::size_t done = 0; done < view.bytes; done += kPiece) {
        const std::size_t bytes = std::min(kPiece, view.bytes - done);
        host::read_fully(view.file, piece.get(), bytes, view.offset + done);
        for (std::size_t at = 0; at < bytes; ++at) {
            if (std::to_integer<unsigned char>(piece[at]) != byte_at(seed, 0, done + at)) {
                note(found, done + at);
            }
        }
    }
    return found;
}

Mismatch compare_with_file(const View& destination, const View& source, const Machine& machine) {
    Mismatch found;
    const auto arrived = host::page_aligned(kPiece);
    const auto sent = host::page_aligned(kPiece);
    for (std::size_t done = 0; done < destination.bytes;) {
        const auto [to, to_run] = run_at(destination, done);
        const auto [from, from_run] = run_at(source, done);
        const std::size_t bytes = std::min({kPiece, to_run, from_run, destination.bytes - done});
        fetch(destination, to, arrived.get(), bytes, machine);
        fetch(source, from, sent.get(), bytes, machine);
        if (std::memcmp(arrived.get(), sent.get(), bytes) != 0) {
            for (std::size_t at = 0; at < bytes; ++at) {
                if (arrived[at] != sent[at]) note(found, done + at);
            }
        }
        done += bytes;
    }
    return found;
}

}  // namespace waywiser::measure
