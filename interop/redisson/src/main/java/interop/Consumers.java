package interop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.redisson.api.RBlockingQueue;

/** The consumers that run, by the id of the request that started them. */
final class Consumers {
    private final Queues queues;
    private final Output output;
    private final Map<String, Consumer> running = new ConcurrentHashMap<>();

    Consumers(Queues queues, Output output) {
        this.queues = queues;
        this.output = output;
    }

    void start(Request request) throws ReflectiveOperationException {
        RBlockingQueue<Object> ready = queues.ready(request.queue());
        Consumer consumer = new Consumer(request.id, ready, output);
        consumer.start((int) request.number(0));
        running.put(request.id, consumer);
    }

    /** Returns when the consumer has taken its last value and told of it. */
    void stop(String id) throws InterruptedException {
        Consumer consumer = running.remove(id);
        if (consumer == null) {
            throw new IllegalArgumentException("no consumer " + id + " runs");
        }
        consumer.stop();
    }
}
