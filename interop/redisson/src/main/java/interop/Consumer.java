package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

import org.redisson.RedissonShutdownException;
import org.redisson.api.RBlockingQueue;

/** Threads that take values off a destination and tell of each. */
final class Consumer {
    private final String id;
    private final RBlockingQueue<Object> ready;
    private final Output output;
    private final List<Thread> threads = new ArrayList<>();
    private volatile boolean stopped;

    Consumer(String id, RBlockingQueue<Object> ready, Output output) {
        this.id = id;
        this.ready = ready;
        this.output = output;
    }

    void start(int workers) {
        for (int i = 0; i < workers; i++) {
            Thread thread = new Thread(this::run, "consumer-" + id + '-' + i);
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
    }

    void stop() throws InterruptedException {
        stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private void run() {
        while (!stopped) {
            try {
                take();
            } catch (RedissonShutdownException | InterruptedException e) {
                return;
            } catch (RuntimeException e) {
                output.notReceived(id, e, Clock.nanos());
            }
        }
    }

    /** Waits a second and no longer: an interrupted take() may eat the next value. */
    private void take() throws InterruptedException {
        Object value = ready.poll(1, TimeUnit.SECONDS);
        if (value != null) {
            output.received(id, value, Clock.nanos());
        }
    }
}
