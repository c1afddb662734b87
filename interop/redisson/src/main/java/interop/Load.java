package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import org.redisson.api.RDelayedQueue;

/** Many offers from many threads: the values prefix-0, prefix-1 and so on, padded to a size. */
final class Load {
    private final RDelayedQueue<Object> delayed;
    private final int count;
    private final int size;
    private final long least;
    private final long most;
    private final int threads;
    private final String prefix;
    private final boolean stamped;
    private final long due;
    private final long rate;
    private final AtomicInteger next = new AtomicInteger();
    private long began;

    Load(RDelayedQueue<Object> delayed, Request request) {
        this.delayed = delayed;
        count = (int) request.number(0);
        size = (int) request.number(1);
        least = request.number(2);
        most = request.number(3);
        threads = (int) request.number(4);
        prefix = request.text(5);
        stamped = (Boolean) request.value(6);
        due = request.number(7);
        rate = request.number(8);
    }

    /** Returns the nanoseconds that it took. */
    long run() throws InterruptedException, ExecutionException {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            return timed(pool);
        } finally {
            pool.shutdown();
        }
    }

    private long timed(ExecutorService pool) throws InterruptedException, ExecutionException {
        began = System.nanoTime();
        List<Future<?>> ends = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            ends.add(pool.submit(this::offer));
        }
        for (Future<?> end : ends) {
            end.get();
        }
        return System.nanoTime() - began;
    }

    private void offer() {
        for (int i = next.getAndIncrement(); i < count; i = next.getAndIncrement()) {
            awaitTurn(i);
            long delay = delay();
            delayed.offer(value(i, delay), delay, TimeUnit.MILLISECONDS);
        }
    }

    private void awaitTurn(int i) {
        while (rate > 0) {
            long left = began + i * 1_000_000_000L / rate - System.nanoTime();
            if (left <= 0) {
                return;
            }
            LockSupport.parkNanos(left);
        }
    }

    private long delay() {
        if (due > 0) {
            return Math.max(due - System.currentTimeMillis(), 0);
        }
        return ThreadLocalRandom.current().nextLong(least, most + 1);
    }

    private String value(int i, long delay) {
        StringBuilder value = new StringBuilder(prefix).append('-').append(i);
        if (stamped) {
            value.append('@').append(System.currentTimeMillis() + delay);
        }
        while (value.length() < size) {
            value.append('.');
        }
        return value.toString();
    }
}
