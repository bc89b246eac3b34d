#include "transfer/chunk_supply.hpp"

#include <algorithm>
#include <tuple>

#include "transfer/job.hpp"

namespace waywiser::transfer {

void ChunkSupply::open(std::shared_ptr<const gpu::Event> start) {
    start_ = std::move(start);
    on_route_.assign(job_.routes().size(), 0);
}

bool ChunkSupply::exhausted() const {
    return next_ >= job_.moved_or_expected() && put_back_.empty();
}

std::size_t ChunkSupply::most_left() const {
    const std::size_t end = job_.moved_or_expected();
    const std::size_t bytes = end - std::min(end, next_);
    return put_back_.size() + (bytes + job_.least() - 1) / job_.least();
}

std::optional<std::size_t> ChunkSupply::free_route() const {
    const auto& routes = job_.routes();
    for (std::size_t i = 0; i < routes.size(); ++i) {
        const std::size_t n = (turn_ + i) % routes.size();
        if (on_route_[n] < routes[n].most_chunks) return n;
    }
    return std::nullopt;
}

// Bytes of the chunk that starts at the next byte. If CPUs fill chunks, sizes grow with the number
// of earlier bytes per thread, so that the link has work while the next ones are filled. Sizes
// shrink with the number of remaining bytes, so that no thread or link is left working alone. The
// same applies to two links: the second waits for the first chunk, and the first for the last one.
std::size_t ChunkSupply::next_bytes(std::size_t threads) const {
    threads = std::min(job_.most_threads(), threads);
    const std::size_t left = job_.bytes() - next_;
    const std::size_t grown = job_.two_links() ? next_
                              : job_.fills()   ? next_ / threads
                                               : job_.chunk();
    const std::size_t shrunk =
        job_.two_links() ? left / 2 : left * (job_.fills() ? 2 : 1) / threads;
    const std::size_t least = job_.least();
    const std::size_t whole = std::min({job_.chunk(), grown, shrunk}) / least * least;
    const std::size_t over = (job_.first() + next_) % least;  // only for the first chunk
    return std::min(left, std::max(whole, least) - over);
}

Chunk ChunkSupply::take(std::size_t route, std::size_t threads) {
    Chunk chunk;
    if (!put_back_.empty()) {
        std::tie(chunk.at, chunk.bytes) = put_back_.back();
        put_back_.pop_back();
    } else {
        chunk.at = next_;
        chunk.bytes = next_bytes(threads);
        next_ += chunk.bytes;
    }
    chunk.claimed = chunk.bytes;
    chunk.route = route;
    turn_ = route + 1;
    ++incomplete_;
    ++not_submitted_;
    ++on_route_[route];
    return chunk;
}

void ChunkSupply::put_back(const Chunk& chunk) {
    completed(chunk);
    --not_submitted_;
    put_back_.emplace_back(chunk.at, chunk.bytes);
}

bool ChunkSupply::submitted(std::size_t chunks) {
    not_submitted_ -= chunks;
    return not_submitted_ == 0 && exhausted();
}

void ChunkSupply::completed(const Chunk& chunk) {
    --incomplete_;
    --on_route_[chunk.route];
}

}  // namespace waywiser::transfer
