package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;

/**
 * Looks for lost wake-ups. One far item is pending, and near items are offered one after another,
 * each at the moment at which the one before it was transferred. In each lane, a queue of its own,
 * that happens independently of the others.
 */
final class Race {
    private final Queues queues;
    private final QueueName queue;
    private final int lanes;
    private final int rounds;
    private final long near;
    private final long far;
    private final long patience;

    Race(Queues queues, Request request) {
        this.queues = queues;
        queue = request.queue();
        lanes = (int) request.number(0);
        rounds = (int) request.number(1);
        near = request.number(2);
        far = request.number(3);
        patience = request.number(4);
    }

    /** Returns for each near item by how many nanoseconds it was late, or null if it did not come. */
    List<Long> run() throws InterruptedException, ExecutionException {
        ExecutorService pool = Executors.newFixedThreadPool(lanes);
        try {
            return together(pool);
        } finally {
            pool.shutdown();
        }
    }

    private List<Long> together(ExecutorService pool) throws InterruptedException, ExecutionException {
        List<Future<List<Long>>> ends = new ArrayList<>();
        for (int i = 0; i < lanes; i++) {
            QueueName lane = queue.withSuffix("-" + i);
            ends.add(pool.submit(() -> lane(queues.ready(lane), queues.delayed(lane))));
        }
        List<Long> late = new ArrayList<>();
        for (Future<List<Long>> end : ends) {
            late.addAll(end.get());
        }
        return late;
    }

    private List<Long> lane(RBlockingQueue<Object> ready, RDelayedQueue<Object> delayed) throws InterruptedException {
        List<Long> late = new ArrayList<>();
        delayed.offer("far", far, TimeUnit.MILLISECONDS);
        for (int i = 0; i < rounds; i++) {
            late.add(round(ready, delayed, "near-" + i));
        }
        delayed.remove("far");
        return late;
    }

    private Long round(RBlockingQueue<Object> ready, RDelayedQueue<Object> delayed, String item) throws InterruptedException {
        long now = TimeUnit.NANOSECONDS.toMillis(Clock.nanos()); // as Redisson cuts it
        long due = TimeUnit.MILLISECONDS.toNanos(now + near);
        delayed.offer(item, near, TimeUnit.MILLISECONDS);
        Object got = ready.poll(patience, TimeUnit.MILLISECONDS);
        if (got == null) {
            delayed.remove(item); // else it holds back those that follow
            return null;
        }
        if (!got.equals(item)) {
            throw new IllegalStateException("waited for " + item + " and got " + got);
        }
        return Clock.nanos() - due;
    }
}
