// What the launcher of the `gil` experiment calls in place of a kernel launch, and what keeps the
// ranks of a group in step. A shared library for ctypes, of C alone.
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/// Busy for `ns` nanoseconds by the monotonic clock; returns at once for 0.
void spin(int64_t ns) {
  if (ns <= 0) return;
  const int64_t end = now_ns() + ns;
  while (now_ns() < end) {
  }
}

/// Returns when all `ranks` processes that share the memory have called it as often as this one.
/// `shared` begins with two zeros: the ranks that have arrived, and the number of the meeting.
void meet(atomic_int* shared, int ranks) {
  const int meeting = atomic_load(&shared[1]);
  if (atomic_fetch_add(&shared[0], 1) + 1 == ranks) {
    atomic_store(&shared[0], 0);
    atomic_store(&shared[1], meeting + 1);
    return;
  }
  while (atomic_load(&shared[1]) == meeting) sched_yield();
}
